"""Rules about what clients and model APIs refuse although MCP allows it. They run only if clients are named.

The rows of `mcpspy.spec.client_limits` decide. A tool is checked when it is first listed, and again when its definition
changes. All clients that refuse a tool for the same reason share one finding. Its severity is that of the worst effect:
error if one tool makes all tools unavailable, warning if only this tool is left out.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mcpspy.conversation.bounds import keep
from mcpspy.conversation.model import Message, Session
from mcpspy.conversation.offers import page
from mcpspy.cost import compact_size, encoded_size, tokens
from mcpspy.json_values import Path, excerpt, member, pointer, steps_of
from mcpspy.rules.content import media_in
from mcpspy.rules.rule import RULES, SEVERITIES, Fault, Finding, Later, Severity, StatefulCheck, rule
from mcpspy.spec.client_limits import Effect, Limit, limits
from mcpspy.spec.peer_schemas import DIALECTS, Foreign, Judgement, Validity
from mcpspy.spec.revisions import HANDSHAKE, Lifetime, Revision
from mcpspy.text import series
from mcpspy.wire.jsonrpc import Result

_SEVERITY: dict[Effect, Severity] = {
    Effect.REQUEST: "error",
    Effect.LIST: "error",
    Effect.TOOL: "warning",
    Effect.CUT: "info",
}
_GROUP = "compat/"
_LEVELS = 64  # of a schema that are checked
_NAMED = ("properties", "patternProperties", "dependencies", "$defs", "definitions")
"""Keywords whose value contains schemas by name."""
_APPLIED = ("items", "additionalProperties", "contains", "not", "if", "then", "else")
_LISTED = ("items", "allOf", "anyOf", "oneOf")


@dataclass(frozen=True, slots=True)
class Breach:
    """A limit that one tool breaks for some clients."""

    got: str
    """What the tool has. The text follows the name of the tool in the sentence. Empty if the name is enough."""
    broken: Sequence[Limit]
    """The limits that refuse the tool. If it is empty, nothing is reported."""
    path: Path
    """The path inside the tool."""
    advice: str


_ToolCheck = Callable[[dict[str, Any], Sequence[Limit], Session], Iterator[Breach]]
"""A check of a tool that is new or has changed, against the limits that apply."""


def tool_rule(
    id: str,  # noqa: A002 (it is what a rule has)
    severity: Severity,
    explanation: str,
    *,
    fix: str,
    meanwhile: str,
    spec: str,
    fails: str,
    passes: str,
    revisions: Lifetime = tuple(Revision),
) -> Callable[[_ToolCheck], _ToolCheck]:
    """Enter a check of single tools into the table of rules. Its limits have the same id in their own table."""

    def enter(check: _ToolCheck) -> _ToolCheck:
        def breaches(message: Message, session: Session) -> Iterator[Fault]:
            known = limits(id, session.clients)
            for place, tool in _new_tools(message, session) if known else ():
                for breach in check(tool, known, session):
                    where = pointer("result", "tools", place, *breach.path)
                    got = " ".join(filter(None, ("tool", excerpt(tool.get("name")), breach.got)))
                    yield from refused(got, breach.broken, where, breach.advice)

        row = rule(id, severity, explanation, fix=fix, meanwhile=meanwhile, blame="server", spec=spec, fails=fails,
                   passes=passes, on=(Result,), methods=("tools/list",), revisions=revisions)  # fmt: skip
        row(breaches)
        return check

    return enter


def _new_tools(message: Message, session: Session) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the tools of a listing that are new or have changed, each with its index."""
    found = page(message)
    for place, tool in enumerate(found.entries or () if found else ()):
        name = member(tool, "name")
        known = session.listing.tools.get(name) if isinstance(name, str) else None
        if isinstance(tool, dict) and not (known and known.definition == tool):
            yield place, tool


