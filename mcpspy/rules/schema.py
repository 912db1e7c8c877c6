"""Rules about shapes: whether a message matches the schema of its revision.

A message is validated against the definition of its own method, a result against that of its request, never against a
union. `fits` is the fast path for nearly all messages. It passes if the message has exactly the right shape, without
additional or deprecated members and with valid formats. None of these rules can then find anything.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from mcpspy.conversation.context import becomes_round, dialect, missing_meta, used_extension
from mcpspy.conversation.model import Message, Session
from mcpspy.json_values import excerpt
from mcpspy.rules.rule import Fault, Severity, rule
from mcpspy.spec.extensions import EXTENSIONS, Dialect, extension_methods, extension_with
from mcpspy.spec.members import bad_formats, elsewhere, outdated
from mcpspy.spec.methods import error_definition, methods, result_definition, revisions_with_method
from mcpspy.spec.revisions import Revision, since
from mcpspy.spec.schema import PLACES, Explanation, explain, fits_exactly, verdict
from mcpspy.text import suggestion
from mcpspy.wire.jsonrpc import Error, Notification, Request, Result

_SCHEMA = "schema"
_CALLS = (Request, Notification)
_DECLARATION = "/capabilities/extensions"  # where MCP Apps and skills are declared in every revision
_OF_SCHEMA = re.compile(r"/tools/\d+/(inputSchema|outputSchema)(?:/|$)")
_GROUPS, _NAMED = 3, 3  # of a finding about many violations: the expectations that are named, and the places of each
_POINTER = 60  # characters of such a place
_UP_TO_META = ("", "/params", "/params/_meta")
_MESSAGES = (Request, Notification, Result, Error)
_EXTENSIBLE = (Request, Notification, Result)
_EXTENDED = frozenset(method for extension in EXTENSIONS.values() for method, _ in extension.additions)
"""The protocol's own methods to which extensions add definitions."""


Subject = tuple[str, Any, str]
"""The definition for a message, the part of the message that it applies to, and the pointer to that part."""


def subjects(message: Message, session: Session) -> list[Subject]:
    """Return all definitions for a message: its own, and those that negotiated extensions add."""
    spoken = dialect(message, session)
    own = subject(message, spoken)
    return [*([own] if own else []), *_additions(message, spoken)]


def is_extended(message: Message, session: Session) -> bool:
    """Return whether a negotiated extension adds a definition to one of the protocol's own messages."""
    return bool(_additions(message, dialect(message, session)))


def _additions(message: Message, spoken: Dialect) -> list[Subject]:
    body, method = message.body, message.method
    if method not in _EXTENDED or not isinstance(body, _EXTENSIBLE):
        return []
    value, pointer = (body.result, "/result") if isinstance(body, Result) else (body.value, "")
    return [(definition, value, pointer) for definition in spoken.additions(method, type(body))]


def subject(message: Message, spoken: Dialect | None = None) -> Subject | None:
    """Return the definition for a message by its method. Without `spoken`, only that of its revision.

    Return None if there is none: no revision, an unknown method, or a response to no request.
    """
    revision, body = message.revision, message.body
    if revision is None:
        return None
    method_of = spoken.method if spoken else methods(revision).get
    if type(body) is Request or type(body) is Notification:
        method = method_of(body.method)
        kind = "request" if type(body) is Request else "notification"
        return (method.definition, body.value, "") if method and method.kind == kind else None
    if type(body) is Result and message.exchange:
        method = method_of(message.exchange.method)
        if method and method.name == "tasks/result":
            method = method_of(message.exchange.underlying or "")
        if method:
            params = message.exchange.request.body.value.get("params") if method.as_task else None
            definition = (spoken.result if spoken else result_definition)(method, params, body.result)
            return definition, body.result, "/result"
    if isinstance(body, Error) and body.id and body.id.kind != "null":  # no request: unknown
        code = body.value["error"].get("code") if isinstance(body.value["error"], dict) else None
        return error_definition(revision, code), body.value, ""
    return None


