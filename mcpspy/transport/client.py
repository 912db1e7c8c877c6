"""A client that asks: it introduces itself to a server over a transport, requests listings, and sends requests.

The theory. The client sends `server/discover` first (2026-07-28). If that is refused or not answered, or if its answer
does not name the revision, the client sends `initialize`; whichever of the two is answered with a result decides. A
server that has ended may have done so because it expects `initialize` first, so it is worth starting it again for that
(`greet` without `discover`). The client answers what the server asks. Every wait has a limit.
"""

import json
import queue
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mcpspy import __version__
from mcpspy.conversation.offers import LISTED
from mcpspy.json_values import excerpt, member
from mcpspy.spec.revisions import NEWEST_HANDSHAKE, PROTOCOL_VERSION, STATELESS
from mcpspy.text import printable
from mcpspy.transport.link import Ended, Failed
from mcpspy.wire.jsonrpc import Error, Id, Request, Result, parse

PROBE = 2.0
"""Seconds without an answer to `server/discover` after which `initialize` is sent."""
LISTING = 300.0
"""Seconds for all pages of a listing."""
_PAGES = 1000  # limit for one listing
_DECLARED = {"resourceTemplates": "resources"}
_OURS = "mcpspy: "  # begins the errors of `mcpspy proxy`
_ESCAPED = "backslashreplace"  # a lone surrogate, which a server may send, becomes its escape in JSON
_REPLIES: Mapping[str, Any] = {"ping": {}}


class Transport(Protocol):
    """What a client needs of a transport."""

    heard: "queue.SimpleQueue[bytes | Ended | Failed]"

    def send(self, line: bytes) -> None:
        """Send a message."""


class NoAnswer(Exception):
    """A request got no result. The text is the reason, and continues a sentence that begins with the server.

    `why` is what the server, or the transport, gave as the reason.
    """

    def __init__(self, text: str, why: str = "") -> None:
        super().__init__(text)
        self.why = why


class ProxyAnswer(NoAnswer):
    """The answer is that of our own proxy, which has not reached the server: `why` begins with its URL."""

    def __init__(self, why: str) -> None:
        super().__init__(printable(why, 1000), why)


class ErrorAnswer(NoAnswer):
    """The answer is an error, or a result of another type."""

    def __init__(self, method: str, why: str) -> None:
        super().__init__(f"answered {method} with an error: {printable(why, 200)}", why)


class Gone(NoAnswer):
    """The server has ended before it answered `method`; `code` is its exit code, if it has exited."""

    def __init__(self, method: str, ended: Ended) -> None:
        super().__init__(f"{ended.how} before it answered {method}", ended.how)
        self.method = method
        self.code = ended.code


class Late(NoAnswer):
    """No answer to `method` came within so many seconds."""

    def __init__(self, method: str, seconds: float) -> None:
        super().__init__(f"did not answer {method} within {seconds:.0f} s")
        self.method = method
        self.seconds = seconds


@dataclass(slots=True)
class SentMessage:
    """A message that the client has sent."""

    line: bytes
    method: str
    params: Mapping[str, Any]
    id: Id | None
    seconds: float = 0
    """The limit for its answer."""
    answer: "Result | Error | Failed | None" = None