def refused(got: str, broken: Sequence[Limit], where: str, advice: str) -> Iterator[Fault]:
    """Yield the fault for the broken limits, if there are any: what was listed, who refuses it, and what to do."""
    if not broken:
        return
    expected: dict[str, dict[Effect, list[str]]] = {}
    for limit in broken:
        expected.setdefault(limit.expected, {}).setdefault(limit.effect, []).append(limit.client)
    clauses = []
    for what, effects in expected.items():
        otherwise = ", ".join(f"{effect.value} ({', '.join(clients)})" for effect, clients in effects.items())
        clauses.append(f"expected {what}, else {otherwise}")
    worst = min(broken, key=lambda limit: SEVERITIES.index(_SEVERITY[limit.effect]))
    sentence = f"{got}; {'; '.join(clauses)}; {advice}"
    yield Fault(sentence, where, severity=_SEVERITY[worst.effect], source=worst.source)


def refusals(message: Message, session: Session) -> Iterator[Finding]:
    """Yield what the clients of a session refuse in a page of tools, apart from any judge."""
    for row in RULES.values():
        if row.id.startswith(_GROUP) and message.method in row.methods:
            for fault in row.ask(message, session):
                if isinstance(fault, Fault):
                    yield row.finding(fault, message)


def subschemas(schema: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each subschema that is an object, with its path, the whole schema first. Stop below 64 levels."""
    stack: list[tuple[Path, Any]] = [((), schema)]
    while stack:
        path, node = stack.pop()
        if not isinstance(node, dict) or len(path) > _LEVELS:
            continue
        yield path, node
        inner: list[tuple[Path, Any]] = [((*path, keyword), node.get(keyword)) for keyword in _APPLIED]
        for keyword in _NAMED:
            named = node.get(keyword)
            inner += [((*path, keyword, name), it) for name, it in named.items()] if isinstance(named, dict) else []
        for keyword in _LISTED:
            listed = node.get(keyword)
            inner += [((*path, keyword, n), it) for n, it in enumerate(listed)] if isinstance(listed, list) else []
        stack += reversed(inner)


@tool_rule(
    "compat/tool-name",
    "error",
    """A client or model API refuses the name of a tool: MCP allows dots and any length, most model APIs allow
    neither. Reported only with `--client`.""",
    fix="""Rename the tool: 1 to 58 letters, digits, `_` and `-`, starting with a letter, work in every client of
    docs/compat.md.""",
    meanwhile="""Replace other characters and shorten the name before you send the tools to the model API, or
    disable the tool.""",
    spec="server/tools#tool-names",
    fails="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"city.forecast","inputSchema":{"type":"object","properties":{}}}]}
    """,
    passes="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"city_forecast","inputSchema":{"type":"object","properties":{}}}]}
    """,
)
def tool_name(tool: dict[str, Any], known: Sequence[Limit], session: Session) -> Iterator[Breach]:
    """Report a name that does not match the pattern of a client."""
    name = tool.get("name")
    if isinstance(name, str):
        broken = [limit for limit in known if not re.fullmatch(limit.pattern, name)]
        got = f"has a name of {len(name)} characters" if len(name) > 58 else ""
        yield Breach(got, broken, ("name",), "rename the tool")


@tool_rule(
    "compat/property-name",
    "error",
    """A client or model API refuses the name of an argument, such as `filter[id]` or `$top`, which servers generated
    from a REST API often have. Reported only with `--client`.""",
    fix="Rename the property in the `inputSchema`, and translate it back in the server.",
    meanwhile="Rename the property before you send the tools to the model API, or disable the tool.",
    spec="server/tools#tool",
    fails="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"filter[id]":{"type":"string"}}}}]}
    """,
    passes="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"filter.id":{"type":"string"}}}}]}
    """,
)
def property_name(tool: dict[str, Any], known: Sequence[Limit], session: Session) -> Iterator[Breach]:
    """Report the first top-level property whose name does not match the pattern of a client."""
    names = member(tool, "inputSchema", "properties")
    for name in names if isinstance(names, dict) else ():
        broken = [limit for limit in known if not re.fullmatch(limit.pattern, name)]
        if broken:
            yield Breach(f"has the property {excerpt(name)}", broken, ("inputSchema", "properties", name), "rename it")
            break


@tool_rule(
    "compat/description-length",
    "info",
    """A client cuts the description of a tool, so the model does not see the rest. Reported only with
    `--client`.""",
    fix="Put what matters first, and move reference material into a resource.",
    meanwhile="Warn the user when you cut a description.",
    spec="server/tools#tool",
    fails="""
        = 2025-11-25
        > 2 tools/list
        < |description2049 2
    """,
    passes="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"a","description":"short","inputSchema":{"type":"object","properties":{}}}]}
    """,
)
def description_length(tool: dict[str, Any], known: Sequence[Limit], session: Session) -> Iterator[Breach]:
    """Report a description that is longer than a client passes on."""
    text = tool.get("description")
    if isinstance(text, str):
        broken = [limit for limit in known if len(text) > limit.most]
        yield Breach(f"has a description of {len(text):,} characters", broken, ("description",), "shorten it")


