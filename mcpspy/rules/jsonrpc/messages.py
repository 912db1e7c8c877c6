"""Rules about JSON-RPC: what every message must be, whatever its method.

A message that matches its definition exactly cannot break most of these rules, so the judge runs them only on others
(see `mcpspy.rules.plain`). `mcpspy.rules.jsonrpc.values` has the rules about the JSON itself.
"""

from collections.abc import Iterator

from mcpspy.conversation.model import Message, Session
from mcpspy.json_values import excerpt, member, pointer
from mcpspy.rules.framing import is_spread
from mcpspy.rules.jsonrpc.values import is_batch
from mcpspy.rules.pairing import NotificationAnswered, waiting_clause
from mcpspy.rules.rule import Fault, Later, rule
from mcpspy.spec.revisions import BATCHES, Revision, since, without
from mcpspy.wire.jsonrpc import Error, Id, Invalid, Notification, Request, Result

_BASIC = "basic#messages"
_REQUESTS = "basic#requests"
_NO_OBJECT = ("not an object", "an empty batch")  # ends of the reasons why JSON is not a message
_MEMBERS = {"jsonrpc", "id", "method", "params", "result", "error"}
_MESSAGES = (Request, Notification, Result, Error)


@rule(
    "jsonrpc/version-missing",
    "error",
    """Every message must have the member "jsonrpc" with the string "2.0". The clients of all SDKs drop a message
    without it and wait forever for the answer.""",
    fix='Add `"jsonrpc": "2.0"` to every message.',
    spec=_BASIC,
    about="shape",
    fails='> | {"id":1,"method":"ping"}',
    passes='> | {"jsonrpc":"2.0","id":1,"method":"ping"}',
)
def version_missing(message: Message, session: Session) -> Iterator[Fault]:
    """Report a member "jsonrpc" that is missing or not "2.0"."""
    value = message.body.value
    if isinstance(value, dict) and value.get("jsonrpc") != "2.0" and not is_spread(message, session):
        found = "is missing" if "jsonrpc" not in value else f"is {excerpt(value['jsonrpc'])}"
        yield Fault(f'the member "jsonrpc" {found}; expected "2.0"', "/jsonrpc" if "jsonrpc" in value else "")


@rule(
    "jsonrpc/not-an-object",
    "error",
    "A message must be a JSON object (in 2025-03-26 also a non-empty array of objects).",
    fix="Send each message as a JSON object, and nothing else on the same channel.",
    spec=_BASIC,
    fails="< | 42",
    passes="< notifications/tools/list_changed",
    on=(Invalid,),
)
def not_an_object(message: Message, session: Session) -> Iterator[Fault]:
    """Report JSON that is not an object."""
    body = message.body
    if isinstance(body, Invalid) and body.reason.endswith(_NO_OBJECT) and not is_spread(message, session):
        yield Fault(f"the message is {body.reason}")


