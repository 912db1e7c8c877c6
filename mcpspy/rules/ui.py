"""Rules about MCP Apps (`io.modelcontextprotocol/ui`): the interface that a tool names, and its type.

The interface that a tool names is checked for every client, because only this extension has these members. The type of
an interface is checked only if the client declared the extension.
"""

from collections.abc import Iterator
from typing import Any

from mcpspy.conversation.context import capabilities
from mcpspy.conversation.model import Message, Session
from mcpspy.json_values import excerpt, member, pointer
from mcpspy.rules.rule import Fault, rule
from mcpspy.spec.extensions.ui import MIME_TYPE, UI
from mcpspy.wire.jsonrpc import Result

_PAGE = "https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx"
_FLAT = "ui/resourceUri"
_SCHEME = "ui://"


@rule(
    "ui/resource-uri",
    "error",
    """The `_meta.ui.resourceUri` of a tool must begin with `ui://`. With another URI, clients show the result as text
    or refuse the tool.""",
    fix="Serve the interface as a resource with a `ui://` URI, and use that URI.",
    meanwhile="Show the result as text.",
    blame="server",
    spec=f"{_PAGE}#resource-discovery",
    fails="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"map","inputSchema":{"type":"object"},\
"_meta":{"ui":{"resourceUri":"https://example.com/map"}}}]}
    """,
    passes="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"map","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://map"}}}]}
    """,
    on=(Result,),
    methods=("tools/list",),
)
def resource_uri(message: Message, session: Session) -> Iterator[Fault]:
    """Report an interface whose URI does not begin with `ui://`, or two different URIs."""
    for place, name, meta in _tools(message):
        uri, flat = member(meta, "ui", "resourceUri"), member(meta, _FLAT)
        for found, steps in ((uri, ("ui", "resourceUri")), (flat, (_FLAT,))):
            if isinstance(found, str) and not found.startswith(_SCHEME):
                where = pointer("result", "tools", place, "_meta", *steps)
                yield Fault(f"the interface of {name} must have a URI that begins with ui://, got {excerpt(found)}",
                            where)  # fmt: skip
                break
        else:
            if isinstance(uri, str) and isinstance(flat, str) and uri != flat:
                where = pointer("result", "tools", place, "_meta", _FLAT)
                yield Fault(f"{name} names two interfaces: {excerpt(uri)} and {excerpt(flat)}", where)


@rule(
    "ui/flat-resource-uri",
    "info",
    """The member `_meta["ui/resourceUri"]` is deprecated and will be removed; use `_meta.ui.resourceUri`. Servers may
    send both for older clients. Reported once per session.""",
    fix='Write the URI into `_meta.ui.resourceUri`; keep `_meta["ui/resourceUri"]` beside it for older clients.',
    meanwhile="Read both members.",
    blame="server",
    spec=f"{_PAGE}#resource-discovery",
    fails="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"map","inputSchema":{"type":"object"},"_meta":{"ui/resourceUri":"ui://map"}}]}
    """,
    passes="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"map","inputSchema":{"type":"object"},\
"_meta":{"ui":{"resourceUri":"ui://map"},"ui/resourceUri":"ui://map"}}]}
    """,
    on=(Result,),
    methods=("tools/list",),
)
def flat_resource_uri(message: Message, session: Session) -> Iterator[Fault]:
    """Report tools that have only the deprecated member."""
    flat = [
        (place, name)
        for place, name, meta in _tools(message)
        if member(meta, _FLAT) is not None and member(meta, "ui", "resourceUri") is None
    ]
    if flat and session.once("flat ui/resourceUri"):
        place, name = flat[0]
        names = f" and {len(flat) - 1} more name their interfaces" if len(flat) > 1 else " names its interface"
        where = pointer("result", "tools", place, "_meta", _FLAT)
        yield Fault(f"{name}{names} in the deprecated {_FLAT}; expected ui.resourceUri", where)


@rule(
    "ui/mime-type",
    "error",
    f"""The content of a `ui://` resource must have the type `{MIME_TYPE}`, or another type that the client declared in
    its `mimeTypes`. Clients do not show an interface of another type.""",
    fix="Set `mimeType` to `text/html;profile=mcp-app`.",
    meanwhile="Declare the other type in `mimeTypes` if you can show it.",
    blame="server",
    spec=f"{_PAGE}#content-requirements",
    fails="""
        > 1 resources/read {META with io.modelcontextprotocol/ui "uri":"ui://map"}
        < 1 = {"resultType":"complete","ttlMs":0,"cacheScope":"public",\
"contents":[{"uri":"ui://map","mimeType":"text/html","text":"<!DOCTYPE html>"}]}
    """,
    passes="""
        > 1 resources/read {META with io.modelcontextprotocol/ui "uri":"ui://map"}
        < 1 = {"resultType":"complete","ttlMs":0,"cacheScope":"public",\
"contents":[{"uri":"ui://map","mimeType":"text/html;profile=mcp-app","text":"<!DOCTYPE html>"}]}
    """,
    on=(Result,),
    methods=("resources/read",),
)
def mime_type(message: Message, session: Session) -> Iterator[Fault]:
    """Report an interface of a type that the client does not accept."""
    contents = member(message.body.value, "result", "contents")
    settings = member(capabilities("client", message, session), "extensions", UI.id)
    if settings is None or not isinstance(contents, list):
        return
    more = member(settings, "mimeTypes")
    taken = [_media_type(it) for it in (MIME_TYPE, *(more if isinstance(more, list) else ())) if isinstance(it, str)]
    for place, content in enumerate(contents):
        uri, found = member(content, "uri"), member(content, "mimeType")
        if isinstance(uri, str) and uri.startswith(_SCHEME) and _media_type(found) not in taken:
            got = "none" if found is None else excerpt(found)
            yield Fault(f"the interface {excerpt(uri)} must have the MIME type {MIME_TYPE}, got {got}",
                        f"/result/contents/{place}" + ("" if found is None else "/mimeType"))  # fmt: skip


def _media_type(text: Any) -> tuple[str, frozenset[tuple[str, str]]] | None:
    """Return type and parameters in a normal form (RFC 9110, section 8.3.1), or None if it is not text."""
    if not isinstance(text, str):
        return None
    kind, *parameters = text.split(";")
    pairs = (parameter.partition("=") for parameter in parameters if parameter.strip())
    return kind.strip().lower(), frozenset((name.strip().lower(), value.strip().strip('"')) for name, _, value in pairs)


def _tools(message: Message) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield the listed tools with `_meta`: index, name for a sentence, and `_meta`."""
    tools = member(message.body.value, "result", "tools")
    for place, tool in enumerate(tools if isinstance(tools, list) else ()):
        meta = member(tool, "_meta")
        if isinstance(meta, dict):
            yield place, excerpt(member(tool, "name")), meta
