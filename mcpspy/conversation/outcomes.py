"""What came of each request, and whether it failed.

Every exchange has exactly one outcome at any time, and so does every HTTP request that carries no request and no
response of JSON-RPC: a GET, a DELETE, a notification, a step of OAuth. If a client's response is refused, that is the
outcome of its exchange. The first row of this table that applies is the outcome.

| outcome | meaning |
|---|---|
| held, dropped | a gate has the request or the response |
| timed-out | its sender cancelled it or left, and says that it waited too long, or waited as long as clients do |
| cancelled | its sender cancelled it or left, sooner or in words of a person |
| ok, error, tool-error, not-decoded | by its response |
| refused | over HTTP: an answer without a JSON-RPC answer, such as a status of failure |
| broken | over HTTP: the stream was reset, or ended without an answer |
| server-exit | the server's process ended first |
| abandoned | the client left when the request was young, or it was a request of the server |
| in-doubt | records are missing that may hold the response |
| unanswered | the session ended otherwise |
| open, pending | endless by nature; or the response may still come |

The outcomes in `FAILING` are failures, unless they are `expected`: some refusals are steps of a negotiation, and a
request that is repeated and then answered has cost nothing. Whether that is so becomes clear later. So outcomes change,
and each change that no message of the exchange shows is an `Outcome` of its own.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from mcpspy.capture.records import End
from mcpspy.conversation import bounds
from mcpspy.conversation.context import asks_for_stream
from mcpspy.conversation.model import ENDLESS, Exchange, Fate, HttpChannel, HttpUnit, Message
from mcpspy.conversation.pairing import round_key
from mcpspy.conversation.refusals import why_normal
from mcpspy.conversation.times import PERSONAL
from mcpspy.json_values import member
from mcpspy.spec.client_limits import time_outs_of
from mcpspy.wire.http_head import status
from mcpspy.wire.jsonrpc import Body, Error, Request, Result, Undecoded, parse
from mcpspy.wire.sse import parse_event

OUTCOMES = (
    *("pending", "ok", "error", "tool-error", "refused", "broken", "server-exit", "timed-out", "unanswered"),
    *("cancelled", "abandoned", "in-doubt", "open", "not-decoded", "held", "dropped"),
)
"""All outcomes; at most 16, because they are stored in half a byte."""
FAILING = frozenset(("error", "tool-error", "refused", "broken", "server-exit", "timed-out", "unanswered"))
"""The outcomes that are failures, unless they are expected."""
EXPECTED = {
    "repeated": "the client repeated it and got an answer",
    "probe": "the client asked for a newer revision, and went on with `initialize`",
    "transport": "the client went on with the transport HTTP+SSE",
    "optional": "servers need not support this HTTP method",
    "document": "the document is optional",
    "declined": "a person declined",
    "url": "the client has to open a URL first",
}
"""Why a failing outcome may be normal, by the word for it; at most 15."""

_PROMPT = ("initialize", "server/discover", "ping")
_PATIENT = (ENDLESS, "tasks/result", *PERSONAL)  # a long wait for these says nothing
_PROMPTLY, _PATIENCE = 10_000_000_000, 60_000_000_000  # nanoseconds that clients wait: for these methods, and others
_YOUNG = 10_000_000_000
_NEARLY = 0.95  # of its time-out: the timer of a client and the times of a capture differ a little
_TIMED_OUT = re.compile(r"time[ds]?[ _-]*out|-32001|deadline", re.IGNORECASE)
_OF_A_PERSON = re.compile(r"(?<![a-z])(?:user|human|person|interrupt|esc(?:ape)?(?![a-z])|stopped)", re.IGNORECASE)
_REASON = 1000  # characters of a reason that are looked at
_INFO = "io.modelcontextprotocol/clientInfo"
_DISCOVER = "server/discover"
_DECLINED, _URL_FIRST = -1, -32042
_OF_TASKS = frozenset(("tools/call", "tasks/get", "tasks/result"))
_MENDABLE = (-32022, -32021, -32020)  # wrong revision, capability, headers: the client can correct its request
_REDIRECTED = range(300, 400)
_NOT_FOUND, _CONFLICT, _FAILURE = 404, 409, 400
_NO_STREAM = (400, 404)
"""With 405: how servers refuse a GET for a stream before `initialize`, as of a client that tries HTTP+SSE first."""
_RESET = ("reset",)
_RESPONSE = ""  # in place of a method: the client repeats a response
_REVISION = "initialize again"  # the same: the client names another revision after an error
_OF_EXCHANGES = (Request, Result, Error)


class Outcome(NamedTuple):
    """What came of a request, if no message of its exchange shows it; a later one replaces an earlier one."""

    n: int
    """The line number of the request; of an HTTP request without a row, that of the first row of its answer."""
    part: int
    t: int
    """When it was decided."""
    outcome: str
    expected: str | None = None
    """Why a failing outcome is normal: a key of `EXPECTED`."""
    ordinal: int | None = None
    """The ordinal of the exchange; None for an HTTP request that carries no JSON-RPC request."""
    exchange: Exchange | None = None
    """None for an HTTP request, and if only `expected` has changed."""
    request: HttpChannel | None = None
    """An HTTP request that carries no JSON-RPC request."""
    answer: HttpChannel | None = None
    """Its answer."""
    name: str | None = None
    """For a task that failed: the tool of the call that created it."""

    @property
    def failed(self) -> bool:
        """Whether it is a failure."""
        return has_failed(self.outcome, self.expected)


def has_failed(outcome: str | None, expected: str | None) -> bool:
    """Return whether a request has failed: the one definition."""
    return expected is None and outcome in FAILING


def still_failed(exchange: Exchange) -> bool:
    """Return whether an exchange has failed, and nothing so far has shown that this is normal."""
    request = exchange.request
    known = request.session.expected
    return has_failed(exchange.outcome, exchange.expected) and (request.n, request.part) not in known


_OUTCOME = {outcome: code for code, outcome in enumerate(OUTCOMES)}
_WHY = (None, *EXPECTED)
_EXPECTED = {why: code << 4 for code, why in enumerate(_WHY)}
_FAILED = bytes(outcome in FAILING and code < 1 << 4 for code, outcome in enumerate(OUTCOMES * (1 << 4)))
_NONE = 255  # of a line that begins no HTTP request
_DECODED: list[tuple[str | None, str | None]] = [
    (outcome, why) for why in (*_WHY, *(None,) * (16 - len(_WHY))) for outcome in OUTCOMES
]
_DECODED[_NONE] = None, None


def decoded(code: int) -> tuple[str | None, str | None]:
    """Return the outcome for a byte of an `OutcomeTable`, and why it is normal; None for a line without a request."""
    return _DECODED[code]


class OutcomeTable:
    """The latest outcome of each request, in a byte: of exchanges by ordinal, of HTTP requests by line number."""

    def __init__(self) -> None:
        self.failed = 0
        """The number of requests that have failed."""
        self._exchanges, self._lines = bytearray(), bytearray()

    def add(self, event: Any) -> int:
        """Add the next event of any kind; return the line number of the request if it is an `Outcome`, else 0."""
        kind = type(event)
        if kind is Message:
            exchange = event.exchange
            if exchange is None:
                if type(event.body) not in _OF_EXCHANGES:
                    self._begin(event)
            else:
                if event.part and event.n < len(self._lines):
                    self._lines[event.n] = _NONE  # of a batch that began with a notification
                code = _OUTCOME[exchange.outcome] | _EXPECTED[exchange.expected]
                if exchange.response is event:
                    self._set(self._exchanges, exchange.ordinal, code)
                else:
                    self._exchanges.append(code & 15)
        elif kind is HttpUnit:
            self._begin(event)
        elif kind is Outcome:
            code = _OUTCOME[event.outcome] | _EXPECTED[event.expected]
            if event.ordinal is None:
                self._set_line(event.n, code)
            else:
                self._set(self._exchanges, event.ordinal, code)
            n: int = event.n
            return n
        return 0

    def code(self, ordinal: int) -> int:
        """Return the byte for the outcome of an exchange, which `decoded` decodes."""
        return self._exchanges[ordinal]

    def line_code(self, n: int) -> int:
        """Return the byte for the outcome of the HTTP request that begins on a line, if one does."""
        return self._lines[n] if n < len(self._lines) else _NONE

    def end(self) -> None:
        """End the capture: what is still pending is of forgotten sessions (`bounds.SESSIONS`)."""
        pending, doubt = bytes([_OUTCOME["pending"]]), bytes([_OUTCOME["in-doubt"]])
        self._exchanges, self._lines = (it.replace(pending, doubt) for it in (self._exchanges, self._lines))

    def _begin(self, event: Message | HttpUnit) -> None:
        http = event.http
        if http is not None and http.request is None and http.first == event.n:
            self._set_line(event.n, 0)

    def _set_line(self, n: int, code: int) -> None:
        if n >= len(self._lines):
            self._lines.extend(b"\xff" * (n + 1 - len(self._lines)))
        self._set(self._lines, n, code)

    def _set(self, table: bytearray, place: int, code: int) -> None:
        self.failed += _FAILED[code] - _FAILED[table[place]]
        table[place] = code


def may_turn_out_expected(exchange: Exchange) -> bool:
    """Return whether something later may show that a failing outcome is normal."""
    repeatable = exchange.outcome in ("refused", "broken", "server-exit") or _is_mendable(exchange)
    repeatable = repeatable or (exchange.method == "initialize" and exchange.outcome == "error")
    return repeatable or exchange.method == _DISCOVER or _asks_for_transport(exchange)


def _asks_for_transport(exchange: Exchange) -> bool:
    over_http = exchange.request.http is not None
    return over_http and exchange.method == "initialize" and exchange.outcome in ("refused", "error")


class _Waiting(NamedTuple):
    """A request whose outcome may change later."""

    n: int
    part: int
    ordinal: int | None
    outcome: str
    name: str | None = None


class Outcomes:
    """The outcomes of one capture. `decided` has those that the latest record decided."""

    def __init__(self) -> None:
        self.decided: list[Outcome] = []
        self.expected: dict[tuple[int, int], str] = {}
        """By line number and part of a request that failed: why that turned out to be normal, a key of `EXPECTED`."""
        self._repeatable: dict[tuple[str, str], dict[int, list[_Waiting]]] = {}  # by client and method, then by params
        self._probes: dict[str, list[_Waiting]] = {}  # by client: refused `server/discover`
        self._transports: dict[str, list[_Waiting]] = {}  # by client: refused `initialize`
        self._initialized: dict[str, int] = {}  # by client: the line number of its latest `initialize`
        self._early: dict[str, list[_Waiting]] = {}  # by client: refused GETs for a stream, before `initialize`
        self._streams: dict[str, int] = {}  # by client: the channel of its open stream of a GET
        self._held: dict[int, Exchange] = {}  # by line number of a held frame
        self._tasks: dict[str, _Waiting] = {}  # by id: the calls that created tasks

    def requested(self, message: Message, exchange: Exchange) -> None:
        """Take a request that was entered into its session."""
        method = exchange.method
        if message.act:
            exchange.outcome = message.act.status or "pending"
            self._hold(message, exchange)
        elif method == ENDLESS:
            exchange.outcome = "open"
        if message.side == "client":
            if method == "initialize":
                client = _client_of(message)
                bounds.keep(self._initialized, client, message.n)
                self._expect(self._probes.pop(client, ()), "probe", message.t)
                self._expect(self._early.pop(client, ()), "optional", message.t)
        elif method in PERSONAL and len(message.session.asking) < bounds.WAITS:
            asking = message.session.asking
            asking[exchange.ordinal] = min(asking.values(), default=message.t)

    def answered(self, message: Message, exchange: Exchange) -> None:
        """Take a response that was joined to its request."""
        session, body, method, before = message.session, message.body, exchange.method, exchange.outcome
        if session.asking:
            _end_question(exchange, message.t)
        if self._held:
            self._held.pop(exchange.request.n, None)  # the response decides
        if message.act:
            self._hold(message, exchange)
        if session.left is not None and method == "initialize":
            _note_left(message, exchange, session.left)
        unusual = message.act or exchange.undecoded or exchange.fate or before != "pending"
        if type(body) is Result and not unusual:
            exchange.outcome = outcome = _of_result(body.result)
        else:
            exchange.outcome = outcome = _so_far(exchange)
            if before in FAILING:
                self._withdraw(exchange)
        if self._repeatable and not _is_mendable(exchange):
            self._mend(exchange, message.t)
        if method == "initialize" and outcome == "ok" and self._repeatable:
            self._mend_alike(_client_of(exchange.request), _REVISION, lambda: 0, message.t)
        if outcome in FAILING:
            self._judge(exchange)
        if method in _OF_TASKS and type(body) is Result:
            self._follow_task(message, exchange, body.result)

    def notified(self, message: Message) -> None:
        """Take a notification, which may cancel a request or report a task."""
        if message.cancels:
            for exchange in message.session.with_id_of(message.cancels):
                _end_question(exchange, message.t)
                self._decide(exchange, message.t)
        elif self._tasks and message.method == "notifications/tasks/status":
            self._report_task(member(message.body.value, "params"), message.t)

    def released(self, n: int, t: int) -> None:
        """Take the release of a held frame."""
        exchange = self._held.pop(n, None)
        if exchange:
            self._decide(exchange, t)

    def ended(self, exchange: Exchange, fate: Fate) -> None:
        """Take the end of the wait for a response, without one."""
        exchange.fate = exchange.fate or fate
        _end_question(exchange, fate.t)
        self._decide(exchange, fate.t)

    def opened(self, channel: HttpChannel, t: int) -> None:
        """Take the head of an answer to an HTTP request: a stream that a GET opened has no end of its own."""
        request = channel.request
        if request and request.summary["method"] == "GET" and channel.streams and not channel.failed:
            bounds.keep(self._streams, request.client, channel.opened.ch)
            self._decide_http(request, channel, "open", t)

    def closed(self, channel: HttpChannel, how: str, t: int) -> None:
        """Take the end of an answer to an HTTP request that carries no JSON-RPC request."""
        request = channel.request
        if request and self._streams.get(request.client) == channel.opened.ch:
            del self._streams[request.client]
        if request is None or channel.opened.role != "response" or _carries(request, Request):
            return
        outcome = _http_outcome(request, channel, how, t)
        if _carries(request, Result, Error):
            self._delivered(request, outcome, t)
        else:
            self._decide_http(request, channel, outcome, t)

    def took_endpoint(self, channel: HttpChannel, t: int) -> None:
        """Take the first event of HTTP+SSE: if `initialize` was refused before, the client has found the transport."""
        refused = self._transports.pop(channel.request.client, ()) if channel.request else ()
        if channel.request and refused:
            self._expect(refused, "transport", t)
            self._repeatable.pop((channel.request.client, "initialize"), None)  # the reason is known

    def end(
        self,
        pending: Iterable[Exchange],
        requests: Iterable[tuple[HttpChannel, HttpChannel | None]],
        t: int,
        ending: End | None,
    ) -> None:
        """Take the end of the capture: nothing follows. `ending` is its end record, if it has one.

        `requests` are the HTTP requests that are known, with their answers, so far as those are open.
        """
        for exchange in pending:
            final = _at_end(exchange, t, ending)
            if final != exchange.outcome:
                exchange.outcome = final
                if final in FAILING:
                    self._judge(exchange)
                self._tell(exchange, t)
        for request, answer in requests:
            if not request.decided and not _carries(request, *_OF_EXCHANGES):
                if answer and ending:
                    outcome = _http_outcome(request, answer, "eof", t)
                else:
                    young = t - request.opened.t < _YOUNG
                    outcome = "in-doubt" if ending is None else "abandoned" if young else "unanswered"
                self._decide_http(request, answer, outcome, t)

    def _hold(self, message: Message, exchange: Exchange) -> None:
        if message.act and message.act.waits:
            self._held[message.n] = exchange
            if len(self._held) > bounds.HELD + bounds.FORGOTTEN:
                bounds.forget(self._held)

    def _decide(self, exchange: Exchange, t: int) -> None:
        """Update the outcome of an exchange, and report a change."""
        before, exchange.outcome = exchange.outcome, _so_far(exchange)
        if exchange.outcome == before:
            return
        if exchange.outcome in FAILING:
            self._judge(exchange)
        self._tell(exchange, t)

    def _tell(self, exchange: Exchange, t: int) -> None:
        request = exchange.request
        self.decided.append(
            Outcome(request.n, request.part, t, exchange.outcome, exchange.expected, exchange.ordinal, exchange)
        )

    def _judge(self, exchange: Exchange) -> None:
        """Decide whether a failing outcome is expected, or remember what may show it later."""
        request, client = exchange.request, _client_of(exchange.request)
        code = _code(exchange)
        exchange.expected = _refusal(exchange, code)
        if exchange.expected or request.side != "client":
            return
        waiting = _Waiting(request.n, request.part, exchange.ordinal, exchange.outcome)
        if exchange.method == _DISCOVER:
            if self._initialized.get(client, 0) > request.n:
                exchange.expected = "probe"
                return
            self._wait(self._probes, client, waiting)
        elif _asks_for_transport(exchange):
            self._wait(self._transports, client, waiting)
        if exchange.outcome in ("refused", "broken", "server-exit") or _is_mendable(exchange):
            self._remember(client, exchange.method, _key(request), waiting)
        elif exchange.method == "initialize" and exchange.outcome == "error":
            self._remember(client, _REVISION, 0, waiting)

    def _withdraw(self, exchange: Exchange) -> None:
        """Forget the failure of an exchange that was answered after all: nothing later may change its outcome back."""
        request, client = exchange.request, _client_of(exchange.request)
        exchange.expected = None
        alike = self._repeatable.get((client, exchange.method), {})
        for waiting in (self._probes.get(client), self._transports.get(client), alike.get(_key(request))):
            if waiting:
                waiting[:] = [it for it in waiting if it.ordinal != exchange.ordinal]

    def _wait(self, table: dict[str, list[_Waiting]], client: str, waiting: _Waiting) -> None:
        alike = table.setdefault(client, [])
        if len(alike) < bounds.SAME_ROUNDS:
            alike.append(waiting)
        if len(table) > bounds.FACTS:
            bounds.forget(table, bounds.FORGOTTEN_FACTS)

    def _remember(self, client: str, method: str, key: int, waiting: _Waiting) -> None:
        alike = self._repeatable.setdefault((client, method), {})
        same = alike.setdefault(key, [])
        if len(same) < bounds.EXCHANGES:
            same.append(waiting)
        if len(alike) > bounds.FORGOTTEN_FACTS:
            bounds.forget(alike, bounds.SAME_ROUNDS)
        if len(self._repeatable) > bounds.FORGOTTEN_FACTS:
            bounds.forget(self._repeatable, bounds.SAME_ROUNDS)

    def _mend(self, exchange: Exchange, t: int) -> None:
        """Look for failures of the same request of the same client: this one got an answer."""
        self._mend_alike(_client_of(exchange.request), exchange.method, lambda: _key(exchange.request), t)

    def _mend_alike(self, client: str, method: str, key: Any, t: int) -> None:
        alike = self._repeatable.get((client, method))
        if alike:
            self._expect(alike.pop(key(), ()), "repeated", t)
            if not alike:
                del self._repeatable[client, method]

    def _expect(self, failures: Iterable[_Waiting], why: str, t: int) -> None:
        for it in failures:
            self.decided.append(Outcome(it.n, it.part, t, it.outcome, why, it.ordinal))
            bounds.keep(self.expected, (it.n, it.part), why)

    def _decide_http(self, request: HttpChannel, answer: HttpChannel | None, outcome: str, t: int) -> None:
        n = request.first if request.first is not None else answer.first if answer else None
        if n is None:
            return
        request.decided = True
        client, method, target = request.client, str(request.summary["method"]), str(request.summary["target"])
        expected = None
        if outcome in FAILING:
            code = status(answer.opened.head) if answer else 0
            expected = why_normal(request, code)
            waiting = _Waiting(n, 0, None, outcome)
            if expected is None and asks_for_stream(request):
                if code in _NO_STREAM and client not in self._initialized:
                    self._wait(self._early, client, waiting)
                expected = "optional" if code == _CONFLICT and client in self._streams else None
            if expected:
                bounds.keep(self.expected, (n, 0), expected)
            if expected is None and outcome in ("refused", "broken"):
                self._remember(client, *_http_key(request, method, target), waiting)
        elif outcome in ("ok", "open") and self._repeatable:
            kind, key = _http_key(request, method, target)
            self._mend_alike(client, kind, lambda: key, t)
        self.decided.append(Outcome(n, 0, t, outcome, expected, None, None, request, answer))

    def _delivered(self, request: HttpChannel, outcome: str, t: int) -> None:
        """Take the outcome of an HTTP request that carries responses: if it failed, their exchanges have failed."""
        for it in request.carried:
            key = hash(str(it.id))
            if outcome not in FAILING:
                self._mend_alike(request.client, _RESPONSE, lambda key=key: key, t)
            elif it.exchange and it.exchange.response is it:
                asked = it.exchange.request
                it.exchange.outcome, it.exchange.expected = outcome, None
                waiting = _Waiting(asked.n, asked.part, it.exchange.ordinal, outcome)
                self._remember(request.client, _RESPONSE, key, waiting)
                self._tell(it.exchange, t)

    def _follow_task(self, message: Message, exchange: Exchange, result: Any) -> None:
        """Link a task with the call that created it, and learn that a task failed."""
        if exchange.method == "tools/call" and not (type(result) is dict and ("task" in result or "taskId" in result)):
            return  # the usual case
        created = member(result, "task", "taskId") or (
            member(result, "taskId") if member(result, "resultType") == "task" else None
        )
        if isinstance(created, str) and exchange.method == "tools/call":
            request = exchange.request
            bounds.keep(
                self._tasks, created, _Waiting(request.n, request.part, exchange.ordinal, "tool-error", exchange.name)
            )
        elif exchange.method == "tasks/get":
            self._report_task(result, message.t)
        elif exchange.method == "tasks/result" and exchange.outcome == "tool-error":
            wanted = member(exchange.request.body.value, "params", "taskId")
            self._report_task({"taskId": wanted, "status": "failed"}, message.t)

    def _report_task(self, told: Any, t: int) -> None:
        task = member(told, "taskId")
        if member(told, "status") == "failed" and isinstance(task, str):
            failed = self._tasks.pop(task, None)
            if failed:
                n, part, ordinal, outcome, name = failed
                self.decided.append(Outcome(n, part, t, outcome, None, ordinal, name=name))


def _carries(request: HttpChannel, *kinds: type) -> bool:
    """Return whether the body of an HTTP request has a message of one of these kinds."""
    return any(type(it.body) in kinds for it in request.carried)


def _note_left(message: Message, exchange: Exchange, left: int) -> None:
    """Record that the client of a process had left, after a long wait, before `initialize` was answered."""
    if message.http is None and left < message.t and waited(exchange, left) >= patience(exchange):
        exchange.fate = Fate("late", 0, left)


def _end_question(exchange: Exchange, t: int) -> None:
    """Remember for how long a person was asked, when the last open question is answered."""
    session = exchange.request.session
    since = session.asking.pop(exchange.ordinal, None)
    if since is not None and not session.asking and len(session.asked) < bounds.ASKED_SPANS:
        session.asked.append((since, t))


def _so_far(exchange: Exchange) -> str:
    """Return the outcome of an exchange by what is known of it: its acts, its fate, its response."""
    response, fate, act = exchange.response, exchange.fate, exchange.request.act
    waits = response.act if response else act
    if waits and waits.status:
        return waits.status
    if response and fate and fate.how == "late":
        return "timed-out"
    if exchange.cancelled and fate:
        return "timed-out" if _waited_long(exchange, fate) else "cancelled"
    if response:
        return _of_response(response, undecoded=exchange.undecoded)
    if fate is None or fate.how == "cut":
        return "not-decoded" if exchange.undecoded else "open" if exchange.method == ENDLESS else "pending"
    if fate.how in ("cancelled", "left"):
        return "timed-out" if _waited_long(exchange, fate) else "cancelled"
    return "pending" if fate.how == "gone" else fate.how


def _of_response(response: Message, *, undecoded: bool) -> str:
    body = received(response)
    if isinstance(body, Error):
        return "error"
    if undecoded:
        return "not-decoded"
    return _of_result(body.result) if isinstance(body, Result) else "ok"


def received(response: Message) -> Body | Undecoded:
    """Return what the receiver of a response got: a gate may have edited it."""
    act = response.act
    if act is None or act.how != "edited" or act.sent is None:
        return response.body
    streamed = response.http is not None and response.http.streams
    bodies = parse(parse_event(act.sent).data or b"" if streamed else act.sent)
    return bodies[min(response.part, len(bodies) - 1)]


def _of_result(result: Any) -> str:
    return "tool-error" if type(result) is dict and result.get("isError") is True else "ok"


def _at_end(exchange: Exchange, t: int, ending: End | None) -> str:
    """Return the outcome of an exchange to which nothing follows."""
    so_far = _so_far(exchange)
    if so_far != "pending":
        return so_far
    request, fate, session = exchange.request, exchange.fate, exchange.request.session
    if exchange.in_doubt:
        return "in-doubt"
    if fate and fate.how == "cut":
        return "broken"
    left = fate.t if fate else session.left if request.http is None else None
    gone = session.gone if session.gone is not None or left is not None else _exit_of(ending)
    if request.http is None and gone is not None:
        return "server-exit" if request.side == "client" else _left(exchange, gone)
    if left is not None:
        return _left(exchange, left)
    if ending is None:
        return "in-doubt"
    return "abandoned" if request.http and t - request.t < _YOUNG else "unanswered"


def _exit_of(ending: End | None) -> int | None:
    """Return when the server's process ended, or could not be started, if the end record tells it."""
    told = ending and (ending.why or ending.code is not None or ending.signal is not None)
    return ending.t if ending and told else None