@rule(
    "jsonrpc/neither-result-nor-error",
    "error",
    "A message must have a `method`, a `result` or an `error`. All peers drop a message without one of them.",
    fix="Send a `method`, or an `id` with a `result` or an `error`; an empty result is `{}`.",
    spec="basic#responses",
    fails='< | {"jsonrpc":"2.0","id":1}',
    passes='< | {"jsonrpc":"2.0","id":1,"result":{}}',
    on=(Invalid,),
)
def neither_result_nor_error(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report an object that is not a message."""
    body = message.body
    if isinstance(body, Invalid) and isinstance(body.value, dict) and not is_spread(message, session):
        if body.reason.startswith("neither"):
            yield Fault("the message has no method, no result and no error")
        elif body.reason.startswith("method"):
            yield Fault(f"the {body.reason}", "/method")
        elif body.reason.startswith("a log record"):
            yield Fault(f"this is {body.reason}")
        else:
            hint, meant = waiting_clause(message, since=0)
            fault = Fault(f"the result has no id, so it answers no request{hint}", related=meant)
            undecided = session.pending and body.value.get("jsonrpc") == "2.0"
            yield Later(_of_request(fault, message, session)) if undecided else fault


def _of_request(fault: Fault, message: Message, session: Session) -> Iterator[Fault]:
    """Yield a fault of a result, unless the result was one to a notification."""
    if not session.of(NotificationAnswered).decided(message):
        yield fault


@rule(
    "jsonrpc/id-null",
    "error",
    """The id of a request or a response must not be null. The only exception is an error for a request that could not
    be parsed.""",
    fix="Give each request an `id` of its own, a string or an integer, and copy it into the response.",
    spec=_REQUESTS,
    about="shape",
    fails='> | {"jsonrpc":"2.0","id":null,"method":"ping"}',
    passes='> | {"jsonrpc":"2.0","id":1,"method":"ping"}',
    on=(Request, Result),
)
def id_null(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report an id that is null."""
    if _id(message).kind == "null" and not _is_echo(message):
        answers = isinstance(message.body, Result)
        hint, meant = waiting_clause(message, since=0) if answers else ("", ())
        fault = Fault(f"the id is null; expected a string or an integer{hint}", "/id", meant)
        yield Later(_of_request(fault, message, session)) if answers and session.pending else fault


@rule(
    "jsonrpc/id-type",
    "error",
    "An id must be a string or an integer. SDKs drop a request with another type without an answer.",
    fix="Use a string or an integer as `id`, and copy it into the response.",
    spec=_REQUESTS,
    about="shape",
    fails='> | {"jsonrpc":"2.0","id":true,"method":"ping"}',
    passes='> | {"jsonrpc":"2.0","id":"true","method":"ping"}',
    on=(Request, Result, Error),
)
def id_type(message: Message, session: Session) -> Iterator[Fault]:
    """Report an id that is a boolean, an array or an object."""
    if _id(message).kind == "other" and not _is_echo(message):
        hint, meant = waiting_clause(message, since=0) if isinstance(message.body, Result) else ("", ())
        wrong = excerpt(message.body.value.get("id"))
        yield Fault(f"the id is {wrong}; expected a string or an integer{hint}", "/id", meant)


@rule(
    "jsonrpc/id-fraction",
    "error",
    """A numeric id must have no fraction and no exponent. Peers treat 1.0 differently: Python servers drop the request,
    TypeScript servers answer with id 1.""",
    fix="Write the `id` as an integer without fraction and exponent, or as a string.",
    spec=_REQUESTS,
    about="shape",
    fails='> | {"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    passes='> | {"jsonrpc":"2.0","id":15,"method":"ping"}',
    on=(Request, Result, Error),
)
def id_fraction(message: Message, session: Session) -> Iterator[Fault]:
    """Report a numeric id that is not written as an integer."""
    number = _id(message)
    if number.kind == "number" and not number.token.lstrip("-").isdigit() and not _is_echo(message):
        yield Fault(f"the id {number.token[:40]} is not an integer", "/id")


@rule(
    "jsonrpc/result-and-error",
    "error",
    """A response must have a `result` or an `error`, not both, even if one of them is null. Python clients use the
    error.""",
    fix="Leave `error` out of a response that succeeded, and `result` out of one that failed.",
    meanwhile="Ignore a member `error` that is `null`.",
    spec="basic#responses",
    about="shape",
    fails='< | {"jsonrpc":"2.0","id":1,"result":{},"error":null}',
    passes='< | {"jsonrpc":"2.0","id":1,"result":{}}',
    on=(Result, Error),
)
def result_and_error(message: Message, session: Session) -> Iterator[Fault]:
    """Report a response with a result and an error."""
    value = message.body.value
    if "result" in value and "error" in value:
        yield Fault("the response has a result and an error", "/error")


@rule(
    "jsonrpc/batch",
    "error",
    "Only 2025-03-26 has batches; peers of other revisions drop them.",
    fix="Send each message by itself: on a line of its own, or in a POST of its own.",
    spec="changelog",
    about="bytes",
    revisions=without(BATCHES),
    fails="""
        = 2025-06-18
        > | [{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"}]
    """,
    passes="""
        = 2025-03-26
        > | [{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"}]
    """,
)
def batch(message: Message, session: Session) -> Iterator[Fault]:
    """Report a batch."""
    if message.revision and not message.part and is_batch(message.frame.raw) and message.body.value is not None:
        yield Fault(f"the message is a batch; {message.revision.value} has no batches")


@rule(
    "jsonrpc/error-code",
    "error",
    """2026-07-28 reserves -32020 to -32099 for its own codes, and forbids -32002 and -32042, which earlier revisions
    used.""",
    fix="Use a code outside -32768 to -32000 for an error of your own, and -32602 for a resource that does not exist.",
    meanwhile="Show the `message` of an error whose code you do not know.",
    spec="basic#error-codes",
    revisions=since(Revision.R2026_07_28),
    fails="""
        > 1 tools/list {META}
        < 1 ! {"code":-32050,"message":"Busy"}
    """,
    passes="""
        > 1 tools/list {META}
        < 1 ! {"code":-31050,"message":"Busy"}
    """,
    on=(Error,),
)
def error_code(message: Message, session: Session) -> Iterator[Fault]:
    """Report an error code that is reserved."""
    code = member(message.body.value, "error", "code")
    if type(code) is int and (code in (-32002, -32042) or -32099 <= code <= -32023):
        here = message.revision.value if message.revision else ""
        yield Fault(f"error code {code} is reserved and not defined in {here}", "/error/code")


@rule(
    "jsonrpc/extra-member",
    "info",
    "A message has a member that JSON-RPC does not know. The TypeScript SDK refuses such a message as a whole.",
    fix="Move the member into the `_meta` of `params` or `result`.",
    meanwhile="Ignore members that you do not know.",
    spec="jsonrpc#request_object",
    about="shape",
    fails='> | {"jsonrpc":"2.0","id":1,"method":"ping","timestamp":12}',
    passes='> | {"jsonrpc":"2.0","id":1,"method":"ping"}',
    on=_MESSAGES,
)
def extra_member(message: Message, session: Session) -> Iterator[Fault]:
    """Report a member that JSON-RPC does not define."""
    for name in message.body.value:
        if name not in _MEMBERS:
            yield Fault(f"{excerpt(name)} is not a member of a JSON-RPC message", pointer(name))
            return


def _id(message: Message) -> Id:
    body = message.body
    found = body.id if isinstance(body, Request | Result | Error) else None
    return found or Id("absent", "")


def _is_echo(message: Message) -> bool:
    """Return whether a response has the same id as its request, whatever its type."""
    exchange = message.exchange
    return exchange is not None and exchange.request is not message and exchange.key[1] == _id(message)
