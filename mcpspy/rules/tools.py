"""Rules about tools: names, schemas and annotations in a listing, and whether calls and results conform to it.

The schemas of a tool come from a peer and are hostile until proved otherwise (see `mcpspy.spec.peer_schemas`). They are
measured once, when they are listed. A schema that was too costly is not tried again.
"""

import re
from collections.abc import Iterator
from typing import Any

from mcpspy.conversation.context import annotated
from mcpspy.conversation.facts import Tool, ToolListing
from mcpspy.conversation.model import Message, Session, SessionMemory
from mcpspy.conversation.wording import WORDS
from mcpspy.json_values import excerpt, member, pointer
from mcpspy.rules.rule import Fault, Severity, rule
from mcpspy.spec.peer_schemas import DIALECTS, Foreign, Judgement, Validity
from mcpspy.spec.revisions import DEFAULT_DIALECT, OUTPUT_SCHEMAS, Revision, since
from mcpspy.wire.jsonrpc import Error, Request, Result

_TOOLS = "server/tools"
_WRONG_PARAMS = -32602
_NAME, _TEXT = 128, 400  # characters of a name, and of a text that is searched
_UNKNOWN = (
    r"\b(?:unknown tool|tool not found|no such tool|no tool (?:named|with name))(?:\W{1,4}NAME)?\W{0,3}$"
    r"|\btool\W{1,3}NAME\W{1,3}(?:is |was )?(?:not found|unknown|not known|does not exist|not registered)\b"
)
"""Matches a text that says that there is no tool with a name."""

LISTED = """
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},\
"required":["text"]},"outputSchema":{"type":"object","required":["length"]}}]}
"""
"""The beginning of an example: a tool is listed."""


@rule(
    "tools/unknown-tool",
    "warning",
    """The client calls a tool that is not in the last list of the server, and the server has not announced a change of
    the list. Not reported if the list itself is invalid: clients read such a list differently, or not at all.""",
    fix="Call tools by their listed names, and list them again after `notifications/tools/list_changed`.",
    meanwhile="Send `notifications/tools/list_changed` when the tools change.",
    blame="client",
    spec=f"{_TOOLS}#calling-tools",
    fails=LISTED + '        > 3 tools/call {"name":"ecko","arguments":{"text":"a"}}',
    passes=LISTED + '        > 3 tools/call {"name":"echo","arguments":{"text":"a"}}',
    on=(Request,),
    methods=("tools/call",),
)
def unknown_tool(message: Message, session: Session) -> Iterator[Fault]:
    """Report a call of a tool that is not listed. Only if the listing is complete and certainly current."""
    listing = session.listing
    if not listing.complete or listing.t > message.t:
        return
    name = message.exchange.name if message.exchange else None
    if name is not None and name not in listing.tools and not _is_faulty(listing, session):
        yield Fault(f"the server lists no tool {excerpt(name)}", "/params/name")


def _is_faulty(listing: ToolListing, session: Session) -> bool:
    """Return whether a page of a listing has a fault, so that clients may know other tools than those."""
    pages = {listing.begun, *(tool.listed for tool in listing.tools.values())}
    return not pages.isdisjoint(session.explained)


@rule(
    "tools/arguments",
    "error",
    """The arguments of a call violate the tool's last listed `inputSchema`. The client or its model must send valid
    arguments. A server should answer with `isError` and the reason, so that the model can correct the call.""",
    fix="Give the model the `inputSchema` unchanged, and validate the arguments before you call the tool.",
    meanwhile="Answer with `isError: true` and the reason, so that the model can correct the call.",
    blame="client",
    spec=f"{_TOOLS}#tool",
    fails=LISTED + '        > 3 tools/call {"name":"echo","arguments":{"text":5}}',
    passes=LISTED + '        > 3 tools/call {"name":"echo","arguments":{"text":"5"}}',
    on=(Request,),
    methods=("tools/call",),
)
def arguments(message: Message, session: Session) -> Iterator[Fault]:
    """Report arguments that violate the tool's `inputSchema`."""
    tool = session.listing.now(message.exchange.name if message.exchange else None, message.t)
    given = member(message.body.value, "params").get("arguments", {}) if tool else None
    if tool is None or not isinstance(given, dict):
        return  # `schema/invalid` reports arguments that are not an object
    found = _judge(tool, "inputSchema", given, session)
    if found and found.outcome is Validity.INVALID:
        why = found.message or "invalid"
        sentence = f"arguments of {tool.definition['name'][:60]} violate its inputSchema: {why}"
        yield Fault(sentence, f"/params/arguments{found.pointer}", (tool.listed,))


