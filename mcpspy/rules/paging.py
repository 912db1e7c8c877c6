"""Rules about listings in pages: each page has the cursor of the next page. Also about listings that change.

A listing that is not read to its end, or not read again, is reported only if the client went on with the session.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mcpspy.conversation.bounds import FACTS, keep
from mcpspy.conversation.model import Message, Session
from mcpspy.conversation.offers import LISTED
from mcpspy.conversation.pairing import mark
from mcpspy.json_values import excerpt, member
from mcpspy.rules.rule import Fault, Later, StatefulCheck, rule
from mcpspy.spec.revisions import HANDSHAKE
from mcpspy.wire.jsonrpc import Notification, Request, Result

_PAGING = "server/utilities/pagination"
_OFFERED = tuple(LISTED)
_CHANGES = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
}
"""By notification: the listings that have changed."""
_WENT_ON = 1_000_000_000  # nanoseconds
_ALIKE = 3  # pages with the same entries, after which a listing no longer seems to advance
_LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "tasks/list",
          "skills/list")  # fmt: skip


@rule(
    "paging/unknown-cursor",
    "warning",
    "A cursor must be the `nextCursor` of an earlier page of the same listing. Clients must not make up their own.",
    fix="Send the `nextCursor` of the previous page unchanged, and no cursor for the first page.",
    meanwhile="If you did not issue the cursor, answer with the error -32602.",
    spec=_PAGING,
    fails="""
        = 2025-06-18
        > 2 tools/list {"cursor":"page-2"}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[],"nextCursor":"page-2"}
        > 3 tools/list {"cursor":"page-2"}
    """,
    on=(Request,),
    methods=_LISTS,
)
class UnknownCursor(StatefulCheck):
    """Report a cursor that the server did not issue. Checked later, because the page may be recorded late."""

    learns_from: ClassVar = {Result: _LISTS}

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._issued: dict[str, dict[str, None]] = {}
        """By method: the cursors that the server has issued."""

    def learn(self, message: Message) -> None:
        """Remember the cursor that a page issues."""
        cursor = member(message.body.value, "result", "nextCursor")
        if isinstance(cursor, str) and message.exchange:
            keep(self._issued.setdefault(message.exchange.method, {}), cursor, None)

    def check(self, message: Message) -> Iterator[Fault | Later]:
        """Look up the cursor of a request."""
        method, cursor = member(message.body.value, "method"), member(message.body.value, "params", "cursor")
        if isinstance(cursor, str) and not self.session.lossy and not self._knows(method, cursor):
            yield Later(self._later(method, cursor))

    def _later(self, method: str, cursor: str) -> Iterator[Fault]:
        if not self._knows(method, cursor):
            yield Fault(f"the cursor is not the nextCursor of an earlier page of {method}", "/params/cursor")

    def _knows(self, method: str, cursor: str) -> bool:
        return cursor in self._issued.get(method, ())


@dataclass(slots=True)
class _Suspect:
    """A page whose `nextCursor` leads back to a page that was already read."""

    message: Message
    cursor: str
    """Its `nextCursor`."""
    sentence: str


@dataclass(slots=True)
class _Walk:
    """What was read of a listing since its first page was requested last."""

    pages: dict[str | None, int | None] = field(default_factory=dict)
    """By cursor of the request: a hash of the names of the entries."""
    following: dict[str | None, str] = field(default_factory=dict)
    """By cursor of the request: the `nextCursor` of its answer."""
    alike: int = 0
    """How many of the latest pages have the same entries."""
    suspect: _Suspect | None = None
    decided: bool = False
    """The pages do repeat, which is reported, or the server reuses a cursor for other pages."""
    endless: bool = False
    """The pages do repeat."""

    def leads_back(self, cursor: str, to: str | None) -> bool:
        """Return whether a client that follows a cursor would come to the page of another one again."""
        followed: set[str | None] = set()
        step: str | None = cursor
        while step is not None and step not in followed:
            if step == to:
                return True
            followed.add(step)
            step = self.following.get(step)
        return False


@rule(
    "paging/no-advance",
    "error",
    """The `nextCursor` of a page leads back to a page that the client has already read, or three pages in a row have
    the same entries, so the listing never ends. Clients that read all pages loop forever, or until they time out. A
    cursor stands for a position in the listing. A server that reuses a cursor for other entries is not reported.""",
    fix="Leave out `nextCursor` on the last page, and use the `cursor` of the request to find the next page.",
    meanwhile="Stop at a cursor that you have already followed.",
    blame="server",
    spec=_PAGING,
    fails="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[],"nextCursor":"8"}
        > 3 tools/list {"cursor":"8"}
        < 3 = {"tools":[],"nextCursor":"8"}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[],"nextCursor":"8"}
        > 3 tools/list {"cursor":"8"}
        < 3 = {"tools":[]}
    """,
    on=(Result,),
    methods=_OFFERED,
    loss="A listing never ends",
)
class NoAdvance(StatefulCheck):
    """Report a cursor that leads back, once the same page came again, or at the end."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._walks: dict[str, _Walk] = {}  # by method

    def lose(self) -> None:
        """Forget the pages: some may be missing."""
        self._walks.clear()

    def check(self, message: Message) -> Iterator[Fault]:
        """Compare a page with those that were read before."""
        exchange = message.exchange
        if exchange is None:
            return
        cursor = member(exchange.request.body.value, "params", "cursor")
        walk = self._walks.setdefault(exchange.method, _Walk())
        if walk.decided or not (cursor is None or isinstance(cursor, str)):
            return
        names = _names(member(message.body.value, "result", LISTED[exchange.method]))
        entries = mark(names)
        if walk.suspect and cursor == walk.suspect.cursor and cursor in walk.pages:
            walk.decided = True
            walk.endless = walk.pages[cursor] == entries
            if walk.endless:
                yield Fault(walk.suspect.sentence, "/result/nextCursor", (message.n,), at=walk.suspect.message)
            return
        if cursor is None or len(walk.pages) >= FACTS:
            walk.pages.clear()
            walk.following.clear()
        following = member(message.body.value, "result", "nextCursor")
        if cursor not in walk.pages:
            before = next(reversed(walk.pages.values()), None)
            walk.alike = walk.alike + 1 if names and entries == before else 1
            if walk.alike == _ALIKE and isinstance(following, str):
                walk.decided = walk.endless = True
                yield Fault(f"{_ALIKE} pages of {exchange.method} in a row have the same entries, and each has another "
                            f"nextCursor: here {excerpt(following)}", "/result/nextCursor")  # fmt: skip
                return
        walk.pages[cursor] = entries
        if isinstance(following, str):
            walk.following[cursor] = following
            if following in walk.pages and walk.leads_back(following, cursor):
                walk.suspect = _Suspect(message, following, _back(exchange.method, cursor, following))

    def never_ends(self, method: str) -> bool:
        """Return whether a listing is reported, or will be at the end."""
        walk = self._walks.get(method)
        return walk is not None and (walk.endless or (walk.suspect is not None and not walk.decided))

    def close(self) -> Iterator[Fault]:
        """Report the cursors that lead back, and that the client did not follow again."""
        for walk in self._walks.values():
            if walk.suspect and not walk.decided:
                yield Fault(walk.suspect.sentence, "/result/nextCursor", at=walk.suspect.message)


def _names(entries: Any) -> list[Any]:
    """Return what identifies the entries of a page; the rest of a definition may change with the time."""
    found = entries if isinstance(entries, list) else []
    return [member(it, "uri") or member(it, "uriTemplate") or member(it, "name") for it in found]


def _back(method: str, cursor: str | None, following: str) -> str:
    if cursor == following:
        return f"the answer to {method} with cursor {excerpt(cursor)} has nextCursor {excerpt(following)} again"
    return f"nextCursor {excerpt(following)} leads back to a page of {method} that was already read"


@rule(
    "paging/empty-cursor",
    "warning",
    """`nextCursor` is an empty string. Many clients take it for the end of the listing, others request a further page
    with it, and may get the first page again. Since 2026-07-28 an empty string is a cursor like any other. Reported
    once per session and method.""",
    fix="Leave out `nextCursor` on the last page, and use a cursor that is not empty on every other page.",
    meanwhile="Stop if a page repeats.",
    blame="server",
    spec=_PAGING,
    revisions=HANDSHAKE,
    fails="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[],"nextCursor":""}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[]}
    """,
    on=(Result,),
    methods=_LISTS,
)
class EmptyCursor(StatefulCheck):
    """Report the first such page of each listing, unless `paging/no-advance` reports the listing."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._first: dict[str, Message] = {}  # by method

    def check(self, message: Message) -> Iterator[Fault]:
        """Remember a page with such a cursor."""
        if message.exchange and member(message.body.value, "result", "nextCursor") == "":
            self._first.setdefault(message.exchange.method, message)
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report the listings that end somewhere."""
        for method, page in self._first.items():
            if not self.session.of(NoAdvance).never_ends(method):
                yield Fault(f"nextCursor of {method} is an empty string; expected none on the last page",
                            "/result/nextCursor", at=page)  # fmt: skip