@rule(
    "compat/tool-count",
    "error",
    """The server lists more tools than a model API accepts in one request. A client sends the tools of all its servers
    in one request, so it can exceed the limit even if each server stays below it. Reported only with `--client`.""",
    fix="Offer fewer tools, or let the user choose groups of them.",
    meanwhile="Let the user disable tools; as a user, disable servers and tools that you do not need.",
    blame="server",
    spec="server/tools#listing-tools",
    fails="""
        = 2025-11-25
        > 2 tools/list
        < |tools129 2
    """,
    passes="""
        = 2025-11-25
        > 2 tools/list
        < |tools128 2
    """,
    on=(Result,),
    methods=("tools/list",),
)
class ToolCount(StatefulCheck):
    """Report more tools than a client accepts, over all pages of a listing. Reported once for each number of tools.

    Several listings may share a cursor, so a page may belong to any of them. Then the smallest count before it is used.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._limits = limits("compat/tool-count", session.clients)
        self._before: dict[str, int] = {}
        """By cursor: the number of tools on the pages before the page that the cursor requests."""

    def check(self, message: Any) -> Iterator[Fault | Later]:
        """Count the tools of the next page, and report on the last page."""
        found, request = page(message), message.exchange.request if message.exchange else None
        if found is None or request is None:
            return
        cursor = member(request.body.value, "params", "cursor")
        more = member(message.body.value, "result", "nextCursor")
        counted = len(found.entries or ()) + (self._before.get(cursor, 0) if isinstance(cursor, str) else 0)
        if isinstance(more, str):
            keep(self._before, more, min(counted, self._before.get(more, counted)))
        broken = [limit for limit in self._limits if counted > limit.most]
        if found.last and broken and self.session.once(f"tool-count {counted}"):
            yield from refused(f"the server lists {counted:,} tools", broken, "/result/tools", "offer fewer tools")


_SIZE = "anthropic/maxResultSizeChars"
"""The member of a tool's `_meta` with which a server raises the limit of Claude Code."""


@rule(
    "compat/image-type",
    "error",
    """A tool returns an image of a type that the API of a model refuses, such as SVG. Clients keep the image in the
    conversation, so each later request fails too. Reported only with `--client`.""",
    fix="Return PNG or JPEG, which work in every client of docs/compat.md. Return an SVG as text or as a resource.",
    meanwhile="Convert the image, or replace it with a text, before you send the conversation to the API.",
    blame="server",
    spec="schema#imagecontent",
    fails="""
        = 2025-11-25
        > 2 tools/call {"name":"chart","arguments":{}}
        < 2 = {"content":[{"type":"image","data":"PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=",\
"mimeType":"image/svg+xml"}]}
    """,
    passes="""
        = 2025-11-25
        > 2 tools/call {"name":"chart","arguments":{}}
        < 2 = {"content":[{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB","mimeType":"image/png"}]}
    """,
    on=(Result,),
    methods=("tools/call", "tasks/result"),
)
class ImageType(StatefulCheck):
    """Report images of a type that is not in the list of a client."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._limits = limits("compat/image-type", session.clients)

    def check(self, message: Any) -> Iterator[Fault]:
        """Compare the types of the images in a result."""
        for media in media_in(message) if self._limits else ():
            if media.kind == "image":
                broken = [limit for limit in self._limits if media.declared not in limit.keywords]
                got = f"{_tool(message)} returns an image of type {excerpt(media.declared)}"
                yield from refused(got, broken, pointer(*media.path[:-1], "mimeType"), "return PNG or JPEG")


@rule(
    "compat/result-size",
    "info",
    """A tool returns more than a client gives to its model: the rest is cut off, or the model gets a path or an error
    in place of the result. The tokens are estimated. Reported only with `--client`.""",
    fix="Return less: pages, a limit as an argument, a link to a resource.",
    meanwhile="As a user of Claude Code, raise `MAX_MCP_OUTPUT_TOKENS`.",
    blame="server",
    spec="server/tools#calling-tools",
    fails="""
        = 2025-11-25
        > 2 tools/call {"name":"log","arguments":{}}
        < |result110000 2
    """,
    passes="""
        = 2025-11-25
        > 2 tools/call {"name":"log","arguments":{}}
        < 2 = {"content":[{"type":"text","text":"short"}]}
    """,
    on=(Result,),
    methods=("tools/call", "tasks/result"),
)
class ResultSize(StatefulCheck):
    """Report results that are larger than a client passes on."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._limits = limits("compat/result-size", session.clients)
        self._least = min((limit.most for limit in self._limits), default=0)

    def check(self, message: Message) -> Iterator[Fault]:
        """Compare the size of a result."""
        if not self._limits or tokens(len(message.frame.raw)) <= self._least:
            return
        tool = self.session.listing.tools.get(message.name or "")
        if tool and member(tool.definition, "_meta", _SIZE) is not None:
            return
        result = message.body.value.get("result")
        size = tokens(compact_size(result) - encoded_size(result))
        broken = [limit for limit in self._limits if size > limit.most]
        yield from refused(f"{_tool(message)} returns ~{size:,} tokens", broken, "/result", "return less")