@rule(
    "tools/arguments-fit",
    "info",
    """The server refuses a call with -32602 (invalid params), although the arguments satisfy the tool's last listed
    `inputSchema`. So the schema does not tell everything that the server requires, and the model cannot know it.""",
    fix="""Describe in the `inputSchema` what the tool requires: `required`, `enum`, `pattern`, `additionalProperties`.
    Report what a schema cannot express as a result with `isError: true`.""",
    meanwhile="Tell the model the text of the error, and let it try again.",
    spec=f"{_TOOLS}#error-handling",
    fails=LISTED + '        > 3 tools/call {"name":"echo","arguments":{"text":"a"}}\n'
    '        < 3 ! {"code":-32602,"message":"text is too short"}',
    passes=LISTED + '        > 3 tools/call {"name":"echo","arguments":{"text":"a"}}\n'
    '        < 3 = {"content":[{"type":"text","text":"text is too short"}],"isError":true}',
    on=(Error,),
    methods=("tools/call",),
)
def arguments_fit(message: Message, session: Session) -> Iterator[Fault]:
    """Report that arguments are refused although they satisfy the tool's `inputSchema`."""
    exchange = message.exchange
    if member(message.body.value, "error", "code") != _WRONG_PARAMS or exchange is None:
        return
    request, tool = exchange.request, session.listing.now(exchange.name, exchange.request.t)
    if tool is None or request.n in session.explained or _refused_as_unknown(message, session):
        return
    given = member(request.body.value, "params").get("arguments", {})
    found = _judge(tool, "inputSchema", given, session) if isinstance(given, dict) else None
    if found and found.outcome is Validity.VALID:
        name = tool.definition["name"][:60]
        yield Fault(f"the arguments satisfy the inputSchema of {name} (#{tool.listed}), but are refused with -32602",
                    "/error/code", (tool.listed,))  # fmt: skip


@rule(
    "tools/not-found",
    "warning",
    """The server lists a tool, but refuses a call of it as unknown. Users see a tool that never works. Often the
    listing and the calls have separate tables, or only some sessions have the tool.""",
    fix="List only tools that `tools/call` accepts, or let `tools/call` accept the tool as well.",
    meanwhile="Do not offer the tool.",
    blame="server",
    spec=f"{_TOOLS}#error-handling",
    about="failure",
    explains=("error", "tool-error"),
    fails=LISTED + '        > 3 tools/call {"name":"echo","arguments":{"text":"a"}}\n'
    '        < 3 ! {"code":-32602,"message":"Unknown tool: echo"}',
    passes=LISTED + '        > 3 tools/call {"name":"echo","arguments":{"text":"a"}}\n'
    '        < 3 = {"content":[],"structuredContent":{"length":1}}',
    on=(Error, Result),
    methods=("tools/call",),
)
def not_found(message: Message, session: Session) -> Iterator[Fault]:
    """Report that a listed tool is refused as unknown."""
    tool = _refused_as_unknown(message, session)
    if tool:
        place = "/error" if isinstance(message.body, Error) else "/result/content"
        yield Fault(f"the server lists the tool {tool.definition['name'][:60]} (#{tool.listed}), but refuses a "
                    "call because there is no such tool", place, (tool.listed,))  # fmt: skip