class MethodFacts(NamedTuple):
    """What is known from the name of a method alone, in one revision."""

    senders: tuple[str, ...]
    definitions: dict[type, str]
    """By kind of message: its definition, if the method alone decides it."""
    extended: bool
    """Whether extensions may add definitions."""


_UNKNOWN = MethodFacts((), {}, extended=False)


def facts(name: str | None, revision: Revision | None) -> MethodFacts:
    """Return the facts of a method. They are empty for no method, an unknown method, or no revision."""
    return _facts(revision).get(name, _UNKNOWN) if name is not None and revision else _UNKNOWN


@cache
def _facts(revision: Revision) -> dict[str, MethodFacts]:
    """Return by method the facts of all methods of the revision, and of those that extensions extend."""
    return {name: _facts_of(name, revision) for name in methods(revision).keys() | _EXTENDED}


def _facts_of(name: str, revision: Revision) -> MethodFacts:
    method, extended = methods(revision).get(name), name in _EXTENDED
    if method is None:
        return MethodFacts((), {}, extended)
    definitions: dict[type, str] = {Request if method.kind == "request" else Notification: method.definition}
    depends = name == "tasks/result" or method.as_task or method.asks_back or method.typed
    if method.result and not depends:
        definitions[Result] = method.result
    return MethodFacts(method.senders, definitions, extended)


def fits(message: Message, told: MethodFacts) -> bool:
    """Return whether a message matches its definition exactly, and its envelope is that of JSON-RPC."""
    body, revision = message.body, message.revision
    if revision is None or body.refused:
        return False
    definition = told.definitions.get(type(body))
    if definition is None:
        found = subject(message)
        if found is None:
            return False
        definition = found[0]
    value = body.value
    number = type(value.get("id", 0))
    if number is not int and number is not str:
        return False
    if type(body) is not Result:
        return fits_exactly(revision, definition, value)
    return len(value) == 3 and value.get("jsonrpc") == "2.0" and fits_exactly(revision, definition, value["result"])


@rule(
    "schema/invalid",
    "error",
    """The message violates the schema of its revision: a member is missing, or has the wrong type. Strict peers refuse
    the message, others misread it.""",
    fix="Correct the member that the finding names. The types of an SDK catch this before you send it.",
    meanwhile="Answer a malformed request with the error -32602, and name the member.",
    spec=_SCHEMA,
    about="shape",
    fails="""
        = 2025-06-18
        > 2 tools/call {"arguments":{}}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"echo","arguments":{}}
    """,
    on=_MESSAGES,
    loss="A strict peer refuses a message",
)
def invalid(message: Message, session: Session) -> Iterator[Fault]:
    """Report the violations of a definition, and for tools those of their schemas apart from the others."""
    for definition, value, start in subjects(message, session):
        judged = value if start else _with_version(value)
        if message.revision is None or verdict(message.revision, definition, judged):
            continue
        faults = explain(message.revision, definition, judged)
        if not start and judged is not value:
            faults = [replace(it, found=excerpt(value)) if not it.pointer else it for it in faults]
        if missing_meta(message):  # reported by `lifecycle/meta-missing`
            faults = [it for it in faults if it.pointer not in _UP_TO_META]
        apart: dict[str, list[Explanation]] = {}
        for it in sorted(faults, key=lambda it: it.pointer == "/id"):  # rules of JSON-RPC tell more about an id
            apart.setdefault(_schema_of_tool(it), []).append(it)
        for some in apart.values():
            yield Fault(f"{definition}{_violations(some)}", start + some[0].pointer)
        if faults:
            return


def _schema_of_tool(fault: Explanation) -> str:
    """Return the member with a wrong schema of a tool, or an empty text. The group `tools` has rules for those."""
    if fault.expected == 'the member "inputSchema"':
        return "inputSchema"
    found = _OF_SCHEMA.match(fault.pointer)
    return found[1] if found else ""