def _goes_on(session: Session, n: int, idle: Iterable[int]) -> int | None:
    """Return the first answered request of the client after line `n`, none of `idle`: listings and pings."""
    later = (request for (side, _), (request, _) in session.completed.items() if side == "client" and request > n)
    return min((request for request in later if request not in idle), default=None)


@rule(
    "paging/unread-pages",
    "info",
    """The client read the first pages of a listing, and went on with the session without reading the further ones. The
    user does not see what they contain, for example tools. Not reported if the client left at once.""",
    fix="Send the request again with the `nextCursor` of each page as its `cursor`, until a page has none.",
    meanwhile="Return all entries in one page, or those that matter most in the first page.",
    blame="client",
    spec=_PAGING,
    fails="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[],"nextCursor":"8"}
        > 3 tools/call {"name":"a"}
        < 3 = {"content":[]}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[],"nextCursor":"8"}
        > 3 tools/list {"cursor":"8"}
        < 3 = {"tools":[]}
        > 4 tools/call {"name":"a"}
        < 4 = {"content":[]}
    """,
    on=(Request, Result),
    methods=(*_OFFERED, "ping"),
    loss="The client reads only a part of a listing",
)
class UnreadPages(StatefulCheck):
    """Report the latest page of each listing, if the client did not follow its cursor."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._unread: dict[str, tuple[str, Message]] = {}  # by method: the cursor of the latest page, and the page
        self._followed: dict[tuple[str, str], int] = {}  # by method and cursor: the latest request with it
        self._idle: dict[int, None] = {}  # the line numbers of requests that are listings or pings

    def check(self, message: Message) -> Iterator[Fault]:
        """Remember which cursors were issued and which were followed."""
        exchange = message.exchange
        if exchange is None:
            return iter(())
        if isinstance(message.body, Request):
            keep(self._idle, message.n, None)
            cursor = member(message.body.params, "cursor")
            if isinstance(cursor, str):
                keep(self._followed, (exchange.method, cursor), message.n)
        else:
            following = member(message.body.value, "result", "nextCursor")
            if isinstance(following, str) and following:
                self._unread[exchange.method] = following, message
            else:
                self._unread.pop(exchange.method, None)
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report the pages that were not read."""
        if self.session.lossy:
            return
        for method, (cursor, page) in self._unread.items():
            later = _goes_on(self.session, page.n, self._idle)
            begun = page.exchange.request.n if page.exchange else page.n  # the page itself may be recorded late
            if later is not None and self._followed.get((method, cursor), 0) < begun:
                unused = f"nextCursor {excerpt(cursor)} is not used"
                yield Fault(f"the client never reads further pages of {method}: {unused}", "/result/nextCursor",
                            (later,), blame="client", at=page)  # fmt: skip


@rule(
    "paging/change-ignored",
    "info",
    """The server announced that a listing has changed. The client, which had read that listing before, went on with the
    session and did not read it again. The user does not see what is new, and may use what is gone.""",
    fix="Read the listing again after `list_changed`, or as soon as you need it.",
    meanwhile="Answer calls of tools that are gone with an error that says so.",
    blame="client",
    spec="server/tools#list-changed-notification",
    fails="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[{"name":"a","inputSchema":{"type":"object"}}]}
        < notifications/tools/list_changed
        @5 > 3 tools/call {"name":"a"}
        @6 < 3 = {"content":[]}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[{"name":"a","inputSchema":{"type":"object"}}]}
        < notifications/tools/list_changed
        @4 > 3 tools/list
        < 3 = {"tools":[{"name":"a","inputSchema":{"type":"object"}}]}
        @5 > 4 tools/call {"name":"a"}
        @6 < 4 = {"content":[]}
    """,
    on=(Request, Result, Notification),
    methods=(*_OFFERED, *_CHANGES, "ping"),
    loss="The client does not read a listing again that has changed",
)
class ChangeIgnored(StatefulCheck):
    """Report the first announcement of each listing that was read before and was not read again."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._read: dict[str, None] = {}  # methods
        self._changed: dict[str, tuple[tuple[str, ...], Message]] = {}  # by method of the announcement
        self._idle: dict[int, None] = {}  # the line numbers of requests that are listings or pings

    def check(self, message: Message) -> Iterator[Fault]:
        """Remember which listings were read, and which have changed since."""
        body, exchange = message.body, message.exchange
        if isinstance(body, Notification):
            read = tuple(it for it in _CHANGES.get(body.method, ()) if it in self._read)
            if read and message.sender == "server":
                self._changed.setdefault(body.method, (read, message))
        elif isinstance(body, Request):
            keep(self._idle, message.n, None)
            self._renew(body.method)
        elif exchange:
            self._read[exchange.method] = None
            self._renew(exchange.method)  # what a server sends after the announcement has the change
        return iter(())

    def _renew(self, method: str) -> None:
        for announced in [name for name, (read, _) in self._changed.items() if method in read]:
            del self._changed[announced]

    def close(self) -> Iterator[Fault]:
        """Report the changes after which the client went on."""
        session = self.session
        for read, message in self._changed.values():
            later = _goes_on(session, message.n, self._idle)
            if later is not None and not session.lossy and session.answered - message.t >= _WENT_ON:
                yield Fault(f"the client does not send {read[0]} again, although the list has changed", "",
                            (later,), blame="client", at=message)  # fmt: skip
