"""Rules about stateless requests (2026-07-28): the `_meta` of each has what the handshake had before.

`mcpspy.rules.mrtr` has the rules for the input that servers request, `mcpspy.rules.subscription` those for their
notifications.
"""

from collections.abc import Iterator
from typing import ClassVar

from mcpspy.conversation.context import dialect, missing_meta, stated_revision, used_extension
from mcpspy.conversation.model import Message, Session
from mcpspy.json_values import excerpt, member
from mcpspy.rules.rule import Fault, Later, Severity, StatefulCheck, rule
from mcpspy.spec.extensions import EXTENSIONS, is_known
from mcpspy.spec.revisions import PROTOCOL_VERSION, STATELESS
from mcpspy.text import series
from mcpspy.wire.jsonrpc import Notification, Request, Result

_LOG_LEVEL = "io.modelcontextprotocol/logLevel"


@rule(
    "lifecycle/discover-missing-meta",
    "error",
    """Every request of 2026-07-28 must have its revision and the client's capabilities in `params._meta`, also
    `server/discover`. A request without them is malformed.""",
    fix="""Add `io.modelcontextprotocol/protocolVersion` and `io.modelcontextprotocol/clientCapabilities` to
    `params._meta`.""",
    meanwhile="Answer with the error -32602, and name the missing member.",
    blame="client",
    spec="basic#_meta",
    about="shape",
    fails="> 1 server/discover {}",
    passes="> 1 server/discover {META}",
    on=(Request,),
    methods=("server/discover",),
)
def discover_missing_meta(message: Message, session: Session) -> Iterator[Fault]:
    """Report a `server/discover` without the revision in its `_meta`."""
    if stated_revision(message) is None:
        yield Fault(f"params._meta of server/discover lacks {PROTOCOL_VERSION}", "/params")


@rule(
    "lifecycle/meta-missing",
    "error",
    """Every request of 2026-07-28 must have its revision and the client's capabilities in `params._meta`, because there
    is no session that keeps them.""",
    fix="""Add `io.modelcontextprotocol/protocolVersion` and `io.modelcontextprotocol/clientCapabilities` to
    `params._meta` of every request.""",
    meanwhile="Answer with the error -32602, and name the missing member.",
    blame="client",
    spec="basic#_meta",
    about="shape",
    revisions=STATELESS,
    fails="""
        > 1 tools/list {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}
    """,
    passes="""
        > 1 tools/list {META}
    """,
    on=(Request,),
)
def meta_missing(message: Message, session: Session) -> Iterator[Fault]:
    """Report a request without the required `_meta`. `server/discover` has a rule of its own."""
    missing, revision = missing_meta(message), message.revision
    if missing and revision and is_known(message.body.value["method"], revision):
        yield Fault(f"params._meta of the request lacks {series(missing)}", "/params")


@rule(
    "lifecycle/logging-without-level",
    "error",
    """A server of 2026-07-28 must send log messages only for requests with `io.modelcontextprotocol/logLevel` in their
    `_meta`.""",
    fix="""Send `notifications/message` only for a request with `io.modelcontextprotocol/logLevel` in its `_meta`;
    write other logs to stderr.""",
    meanwhile="Add `io.modelcontextprotocol/logLevel` to the `_meta` of requests whose logs you want.",
    blame="server",
    spec="server/utilities/logging",
    revisions=STATELESS,
    fails="""
        > 1 tools/list {META}
        < notifications/message {"level":"info","data":"listing"}
    """,
    passes="""
        > 1 tools/list {META logLevel info}
        < notifications/message {"level":"info","data":"listing"}
    """,
    on=(Notification,),
    methods=("notifications/message",),
)
class LoggingWithoutLevel(StatefulCheck):
    """Report log messages that no request asked for."""

    learns_from: ClassVar = {Request: ()}

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._asked = False

    def learn(self, message: Message) -> None:
        """Remember whether a request asks for log messages."""
        self._asked = self._asked or _asks_for_logs(message)

    def check(self, message: Message) -> Iterator[Fault | Later]:
        """Report a log message if no request asked for one. Over HTTP it belongs to one request."""
        carried = message.http.request.carried if message.http and message.http.request else []
        if carried:
            if not any(_asks_for_logs(request) for request in carried):
                yield Fault("a log message, but its request has no io.modelcontextprotocol/logLevel", "/method")
        elif not self._asked and not self.session.lossy:
            yield Later(self._later())

    def _later(self) -> Iterator[Fault]:
        if not self._asked:
            yield Fault("a log message, but no request has io.modelcontextprotocol/logLevel", "/method")


def _asks_for_logs(request: Message) -> bool:
    return member(request.body.value, "params", "_meta", _LOG_LEVEL) is not None


@rule(
    "lifecycle/result-type-unknown",
    "warning",
    """The `resultType` of a result must be `complete`, `input_required`, or a type of a declared extension. For an
    extension that mcpspy does not know, the type must begin with the first word of the extension's name. A client must
    not accept an unknown type. It is an error if the type belongs to a known extension but not to this method.""",
    fix="Set `resultType` to `complete`, to `input_required`, or to a type of an extension that the client declared.",
    meanwhile="Treat the result as an error, and do not read its members.",
    blame="server",
    spec="basic#resulttype",
    about="shape",
    revisions=STATELESS,
    fails="""
        > 1 tools/list {META}
        < 1 = {"resultType":"partial","tools":[],"ttlMs":0,"cacheScope":"public"}
    """,
    passes="""
        > 1 tools/list {META}
        < 1 = {"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public"}
    """,
    on=(Result,),
)
def result_type_unknown(message: Message, session: Session) -> Iterator[Fault]:
    """Report a result type that neither the protocol nor a declared extension defines for the method."""
    found, method = member(message.body.value, "result", "resultType"), message.method
    if not isinstance(found, str) or method is None or used_extension(message):
        return
    if not dialect(message, session).has_result_type(found, method):
        methods = [name for it in EXTENSIONS.values() for name in it.result_types.get(found, ())]
        why = f"is allowed for {series(methods)} only" if methods else "is not defined by the protocol"
        severity: Severity | None = "error" if methods else None
        yield Fault(f"the result type {excerpt(found)} {why}", "/result/resultType", severity=severity)