def _left(exchange: Exchange, t: int) -> str:
    """Return the outcome of an exchange whose client left the session at `t`."""
    if exchange.request.side == "server":
        return "abandoned"
    if _waited_long(exchange, Fate("left", 0, t)):
        return "timed-out"
    return "abandoned" if t - exchange.request.t < _YOUNG else "unanswered"


def _waited_long(exchange: Exchange, fate: Fate) -> bool:
    """Return whether the sender gave up because it had waited too long."""
    reason = fate.reason[:_REASON]
    if _OF_A_PERSON.search(reason):
        return False
    if _TIMED_OUT.search(reason):
        return True
    return exchange.method not in _PATIENT and waited(exchange, fate.t) >= patience(exchange)


def waited(exchange: Exchange, t: int) -> int:
    """Return for how many nanoseconds a request was open at `t`, without holds of gates and questions to a person."""
    begin, session = _begun(exchange), exchange.request.session
    now = min((since for ordinal, since in session.asking.items() if ordinal != exchange.ordinal), default=t)
    spans = (*session.asked, (now, t))
    return max(t - begin - sum(max(min(end, t) - max(start, begin), 0) for start, end in spans), 0)


def open_for(exchange: Exchange, t: int) -> int:
    """Return for how many nanoseconds a request was open at `t`, as its sender saw it."""
    return max(t - _begun(exchange), 0)