def _tool(message: Message) -> str:
    return f"tool {excerpt(message.name)}" if message.name else "a tool"


_TOOL = "server/tools#tool"


def _listed(*schemas: str, revision: str = "2025-11-25") -> str:
    """Return an example: a listing whose tools have these members."""
    tools = ",".join(f'{{"name":"tool_{n}",{members}}}' for n, members in enumerate(schemas, 1))
    return f'= {revision}\n> 2 tools/list\n< 2 = {{"tools":[{tools}]}}'


@tool_rule(
    "compat/schema-missing",
    "error",
    """A tool has no `inputSchema`, or one that is not an object. MCP requires it, and clients that parse the list as a
    whole then reject all tools of the server. Reported only with `--client`.""",
    fix='Add an `inputSchema`; that of a tool without arguments is `{"type": "object", "properties": {}}`.',
    meanwhile="Leave out this tool, keep the others, and tell the user.",
    spec=_TOOL,
    fails=_listed('"description":"Ring the bell"'),
    passes=_listed('"description":"Ring the bell","inputSchema":{"type":"object","properties":{}}'),
)
def schema_missing(tool: dict[str, Any], known: Sequence[Limit], session: Session) -> Iterator[Breach]:
    """Report a tool without an `inputSchema`."""
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict):
        got = f"the inputSchema {excerpt(schema)}" if "inputSchema" in tool else "no inputSchema"
        yield Breach(f"has {got}", known, ("inputSchema",), 'add {"type": "object", "properties": {}}')


@tool_rule(
    "compat/schema-type",
    "error",
    """The `inputSchema` has no `"type": "object"` at its top level. MCP requires it there: in the branches of an
    `anyOf` it is not enough. Clients that validate the list then reject all tools of the server, often without a
    message. Reported only with `--client`.""",
    fix='Add `"type": "object"` to the top level of the `inputSchema`.',
    meanwhile="Leave out this tool, keep the others, and tell the user.",
    spec=_TOOL,
    fails=_listed('"inputSchema":{"anyOf":[{"type":"object"}]}'),
    passes=_listed('"inputSchema":{"type":"object","properties":{}}'),
)
def schema_type(tool: dict[str, Any], known: Sequence[Limit], session: Session) -> Iterator[Breach]:
    """Report an `inputSchema` without `"type": "object"`."""
    schema = tool.get("inputSchema")
    if isinstance(schema, dict) and schema.get("type") != "object":
        yield Breach(f"has an inputSchema {_type_of(schema)}", known, ("inputSchema", "type"), _ADD_TYPE)


