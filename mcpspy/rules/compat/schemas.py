"""Rules about the schemas of tools that clients refuse."""

from collections.abc import Iterator, Sequence
from typing import Any

from mcpspy.conversation.model import Session
from mcpspy.json_values import Path, excerpt, pointer, steps_of
from mcpspy.rules.compat.limits import Breach, subschemas, tool_rule
from mcpspy.spec.client_limits import Limit
from mcpspy.spec.peer_schemas import DIALECTS, Foreign, Judgement, Validity
from mcpspy.spec.revisions import HANDSHAKE
from mcpspy.text import series

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