def _begun(exchange: Exchange) -> int:
    """Return when the responder could begin with a request."""
    request = exchange.request
    begin = request.t + (request.act.held or 0 if request.act else 0)
    if exchange.method == "initialize" and request.http is None:
        begin = min(begin, request.session.begun_at)
    return begin


def patience(exchange: Exchange) -> int:
    """Return after how many nanoseconds the sender of a request gives up: known for a few clients, else usual."""
    request = exchange.request
    usual = _PROMPTLY if exchange.method in _PROMPT else _PATIENCE
    if request.side != "client":
        return usual
    named = member(request.body.value, "params", "_meta", _INFO, "name") or request.session.client_name
    known = time_outs_of(named) if isinstance(named, str) and named else None
    seconds = known and (known.begin if exchange.method == "initialize" else known.call)
    if exchange.method not in ("initialize", "tools/call") or not seconds:
        return usual
    return int(seconds * 1e9 * _NEARLY)


def _code(exchange: Exchange) -> Any:
    body = exchange.response.body if exchange.response else None
    return member(body.error, "code") if isinstance(body, Error) else None


def _is_mendable(exchange: Exchange) -> bool:
    """Return whether an error asks the client to repeat its request otherwise: corrected, or in a new session."""
    place = exchange.response.http if exchange.response else None
    over = place is not None and place.named and status(place.opened.head) == _NOT_FOUND
    return _code(exchange) in _MENDABLE or (over and exchange.outcome == "error")