@tool_rule(
    "compat/output-schema-type",
    "error",
    """The `outputSchema` does not have `"type": "object"`. In 2025-11-25 and earlier revisions, clients that validate
    the list reject all tools of the server because of it. Reported only with `--client`.""",
    fix="Describe an object, and put any other value into one of its properties, for example `result`.",
    meanwhile="Keep the tool and ignore its `outputSchema`.",
    spec="server/tools#output-schema",
    revisions=HANDSHAKE,
    fails=_listed('"inputSchema":{"type":"object","properties":{}},"outputSchema":{"type":"array","items":{}}'),
    passes=_listed('"inputSchema":{"type":"object","properties":{}},"outputSchema":{"type":"object"}'),
)
def output_schema_type(tool: dict[str, Any], known: Sequence[Limit], session: Session) -> Iterator[Breach]:
    """Report an `outputSchema` without `"type": "object"`."""
    schema = tool.get("outputSchema")
    if isinstance(schema, dict) and schema.get("type") != "object":
        yield Breach(f"has an outputSchema {_type_of(schema)}", known, ("outputSchema",), _ADD_TYPE)


@tool_rule(
    "compat/output-schema-reference",
    "error",
    """A `$ref` of the `outputSchema` cannot be resolved, or is a URL. Clients that compile output schemas when they
    receive the list then reject all tools of the server. Reported only with `--client`.""",
    fix="""Put the definitions into the `$defs` of the `outputSchema`: a reference cannot reach those of the
    `inputSchema`.""",
    meanwhile="Use version 2 of the TypeScript SDK, which takes such a list.",
    spec="server/tools#output-schema",
    revisions=HANDSHAKE,
    fails=_listed(
        '"inputSchema":{"type":"object","properties":{}},"outputSchema":{"type":"object",\
"properties":{"a":{"$ref":"#/$defs/A"}}}'
    ),
    passes=_listed(
        '"inputSchema":{"type":"object","properties":{}},"outputSchema":{"type":"object",\
"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{}}}'
    ),
)
def output_schema_reference(tool: dict[str, Any], known: Sequence[Limit], session: Session) -> Iterator[Breach]:
    """Report an `outputSchema` with a reference that is unresolved or external."""
    schema = tool.get("outputSchema")
    if isinstance(schema, dict):
        found = Foreign(schema, session.budget).check()
        if found.outcome in (Validity.UNRESOLVED, Validity.EXTERNAL):
            got = f"has an outputSchema with an unresolved reference: {found.message}"
            path = ("outputSchema", *steps_of(found.pointer or ""))
            yield Breach(got, known, path, "add the definition to its $defs")


_ADD_TYPE = 'add "type": "object"'


def _type_of(schema: dict[str, Any]) -> str:
    return f"of type {excerpt(schema['type'])}" if "type" in schema else "without type"


@tool_rule(
    "compat/schema-combination",
    "error",
    """The `inputSchema` has `oneOf`, `anyOf` or `allOf` beside its `"type": "object"`. MCP allows it, but model
    APIs refuse the request with all its tools. Inside a property they are fine. Reported only with
    `--client`.""",
    fix="""List all properties at the top level, and check in the server which of them go together; or offer one
    tool for each branch.""",
    meanwhile="Remove the keyword before you send the tools to the model API, or disable the tool.",
    spec=_TOOL,
    fails=_listed('"inputSchema":{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]}]}'),
    passes=_listed('"inputSchema":{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}]}}}'),
)
def schema_combination(tool: dict[str, Any], known: Sequence[Limit], session: Session) -> Iterator[Breach]:
    """Report top-level keywords that a model API refuses there."""
    schema = tool.get("inputSchema")
    if isinstance(schema, dict):
        broken = [limit for limit in known if not schema.keys().isdisjoint(limit.keywords)]
        used = [keyword for keyword in schema if any(keyword in limit.keywords for limit in broken)]
        got = f"has {series(used)} at the top level of its inputSchema"
        advice = "move it into a property, or list all properties without it"
        yield Breach(got, broken, ("inputSchema", *used[:1]), advice)


