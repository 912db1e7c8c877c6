"""Rules about caching (2026-07-28): how long (`ttlMs`) and for whom (`cacheScope`) a result may be kept.

`schema/invalid` reports a member that is missing or has the wrong type. Two answers are the same answer if method,
params and the client's declared capabilities are equal. Each page of a listing is an answer of its own.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from mcpspy.conversation.bounds import keep
from mcpspy.conversation.context import CLIENT_CAPABILITIES
from mcpspy.conversation.model import Message, Session
from mcpspy.conversation.pairing import round_key
from mcpspy.json_values import member, text_of
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.spec.revisions import CACHING
from mcpspy.text import duration_text
from mcpspy.wire.jsonrpc import Error, Notification, Request, Result

_PAGE = "server/utilities/caching"
_PAGED = ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "skills/list")
_CACHED = (*_PAGED, "server/discover", "resources/read", "skills/get")
_HINTS = ("ttlMs", "cacheScope")
_SCOPES = ("public", "private")
_CHANGES = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list", "resources/read"),
    "notifications/resources/updated": ("resources/read",),
}
"""By method of the notification: the requests whose earlier answers it makes stale."""
_MILLISECOND = 1_000_000
_LONGEST = 1 << 53  # milliseconds: a peer may send any number


@rule(
    "cache/page-scope",
    "error",
    """All pages of a listing must have the same `cacheScope`. If one page of a private listing is public, a shared
    cache gives the data of one user to another.""",
    fix="Send the same `cacheScope` with every page of a listing: `private` if one page is private.",
    meanwhile="Treat the whole listing as `private` if one of its pages is.",
    blame="server",
    spec=f"{_PAGE}#interaction-with-pagination",
    revisions=CACHING,
    fails="""
        > 1 tools/list {META}
        < 1 = {"resultType":"complete","tools":[],"nextCursor":"b","ttlMs":0,"cacheScope":"private"}
        > 2 tools/list {META "cursor":"b"}
        < 2 = {"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public"}
    """,
    passes="""
        > 1 tools/list {META}
        < 1 = {"resultType":"complete","tools":[],"nextCursor":"b","ttlMs":0,"cacheScope":"private"}
        > 2 tools/list {META "cursor":"b"}
        < 2 = {"resultType":"complete","tools":[],"ttlMs":9000,"cacheScope":"private"}
    """,
    on=(Result,),
    methods=_PAGED,
)
class PageScope(StatefulCheck):
    """Report a page whose scope differs from that of the page before it. Cursors link the pages.

    Several listings may share a cursor, of several clients or of one. A page may then belong to any of them.
    """

    learns_from: ClassVar = {Result: _PAGED}

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._given: dict[tuple[str, str], dict[str | None, int]] = {}
        """By method and cursor: the scopes of the pages that issued the cursor, each with one line number."""

    def lose(self) -> None:
        """Forget the cursors: a lost page may have issued one of them too."""
        self._given.clear()

    def learn(self, message: Message) -> None:
        """Remember the scope of a page that has a next page."""
        result = message.body.value["result"]
        cursor = member(result, "nextCursor")
        if isinstance(cursor, str) and message.method:
            key = message.method, cursor
            keep(self._given, key, self._given.get(key, {}) | {_scope(result): message.n})

    def check(self, message: Message) -> Iterator[Fault]:
        """Compare the scope of a page with that of the page before it."""
        request = message.exchange.request.body.value if message.exchange else None
        cursor, scope = member(request, "params", "cursor"), _scope(member(message.body.value, "result"))
        if not isinstance(cursor, str) or scope is None or message.method is None:
            return
        given = self._given.get((message.method, cursor), {})
        if given and scope not in given and None not in given:
            ((before, n),) = given.items()
            sentence = f'cacheScope of this page is "{scope}"; expected "{before}", as on the page before'
            yield Fault(sentence, "/result/cacheScope", (n,))


def _scope(result: Any) -> str | None:
    """Return the scope of a page, or None if it has no scope that the specification defines."""
    scope = member(result, "cacheScope")
    return scope if scope in _SCOPES else None


@rule(
    "cache/interim-result",
    "warning",
    """An `input_required` result is not complete, cannot be cached and must not have `ttlMs` or `cacheScope`. A cache
    that uses them would answer another request with a request for input.""",
    fix='Leave `ttlMs` and `cacheScope` out of a result with `"resultType": "input_required"`.',
    meanwhile="Cache only results whose `resultType` is `complete`.",
    blame="server",
    spec=f"{_PAGE}#cacheable-results",
    about="shape",
    revisions=CACHING,
    fails="""
        > 1 resources/read {META "uri":"a:b"}
        < 1 = {"resultType":"input_required","requestState":"s","ttlMs":9000,"cacheScope":"public"}
    """,
    passes="""
        > 1 resources/read {META "uri":"a:b"}
        < 1 = {"resultType":"input_required","requestState":"s"}
    """,
    on=(Result,),
)
def interim_result(message: Message, session: Session) -> Iterator[Fault]:
    """Report caching hints on a result that must not be cached."""
    result = member(message.body.value, "result")
    hints = [name for name in _HINTS if member(result, name) is not None]
    if member(result, "resultType") == "input_required" and hints:
        yield Fault(f"an `input_required` result must not have {' and '.join(hints)}", f"/result/{hints[0]}")


@rule(
    "cache/ignored",
    "info",
    """The client repeats a request while its last result is still fresh by `ttlMs`, and no notification has announced a
    change. The client may have a reason, but a cache would save the request. Reported once per session.""",
    fix="Keep the result for `ttlMs` milliseconds, and use it in place of a new request.",
    meanwhile="Lower `ttlMs` if the result changes sooner than that.",
    blame="client",
    spec=f"{_PAGE}#time-to-live-ttl-field",
    revisions=CACHING,
    fails="""
        > 1 tools/list {META}
        < 1 = {"resultType":"complete","tools":[],"ttlMs":60000,"cacheScope":"public"}
        @5 > 2 tools/list {META}
        < 2 = {"resultType":"complete","tools":[],"ttlMs":60000,"cacheScope":"public"}
    """,
    passes="""
        > 1 tools/list {META}
        < 1 = {"resultType":"complete","tools":[],"ttlMs":60000,"cacheScope":"public"}
        @61 > 2 tools/list {META}
        < 2 = {"resultType":"complete","tools":[],"ttlMs":60000,"cacheScope":"public"}
    """,
    on=(Request,),
    methods=_CACHED,
)
class FreshAnswers(StatefulCheck):
    """Report a request whose last answer is still fresh. An error makes the client's next request legitimate."""

    learns_from: ClassVar = {Result: _CACHED, Error: (), Notification: tuple(_CHANGES)}

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._fresh: dict[str, dict[str, _Answer]] = {}
        """By method and key of the request. A change invalidates all answers of a method at once."""

    def learn(self, message: Message) -> None:
        """Remember an answer that may be cached. Forget the answers that a change or an error makes doubtful."""
        if isinstance(message.body, Notification):
            for method in _CHANGES[message.body.method]:
                self._fresh.pop(method, None)
        elif isinstance(message.body, Error):
            self._fresh.clear()
        else:
            self._keep(message)

    def _keep(self, message: Message) -> None:
        result = message.body.value["result"]
        lasts, request = member(result, "ttlMs"), message.exchange.request if message.exchange else None
        if request is None or type(lasts) is not int or not 0 < lasts < _LONGEST or _is_part(request, result):
            return
        answer = _Answer(message.n, message.t, message.t + lasts * _MILLISECOND)
        keep(self._fresh.setdefault(message.method or "", {}), _key(request), answer)

    def check(self, message: Message) -> Iterator[Fault]:
        """Look for a fresh answer to the request."""
        answer = self._fresh.get(message.method or "", {}).get(_key(message))
        if answer is None or not answer.t < message.t < answer.until or self.session.lossy:
            return
        if self.session.once("cache ignored"):
            age, lasts = duration_text(message.t - answer.t), duration_text(answer.until - answer.t)
            yield Fault(f"{message.method} is requested again after {age}; its last result is fresh for {lasts}",
                        "/method", (answer.n,))  # fmt: skip


class _Answer(NamedTuple):
    """An answer that may be cached."""

    n: int
    t: int
    until: int
    """The time at which it stops being fresh."""


def _is_part(request: Message, result: Any) -> bool:
    """Return whether an answer is one of several pages or rounds, which a client requests again together."""
    params = member(request.body.value, "params")
    asked = any(member(params, name) is not None for name in ("cursor", "inputResponses", "requestState"))
    return asked or member(result, "nextCursor") is not None or member(result, "resultType") != "complete"


def _key(request: Message) -> str:
    """Return what all requests of one method with the same answer have in common."""
    declared = member(request.body.value, "params", "_meta", CLIENT_CAPABILITIES)
    return f"{round_key(request)} {hash(text_of(declared))}"