class AskingClient:
    """A client, and the requests that it has sent."""

    def __init__(
        self,
        transport: Transport,
        name: str,
        replies: Mapping[str, Any] = _REPLIES,
        aside: Callable[[bytes], object] = lambda _: None,
    ) -> None:
        """`name` is that of the client.

        `replies` has the results for requests of the server, by method. `aside` is called with each line of the server
        that has no answer to a request that is waited for.
        """
        self.sent: list[SentMessage] = []
        """All messages of the client, but for its answers."""
        self.meta: dict[str, Any] = {}
        """What the params of each request have, if there is no handshake."""
        self.ended: Ended | None = None
        """How the server has ended; then nothing more is asked."""
        self._transport = transport
        self._name = name
        self._replies = replies
        self._aside = aside

    def greet(self, start: float, probe: float, *, discover: bool = True) -> tuple[str, dict[str, Any]]:
        """Introduce the client; return the method of the request that counts, and its result.

        `probe` is the time for `server/discover`, and `start` that for `initialize`, in seconds. Raises NoAnswer.
        """
        asked, introduction = [], self_introduction(self._name)
        if discover:
            asked.append(self._request("server/discover", introduction, probe))
            try:
                if _names_revision(result := self._result(self._await(asked))):
                    self.meta = introduction
                    return "server/discover", result
            except Gone:
                raise
            except NoAnswer:
                pass
        asked.append(self._request("initialize", handshake(self._name), start))
        while (answered := self._await(asked)) is not asked[-1]:  # it was late
            if isinstance(answered.answer, Result) and _names_revision(answered.answer.result):
                self.meta = introduction
                return "server/discover", answered.answer.result
            asked = asked[-1:]
        result = self._result(answered)
        if not isinstance(result, dict):
            raise ErrorAnswer("initialize", f"its result is {excerpt(result)}, not an object")
        self.notify("notifications/initialized")
        return "initialize", result

    def pages(self, method: str, seconds: float) -> Iterator[Any]:
        """Yield the results of a listing, page by page, each within so many seconds. Raises NoAnswer."""
        cursor: Any = None
        seen: set[str] = set()
        due = time.monotonic() + LISTING
        for _ in range(_PAGES):
            if time.monotonic() > due:
                raise NoAnswer(f"did not send all pages of {method} within {LISTING:.0f} s")
            result = self.ask(method, {} if cursor is None else {"cursor": cursor}, seconds)
            yield result
            cursor = member(result, "nextCursor")
            if cursor is None:
                return
            if json.dumps(cursor) in seen:
                raise NoAnswer(f"repeats a cursor in its pages of {method}, so the list has no end")
            seen.add(json.dumps(cursor))
        raise NoAnswer(f"has more than {_PAGES:,} pages of {method}")

    def ask(self, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        """Send a request and return its result. Raises NoAnswer."""
        return self._result(self._await([self._request(method, self.meta | {**params}, seconds)]))

    def notify(self, method: str) -> None:
        """Send a notification."""
        self.say(SentMessage(_line(method=method), method, {}, None))

    def say(self, message: SentMessage) -> None:
        """Send a message as it is."""
        self.sent.append(message)
        self._transport.send(message.line)

    def hear(self, asked: Collection[SentMessage], due: float) -> tuple[SentMessage, bytes] | None:
        """Return the first of these requests that is answered, and the line with the answer; None if all are late.

        Raises Gone.
        """
        while (left := due - time.monotonic()) > 0:  # a server that writes without end always has a next line
            try:
                heard = self._transport.heard.get(timeout=left)
            except queue.Empty:
                break
            if isinstance(heard, Ended):
                self.ended = heard
                raise Gone([*asked][-1].method, heard)
            answered = self._answered(heard, asked)
            if answered:
                return answered, heard if isinstance(heard, bytes) else b""
        return None

    def _answered(self, heard: bytes | Failed, asked: Collection[SentMessage]) -> SentMessage | None:
        """Process what the server sent. Return the request that it answers."""
        if isinstance(heard, Failed):
            failed = next((it for it in asked if it.id == heard.request), None)
            if failed:
                failed.answer = heard
            return failed
        for body in parse(heard):
            if isinstance(body, Result | Error):
                for message in asked:
                    if message.id == body.id:
                        message.answer = body
                        return message
            elif isinstance(body, Request):
                self._reply(body)
        self._aside(heard)
        return None

    def _reply(self, request: Request) -> None:
        """Answer a request of the server."""
        result = self._replies.get(request.method)
        outcome = _json(
            {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
        )
        self._transport.send(f'{{"jsonrpc":"2.0","id":{request.id.text},{outcome[1:]}'.encode(errors=_ESCAPED))

    def _request(self, method: str, params: Mapping[str, Any], seconds: float) -> SentMessage:
        if self.ended:
            raise Gone(method, self.ended)
        number = 1 + sum(it.id is not None for it in self.sent)
        message = SentMessage(request_line(number, method, params), method, params, Id.of(number), seconds)
        self.say(message)
        return message

    def _await(self, asked: Collection[SentMessage]) -> SentMessage:
        """Return the first of these requests that is answered. Raises Late after the time of the last, and Gone."""
        last = [*asked][-1]
        found = self.hear(asked, time.monotonic() + last.seconds)
        if found is None:
            raise Late(last.method, last.seconds)
        return found[0]

    def _result(self, message: SentMessage) -> Any:
        """Return the result of a request that is answered. Raises NoAnswer."""
        if isinstance(message.answer, Failed):
            raise NoAnswer(f"did not answer {message.method}: {message.answer.how}", message.answer.how)
        if isinstance(message.answer, Error):
            told = member(message.answer.error, "message")
            why = told if told and isinstance(told, str) else f"its error is {excerpt(message.answer.error)}"
            if why.startswith(_OURS):
                raise ProxyAnswer(why.removeprefix(_OURS))
            raise ErrorAnswer(message.method, why)
        assert message.answer
        return message.answer.result


def request_line(number: int, method: str, params: Mapping[str, Any]) -> bytes:
    """Return a request as a line."""
    return _line(id=number, method=method, **({"params": params} if params else {}))


def self_introduction(name: str) -> dict[str, Any]:
    """Return what the params of each request have in the place of a handshake (2026-07-28); `name` is the client's."""
    return {
        "_meta": {
            PROTOCOL_VERSION: STATELESS[0].value,  # servers that support a later one probably support this one
            "io.modelcontextprotocol/clientInfo": _info(name),
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    }


def handshake(name: str) -> dict[str, Any]:
    """Return the params of `initialize`; `name` is the client's."""
    return {"protocolVersion": NEWEST_HANDSHAKE.value, "capabilities": {}, "clientInfo": _info(name)}


def listings(introduction: Any) -> Iterator[str]:
    """Yield the methods of the listings that a server declares in the result of the handshake."""
    capabilities = member(introduction, "capabilities")
    for method, kind in LISTED.items():
        if isinstance(capabilities, dict) and _DECLARED.get(kind, kind) in capabilities:
            yield method


def _names_revision(result: Any) -> bool:
    """Return whether the result of `server/discover` names the revision that the client asked with."""
    supported = member(result, "supportedVersions")
    return isinstance(supported, list) and STATELESS[0].value in supported


def _info(name: str) -> dict[str, str]:
    return {"name": name, "version": __version__}


def _line(**members: Any) -> bytes:
    return _json({"jsonrpc": "2.0"} | members).encode(errors=_ESCAPED)


def _json(value: Any) -> str:
    """Return a value as the SDKs write it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