@tool_rule(
    "compat/schema-properties",
    "error",
    """The `inputSchema` of a tool without arguments has no `properties`. MCP allows it; the OpenAI API refuses
    the whole request, so that no tool can be used. Reported only with `--client`.""",
    fix='Add `"properties": {}` to the `inputSchema`.',
    meanwhile='Add `"properties": {}` before you send the tools to the model API, or disable the tool.',
    spec=_TOOL,
    fails=_listed('"inputSchema":{"type":"object"}'),
    passes=_listed('"inputSchema":{"type":"object","properties":{}}'),
)
def schema_properties(tool: dict[str, Any], known: Sequence[Limit], session: Session) -> Iterator[Breach]:
    """Report the schema of an object that has no `properties`."""
    schema = tool.get("inputSchema")
    if isinstance(schema, dict) and schema.get("type") == "object" and "properties" not in schema:
        yield Breach("has an inputSchema without properties", known, ("inputSchema",), 'add "properties": {}')


@tool_rule(
    "compat/schema-members",
    "error",
    """A property is `true` or something else that is not an object, or `required` is not an array of strings. JSON
    Schema and MCP allow `true` for any value (the Go SDK writes it for `any`), but some SDKs refuse the whole list.
    Reported only with `--client`.""",
    fix="Write `{}` in place of `true`, and `required` as an array of strings.",
    meanwhile="Use version 2 of the TypeScript SDK, which takes such a list.",
    spec=_TOOL,
    revisions=HANDSHAKE,
    fails=_listed('"inputSchema":{"type":"object","properties":{"data":true}}'),
    passes=_listed('"inputSchema":{"type":"object","properties":{"data":{}},"required":["data"]}'),
)
def schema_members(tool: dict[str, Any], known: Sequence[Limit], session: Session) -> Iterator[Breach]:
    """Report the first member of a schema whose type differs from the one that SDKs expect."""
    for which in ("inputSchema", "outputSchema"):
        odd = _odd_member(tool.get(which))
        broken = [limit for limit in known if odd and which in limit.keywords]
        if odd and broken:
            path, value = odd
            got = f"has {excerpt(value)} at {excerpt(pointer(*path))} of its {which}"
            advice = "write {} for any value, and required as an array or not at all"
            yield Breach(got, broken, (which, *path), advice)
            break


def _odd_member(schema: Any) -> tuple[Path, Any] | None:
    """Return the first property that is not an object, or a `required` that is not an array of strings."""
    if not isinstance(schema, dict):
        return None
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict):
        return ("properties",), properties
    for name, value in properties.items():
        if not isinstance(value, dict | list):  # clients accept an array here; it is refused as a schema
            return ("properties", name), value
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return ("required",), required
    return None


@tool_rule(
    "compat/schema-dialect",
    "error",
    """The `inputSchema` is not valid in the dialect that a client uses, and the client ignores `$schema`. For example,
    an array as `items` or a boolean as `exclusiveMinimum` is not valid in 2020-12. Reported only with
    `--client`.""",
    fix="Generate the schema for draft 2020-12: `prefixItems` for a tuple, and a number as `exclusiveMinimum`.",
    meanwhile="Disable the tool until the server is fixed.",
    spec="basic#json-schema-usage",
    fails=_listed(
        '"inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object",\
"properties":{"pair":{"type":"array","items":[{"type":"string"}]}}}'
    ),
    passes=_listed('"inputSchema":{"type":"object","properties":{"pair":{"type":"array","items":{"type":"string"}}}}'),
)
def schema_dialect(tool: dict[str, Any], known: Sequence[Limit], session: Session) -> Iterator[Breach]:
    """Report a schema that is invalid in the dialect of a client."""
    schema = tool.get("inputSchema")
    if isinstance(schema, dict):
        found = {limit: _judgement(schema, limit, session) for limit in known}
        broken = [limit for limit in known if found[limit].outcome is Validity.NO_SCHEMA]
        if broken:
            first = found[broken[0]]
            where = f" at {excerpt(first.pointer)}" if first.pointer else ""
            got = f"has an inputSchema that is invalid{where}: {first.message}"
            path = ("inputSchema", *steps_of(first.pointer or ""))
            yield Breach(got, broken, path, "write it in draft 2020-12")


def _judgement(schema: dict[str, Any], limit: Limit, session: Session) -> Judgement:
    """Check a schema in the client's dialect."""
    dialect = next(name for name in DIALECTS if limit.keywords[0].replace(" ", "/") in name)
    return Foreign(schema | {"$schema": dialect}, session.budget).check()