def _refused_as_unknown(message: Message, session: Session) -> Tool | None:
    """Return the listed tool of a call, if the answer says that there is no such tool."""
    exchange, body = message.exchange, message.body
    if exchange is None or exchange.name is None or len(exchange.name) > _NAME:
        return None
    if isinstance(body, Error):
        text = member(body.value, "error", "message")
    elif member(body.value, "result", "isError") is True:
        content = member(body.value, "result", "content")
        text = member(content[0], "text") if isinstance(content, list) and content else None
    else:
        return None
    unknown = _UNKNOWN.replace("NAME", re.escape(exchange.name))
    if not isinstance(text, str) or not re.search(unknown, text[:_TEXT], re.IGNORECASE):
        return None
    return session.listing.now(exchange.name, exchange.request.t)


@rule(
    "tools/structured-content",
    "error",
    "The `structuredContent` of a result violates the tool's last listed `outputSchema`.",
    fix="Return `structuredContent` that satisfies the `outputSchema`, or correct the `outputSchema`.",
    meanwhile="Use `content` in place of `structuredContent`.",
    blame="server",
    spec=f"{_TOOLS}#output-schema",
    revisions=OUTPUT_SCHEMAS,
    fails=LISTED + '        > 3 tools/call {"name":"echo","arguments":{"text":"a"}}\n'
    '        < 3 = {"content":[],"structuredContent":{"size":1}}',
    passes=LISTED + '        > 3 tools/call {"name":"echo","arguments":{"text":"a"}}\n'
    '        < 3 = {"content":[],"structuredContent":{"length":1}}',
    on=(Result,),
    methods=("tools/call",),
)
def structured_content(message: Message, session: Session) -> Iterator[Fault]:
    """Report a result that violates the tool's `outputSchema`."""
    tool = _called(message, session)
    if tool is None:
        return
    result = member(message.body.value, "result")
    if isinstance(result, dict) and "structuredContent" in result:
        found = _judge(tool, "outputSchema", result["structuredContent"], session)
        if found and found.outcome is Validity.INVALID:
            sentence = f"structuredContent of {tool.definition['name'][:60]} violates its outputSchema: {found.message}"
            yield Fault(sentence, f"/result/structuredContent{found.pointer}", (tool.listed,))


@rule(
    "tools/structured-missing",
    "error",
    "A tool with an `outputSchema` must return `structuredContent`, unless the call failed.",
    fix="""Return `structuredContent` with every successful result, or remove the `outputSchema`. Set `isError:
    true` if the call failed.""",
    meanwhile="Use `content`.",
    blame="server",
    spec=f"{_TOOLS}#output-schema",
    revisions=OUTPUT_SCHEMAS,
    fails=LISTED + '        > 3 tools/call {"name":"echo","arguments":{"text":"a"}}\n        < 3 = {"content":[]}',
    passes=LISTED + '        > 3 tools/call {"name":"echo","arguments":{"text":"a"}}\n'
    '        < 3 = {"content":[],"isError":true}',
    on=(Result,),
    methods=("tools/call",),
)
def structured_missing(message: Message, session: Session) -> Iterator[Fault]:
    """Report a result without the `structuredContent` that the `outputSchema` requires."""
    tool = _called(message, session)
    if tool is None:
        return
    result = member(message.body.value, "result")
    if not isinstance(result, dict) or "structuredContent" in result or "task" in result:
        return
    if result.get("isError") is not True and result.get("resultType", "complete") == "complete":
        yield Fault(f"{tool.definition['name'][:60]} has an outputSchema, but the result has no structuredContent",
                    "/result", (tool.listed,))  # fmt: skip


def _called(message: Message, session: Session) -> Tool | None:
    """Return the tool of a result as it was when it was called, or None if it had no `outputSchema`."""
    if not session.called:
        return None
    request = message.exchange.request if message.exchange else message
    return session.called.get((request.n, request.part))