def _violations(faults: Sequence[Explanation]) -> str:
    """Return violations as the rest of a sentence: those with the same expectation together, with their places."""
    if len(faults) == 1:
        return f": expected {faults[0].expected}, got {faults[0].found}"
    alike: dict[str, list[Explanation]] = {}
    for it in faults:
        alike.setdefault(it.expected, []).append(it)
    shown = list(alike.values())[:_GROUPS]
    more = len(faults) - sum(map(len, shown))
    least = "at least " if len(faults) == PLACES else ""
    told = "; ".join([*map(_alike, shown), *([f"{more} more"] if more else [])])
    return f", {least}{len(faults)} violations: {told}"


def _alike(faults: Sequence[Explanation]) -> str:
    """Return violations with the same expectation as a text."""
    named = ", ".join(it.pointer[1 : _POINTER + 1] or "the whole" for it in faults[:_NAMED])
    count = f", … ({len(faults)} places)" if len(faults) > _NAMED else ""
    got = f", got {faults[0].found}" if len({it.found for it in faults}) == 1 else ""
    return f"{named}{count}: expected {faults[0].expected}{got}"


def _with_version(value: dict[str, Any]) -> dict[str, Any]:
    """Return a message with a valid member `jsonrpc`. `jsonrpc/version-missing` reports an invalid one."""
    return value if value.get("jsonrpc") == "2.0" else value | {"jsonrpc": "2.0"}


@rule(
    "schema/unknown-method",
    "warning",
    """No revision and no known extension has this method, so it is probably a typo. A method is accepted if it has the
    name of an extension, or of an entry of `experimental`, that a side declared: `com.example/turbo` covers `turbo`,
    `turbo/…` and `notifications/turbo/…`, and the same with the full id in place of `turbo`.""",
    fix="Correct the name, or declare the extension if it is a method of your own.",
    meanwhile="Answer the request with the error -32601, and ignore a notification.",
    spec=_SCHEMA,
    about="shape",
    fails="""
        = 2025-06-18
        < notifications/resources/changed
    """,
    passes="""
        = 2025-06-18
        < notifications/resources/list_changed
    """,
    on=(Request, Notification),
)
def unknown_method(message: Message, session: Session) -> Iterator[Fault]:
    """Report a method that does not exist."""
    body = message.body
    if not isinstance(body, Request | Notification) or revisions_with_method(body.method):
        return
    if extension_with(body.method) or dialect(message, session).has_method(body.method):
        return  # `extension/not-negotiated` reports whether it was negotiated
    known = [name for revision in Revision for name in (*methods(revision), *extension_methods(revision))]
    hint = suggestion(body.method, known, "", most=2)
    yield Fault(f"no revision has the method {excerpt(body.method)}{hint and f'; {hint}'}", "/method")


@rule(
    "schema/method-not-in-revision",
    "error",
    """The method exists, but not in the revision in use. The methods of an extension exist only in the revisions for
    which the extension is written, even if it is declared.""",
    fix="Negotiate a revision that has the method, or do not use it.",
    meanwhile="Answer the request with the error -32601, and ignore a notification.",
    spec=_SCHEMA,
    about="shape",
    fails="""
        = 2025-03-26
        < 2 elicitation/create {"message":"Your name?","requestedSchema":{"type":"object","properties":{}}}
    """,
    passes="""
        = 2025-06-18
        < 2 elicitation/create {"message":"Your name?","requestedSchema":{"type":"object","properties":{}}}
    """,
    on=(Request, Notification),
)
def method_not_in_revision(message: Message, session: Session) -> Iterator[Fault]:
    """Report a method of another revision."""
    body = message.body
    if not isinstance(body, Request | Notification) or message.revision is None:
        return
    having, owner = revisions_with_method(body.method), extension_with(body.method)
    if not (having or owner) or used_extension(message) or dialect(message, session).has_method(body.method):
        return
    if having and not becomes_round(message):  # otherwise reported by `lifecycle/wrong-direction`
        yield Fault(f"{body.method} {_existence(having)}; {message.revision.value} does not have it", "/method")
    elif owner:
        sentence = f"{body.method} belongs to {owner.id}, which {message.revision.value} does not have"
        yield Fault(sentence, "/method")