@tool_rule(
    "compat/array-items",
    "error",
    """An array in the `inputSchema` has no `items`. JSON Schema allows it, but model APIs refuse the request with
    all its tools. Reported only with `--client`.""",
    fix='Add `items` to each array; `"items": {}` allows any value.',
    meanwhile='Add `"items": {}` before you send the tools to the model API, or disable the tool.',
    spec=_TOOL,
    fails=_listed('"inputSchema":{"type":"object","properties":{"tags":{"type":"array"}}}'),
    passes=_listed('"inputSchema":{"type":"object","properties":{"tags":{"type":"array","items":{"type":"string"}}}}'),
)
def array_items(tool: dict[str, Any], known: Sequence[Limit], session: Session) -> Iterator[Breach]:
    """Report the first array without `items`. Definitions are ignored: no refusal of one has been observed."""
    bare = (
        path
        for path, node in subschemas(tool.get("inputSchema"))
        if node.get("type") == "array" and "items" not in node and path[:1] not in (("$defs",), ("definitions",))
    )
    yield from _first(bare, known, "the array {} without items", 'add "items"')


@tool_rule(
    "compat/enum-values",
    "error",
    """An `enum` in the `inputSchema` has numbers or booleans. JSON Schema allows it; the Gemini API refuses the
    request with all its tools. Reported only with `--client`.""",
    fix="List strings in the `enum`, and convert them in the server.",
    meanwhile="Convert the `enum` to strings before you send the tools to the model API, or disable the tool.",
    spec=_TOOL,
    fails=_listed('"inputSchema":{"type":"object","properties":{"size":{"type":"integer","enum":[1,2]}}}'),
    passes=_listed('"inputSchema":{"type":"object","properties":{"size":{"type":"string","enum":["1","2"]}}}'),
)
def enum_values(tool: dict[str, Any], known: Sequence[Limit], session: Session) -> Iterator[Breach]:
    """Report the first enumeration with numbers or booleans."""
    odd = (path for path, node in subschemas(tool.get("inputSchema")) if _has_numbers(node.get("enum")))
    yield from _first(odd, known, "numbers or booleans in the enum of {}", "use strings")


def _has_numbers(values: Any) -> bool:
    return isinstance(values, list) and any(isinstance(value, int | float) for value in values)


@tool_rule(
    "compat/reference-siblings",
    "error",
    """A `$ref` has other keywords than `description` and `default` beside it. Some generators write that for an
    optional enum, and JSON Schema allows it since 2019-09. The Gemini API refuses the request with all its tools.
    Reported only with `--client`.""",
    fix="Put the reference into an `allOf`, or write the schema in its place.",
    meanwhile="""Write the schema in place of the `$ref` before you send the tools to the model API, or disable the
    tool.""",
    spec=_TOOL,
    fails=_listed(
        '"inputSchema":{"type":"object","properties":{"unit":{"$ref":"#/$defs/Unit","title":"Unit"}},\
"$defs":{"Unit":{"type":"string"}}}'
    ),
    passes=_listed(
        '"inputSchema":{"type":"object","properties":{"unit":{"$ref":"#/$defs/Unit","default":"C"}},\
"$defs":{"Unit":{"type":"string"}}}'
    ),
)
def reference_siblings(tool: dict[str, Any], known: Sequence[Limit], session: Session) -> Iterator[Breach]:
    """Report the first `$ref` with more keywords beside it than a client accepts."""
    allowed = {"$ref", *(keyword for limit in known for keyword in limit.keywords)}
    mixed = (path for path, node in subschemas(tool.get("inputSchema")) if "$ref" in node and node.keys() - allowed)
    yield from _first(mixed, known, "other keywords beside the $ref in {}", "write the schema in its place")


def _first(paths: Iterator[Path], broken: Sequence[Limit], what: str, advice: str) -> Iterator[Breach]:
    """Yield the breach at the first of these paths in an `inputSchema`, if there is one."""
    path = next(paths, None)
    if path is not None:
        where = excerpt(pointer(*path)) if path else "its inputSchema"
        yield Breach(f"has {what.format(where)}", broken, ("inputSchema", *path), advice)
