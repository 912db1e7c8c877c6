"""Rules about listings of tools: names, schemas and annotations.

The schemas of a tool come from a peer and are hostile until proved otherwise (see `mcpspy.spec.peer_schemas`). They are
measured once, when they are listed. A schema that was too costly is not tried again.
"""

from collections.abc import Iterator
from typing import Any

from mcpspy.conversation.context import annotated
from mcpspy.conversation.model import Message, Session, SessionMemory
from mcpspy.conversation.wording import WORDS
from mcpspy.json_values import excerpt, member, pointer
from mcpspy.rules.rule import Fault, Severity, rule
from mcpspy.rules.tools.calls import LISTED
from mcpspy.spec.peer_schemas import DIALECTS, Foreign, Judgement, Validity
from mcpspy.spec.revisions import DEFAULT_DIALECT, Revision, since
from mcpspy.wire.jsonrpc import Result

_TOOLS = "server/tools"
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