@rule(
    "schema/member-not-in-revision",
    "info",
    "The member is defined, but not in the revision in use. That is allowed, and a peer will ignore it.",
    fix="Leave the member out, or negotiate a revision that has it.",
    meanwhile="Ignore the member.",
    spec=_SCHEMA,
    about="shape",
    fails="""
        = 2025-03-26
        > 2 tools/list
        < 2 = {"tools":[{"name":"echo","title":"Echo","inputSchema":{"type":"object"}}]}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[{"name":"echo","title":"Echo","inputSchema":{"type":"object"}}]}
    """,
    on=_MESSAGES,
)
def member_not_in_revision(message: Message, session: Session) -> Iterator[Fault]:
    """Report members of other revisions, each name once per message."""
    found = subject(message, dialect(message, session))
    if found is None or message.revision is None:
        return
    told: set[str] = set()
    for there in elsewhere(message.revision, found[0], found[1]):
        if there.name not in told and not there.pointer.endswith(_DECLARATION):
            told.add(there.name)
            sentence = f"`{there.name[:60]}` {_existence(there.revisions)}; {message.revision.value} does not have it"
            yield Fault(sentence, found[2] + there.pointer)


@rule(
    "schema/deprecated",
    "info",
    "The revision still has this feature, but deprecates it: it will be removed.",
    fix="Replace it before you move to a later revision; the linked page names what to use.",
    spec="deprecated",
    about="shape",
    revisions=since(Revision.R2026_07_28),
    fails="""
        > 1 tools/list {META logLevel info}
    """,
    passes="""
        > 1 tools/list {META}
    """,
    on=_MESSAGES,
)
def deprecated(message: Message, session: Session) -> Iterator[Fault]:
    """Report deprecated features, each name once per session."""
    found = subject(message, dialect(message, session))
    if found is None or message.revision is None:
        return
    for part in outdated(message.revision, found[0], found[1]):
        where = found[2] + part.pointer
        # the input is what the server requested, and is reported there
        if not where.startswith("/params/inputResponses/") and session.once(f"deprecated {part.name}"):
            yield Fault(f"{part.name[:60]} is deprecated in {message.revision.value}", where)


@rule(
    "schema/format",
    "warning",
    """A member that must be a URI (RFC 3986) or base64 (RFC 4648) is not valid. Peers that decode it will fail. A URI
    with letters outside ASCII, which must be percent-encoded, is an info, because the SDKs accept it.""",
    fix="Percent-encode spaces and other characters of a URI, and encode binary content as base64.",
    spec=_SCHEMA,
    about="shape",
    fails="""
        = 2025-06-18
        > 2 resources/read {"uri":"weather oslo"}
    """,
    passes="""
        = 2025-06-18
        > 2 resources/read {"uri":"weather:oslo"}
    """,
    on=_MESSAGES,
)
def format_(message: Message, session: Session) -> Iterator[Fault]:
    """Report strings that violate their format."""
    for definition, value, pointer in subjects(message, session):
        for bad in bad_formats(message.revision, definition, value) if message.revision else ():
            severity: Severity | None = "info" if bad.format == "iri" else None
            yield Fault(f"{bad.found} is not a valid {bad.why}", pointer + bad.pointer, severity=severity)


def _existence(revisions: tuple[Revision, ...]) -> str:
    """Return in which revisions something exists, in few words."""
    every = tuple(Revision)
    first, last = revisions[0], revisions[-1]
    if first is last:
        return f"exists in {first.value} only"
    if last is every[-1]:
        return f"exists since {first.value}"
    return f"was removed after {last.value}" if first is every[0] else f"exists from {first.value} to {last.value}"