def _judge(tool: Tool, which: str, value: Any, session: Session) -> Judgement | None:
    """Validate a value against a schema of a tool. Return None if there is no such schema."""
    schema = tool.definition.get(which)
    if not isinstance(schema, dict):
        return None
    known = tool.schemas.get(which)
    if known is None:
        known = tool.schemas[which] = Foreign(schema, session.budget)
    return known.judge(value)


_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")  # RFC 9110, 5.6.2


def _listed(message: Message) -> Iterator[tuple[int, dict[str, Any]]]:
    tools = member(message.body.value, "result", "tools")
    for place, tool in enumerate(tools if isinstance(tools, list) else ()):
        if isinstance(tool, dict):
            yield place, tool


def _schemas(message: Message, session: Session) -> Iterator[tuple[str, str, Judgement]]:
    """Yield the new schemas of a listing: pointer, name of the tool, and the result of checking the schema."""
    for place, tool in _listed(message):
        name = tool.get("name") if isinstance(tool.get("name"), str) else ""
        known = session.listing.tools.get(str(name))
        if known and known.definition == tool:
            continue  # reported when it was first listed
        checked = session.of(CheckedSchemas)
        for which in ("inputSchema", "outputSchema"):
            if isinstance(tool.get(which), dict):
                yield f"/result/tools/{place}/{which}", str(name)[:60], checked.of(tool[which], message)