def _refusal(exchange: Exchange, code: Any) -> str | None:
    """Return why an answer that is an error is normal, if the answer alone shows it."""
    if code == _URL_FIRST:
        return "url"
    return "declined" if code == _DECLINED and exchange.method in PERSONAL else None


def _http_outcome(request: HttpChannel, answer: HttpChannel, how: str, t: int) -> str:
    """Return what came of an HTTP request that carries no JSON-RPC request."""
    code, method = status(answer.opened.head), request.summary["method"]
    if answer.opened.head is None:  # the client left before
        return "timed-out" if t - request.opened.t >= _PATIENCE else "cancelled"
    if code >= _FAILURE or (method == "POST" and code in _REDIRECTED):
        return "refused"
    if how in _RESET:
        return "broken"
    accepted = method == "POST" or answer.streams  # its status is the whole answer, or it has no end of its own
    return "cancelled" if how == "abort" and not accepted else "ok"


def _http_key(request: HttpChannel, method: str, target: str) -> tuple[str, int]:
    """Return what two equal HTTP requests share: the notification that they carry, or method and target."""
    carried = request.carried[0] if request.carried else None
    if carried is not None and carried.method:
        return carried.method, round_key(carried)
    return method, hash(target)


def _key(request: Message) -> int:
    """Return what a request and its repetition share; `initialize` may be repeated with another revision."""
    return 0 if request.method == "initialize" else round_key(request)


def _client_of(request: Message) -> str:
    """Return what distinguishes the clients of a capture."""
    return request.http.client if request.http else ""