class CheckedSchemas(SessionMemory):
    """The results of checking the schemas of the latest listing, which several rules need."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._listing = (0, 0)
        self._checked: dict[int, tuple[Any, Judgement]] = {}

    def of(self, schema: dict[str, Any], message: Message) -> Judgement:
        """Check a schema of a listing in its dialect."""
        if self._listing != (message.n, message.part):
            self._listing = message.n, message.part
            self._checked.clear()
        known = self._checked.get(id(schema))
        if known is None or known[0] is not schema:
            known = self._checked[id(schema)] = (schema, _check(schema, message, self.session))
        return known[1]


def _check(schema: dict[str, Any], message: Message, session: Session) -> Judgement:
    """Check a schema in its dialect. Before there was a default dialect, any dialect may be meant."""
    found = Foreign(schema, session.budget).check()
    if found.outcome is Validity.NO_SCHEMA and "$schema" not in schema and message.revision not in DEFAULT_DIALECT:
        others = (Foreign(schema | {"$schema": dialect}, session.budget).check() for dialect in DIALECTS)
        return next((other for other in others if other.outcome is not Validity.NO_SCHEMA), found)
    return found


@rule(
    "tools/schema-not-object",
    "error",
    """The `inputSchema` of a tool must have `"type": "object"`. Clients that validate the list, such as those of the
    TypeScript SDK, refuse all of it, and then offer no tool.""",
    fix='Add `"type": "object"` to the `inputSchema`, and name the arguments in its `properties`.',
    meanwhile="Leave out this tool, and keep the others.",
    blame="server",
    spec=f"{_TOOLS}#tool",
    about="shape",
    fails="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[{"name":"echo","inputSchema":{"type":"string"}}]}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}
    """,
    on=(Result,),
    methods=("tools/list",),
    loss="Some clients refuse the list of tools",
)
def schema_not_object(message: Message, session: Session) -> Iterator[Fault]:
    """Report an `inputSchema` that is missing or not the schema of an object."""
    for place, tool in _listed(message):
        schema = tool.get("inputSchema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            name = str(tool["name"])[:60] if "name" in tool else f"tool {place}, which has no name,"
            what = f'inputSchema of {name} must have "type": "object"'
            if "inputSchema" not in tool:
                what = f'{name} has no inputSchema; expected at least {{"type": "object"}}'
            yield Fault(what, f"/result/tools/{place}/inputSchema")


@rule(
    "tools/schema-invalid",
    "error",
    """The schema is invalid in its own dialect, or has a reference that cannot be resolved. Clients that compile it
    refuse the tool, or the whole list. Before 2025-11-25 a schema without `$schema` may use any dialect. A reference to
    an absolute URI is allowed, but a warning: clients must not fetch it, and should refuse the schema.""",
    fix="Correct the schema at the pointer in the finding, and test it with a validator of its dialect.",
    meanwhile="Leave out this tool, and keep the others.",
    blame="server",
    spec="basic#json-schema-usage",
    fails="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"echo","inputSchema":{"type":"object","required":"text"}}]}
    """,
    passes="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"echo","inputSchema":{"type":"object","required":["text"]}}]}
    """,
    on=(Result,),
    methods=("tools/list",),
)
def schema_invalid(message: Message, session: Session) -> Iterator[Fault]:
    """Report a schema that is invalid or has an unresolved reference."""
    for where, name, found in _schemas(message, session):
        if found.outcome in (Validity.NO_SCHEMA, Validity.UNRESOLVED, Validity.EXTERNAL):
            what = where.rpartition("/")[2]
            severity: Severity | None = "warning" if found.outcome is Validity.EXTERNAL else None
            sentence = f"{what} of {name} is not a valid schema: {found.message}"
            yield Fault(sentence, where + found.pointer, severity=severity)


@rule(
    "tools/schema-dialect",
    "warning",
    "The `$schema` names a dialect of JSON Schema that mcpspy does not support; peers may not support it either.",
    fix="Leave `$schema` out, or name draft 2020-12 or draft-07.",
    meanwhile="Call the tool without validation, and let the server refuse wrong arguments.",
    blame="server",
    spec="basic#json-schema-usage",
    fails="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"echo","inputSchema":{"$schema":"https://example.com/schema","type":"object"}}]}
    """,
    passes="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"echo","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#",\
"type":"object"}}]}
    """,
    on=(Result,),
    methods=("tools/list",),
)
def schema_dialect(message: Message, session: Session) -> Iterator[Fault]:
    """Report an unknown dialect."""
    for where, name, found in _schemas(message, session):
        if found.outcome is Validity.UNKNOWN_DIALECT:
            yield Fault(f"the schema of {name} has an unknown dialect: {found.message}", f"{where}/$schema")


@rule(
    "tools/schema-too-costly",
    "error",
    """The schema is larger than 256 KiB, deeper than 64 levels, or takes more than a second to evaluate. Clients should
    limit the cost of validation. mcpspy does too, and does not check the calls of this tool.""",
    fix="Make the schema smaller: share parts in `$defs`, and limit its depth.",
    meanwhile="Limit the size, the depth and the time of each validation.",
    blame="server",
    spec="basic#json-schema-usage",
    fails="""
        = 2025-11-25
        > 2 tools/list
        < |deep-schema 2
    """,
    passes="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}
    """,
    on=(Result,),
    methods=("tools/list",),
)
def schema_too_costly(message: Message, session: Session) -> Iterator[Fault]:
    """Report a schema that exceeds our limits."""
    for where, name, found in _schemas(message, session):
        if found.outcome in (Validity.TOO_LARGE, Validity.TOO_COSTLY):
            yield Fault(f"the schema of {name} is too costly to evaluate: {found.message}", where)
        elif found.outcome is Validity.NOT_JUDGED:
            yield Fault(f"the schema of {name} was not evaluated: {found.message}", where, severity="info")


@rule(
    "tools/duplicate-name",
    "warning",
    "Two tools of one listing have the same name, so a call is ambiguous.",
    fix="Give each tool a name of its own.",
    meanwhile="Offer only one of the two, and tell the user.",
    blame="server",
    spec=f"{_TOOLS}#tool-names",
    fails="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"echo",\
"inputSchema":{"type":"object"}}]}
    """,
    passes="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"Echo",\
"inputSchema":{"type":"object"}}]}
    """,
    on=(Result,),
    methods=("tools/list",),
)
def duplicate_name(message: Message, session: Session) -> Iterator[Fault]:
    """Report a name that is used twice on a page."""
    seen: dict[str, int] = {}
    for place, tool in _listed(message):
        name = tool.get("name")
        if isinstance(name, str) and seen.setdefault(name, place) != place:
            yield Fault(
                f"the name {excerpt(name)} is already in use by /result/tools/{seen[name]}",
                f"/result/tools/{place}/name",
            )


@rule(
    "tools/definition-changed",
    "info",
    """The definition of a tool has changed since the last listing: its schemas or other members. Changed texts
    (descriptions, titles, annotations) have their own rule, `security/definition-changed`.""",
    fix="Send `notifications/tools/list_changed` when a tool changes, and check that the change is intended.",
    meanwhile="Show the change to the user before you call the tool.",
    blame="server",
    spec=f"{_TOOLS}#list-changed-notification",
    fails=LISTED + "        < notifications/tools/list_changed\n        > 3 tools/list\n"
    '        < 3 = {"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}',
    passes=LISTED + "        < notifications/tools/list_changed\n        > 3 tools/list\n"
    '        < 3 = {"tools":[{"name":"other","inputSchema":{"type":"object"}}]}',
    on=(Result,),
    methods=("tools/list",),
)
def definition_changed(message: Message, session: Session) -> Iterator[Fault]:
    """Report a tool whose definition has changed."""
    for place, tool in _listed(message):
        name = tool.get("name")
        known = session.listing.tools.get(name) if isinstance(name, str) else None
        changed = {*known.definition, *tool}.difference(WORDS) if known and known.definition != tool else ()
        members = sorted(key for key in changed if known and known.definition.get(key) != tool.get(key))
        if known and members:
            announced = "" if session.listing.changed else " without a list_changed notification"
            sentence = f"{', '.join(members)[:100]} of {str(name)[:60]} changed{announced}"
            yield Fault(sentence, f"/result/tools/{place}", (known.listed,))


@rule(
    "tools/header-annotation",
    "error",
    """`x-mcp-header` names an HTTP header that repeats an argument (2026-07-28). It must be a non-empty token (RFC
    9110), unique in the tool, and on a string, an integer or a boolean. Over HTTP, clients must leave out a tool that
    violates this.""",
    fix="Set `x-mcp-header` to a valid header name that is unique in the tool, on a string, an integer or a boolean.",
    meanwhile="Leave out this tool, and keep the others.",
    blame="server",
    spec=f"{_TOOLS}#x-mcp-header",
    revisions=since(Revision.R2026_07_28),
    fails="""
        > 1 tools/list {META}
        < 1 = {"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[{"name":"query","inputSchema":\
{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"My Region"}}}}]}
    """,
    passes="""
        > 1 tools/list {META}
        < 1 = {"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[{"name":"query","inputSchema":\
{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}
    """,
    on=(Result,),
    methods=("tools/list",),
)
def header_annotation(message: Message, session: Session) -> Iterator[Fault]:
    """Report an `x-mcp-header` that cannot be a header."""
    for place, tool in _listed(message):
        seen: set[str] = set()
        for path, schema in annotated(tool.get("inputSchema")):
            where = pointer("result", "tools", place, "inputSchema", *path)
            name = schema["x-mcp-header"]
            if not isinstance(name, str) or not name or not _TOKEN.issuperset(name):
                yield Fault(f"{excerpt(name)} is not a valid header name", f"{where}/x-mcp-header")
            elif name.lower() in seen:
                yield Fault(f"two arguments have the header {excerpt(name)}", f"{where}/x-mcp-header")
            elif schema.get("type") not in ("string", "integer", "boolean"):
                yield Fault(
                    f"header {excerpt(name)} is on an argument that is not a string, an integer or a boolean", where
                )
            seen.add(str(name).lower())
