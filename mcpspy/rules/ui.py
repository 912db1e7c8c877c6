"""Rules about MCP Apps (`io.modelcontextprotocol/ui`): the interface that a tool names, its type, and how it is read.

The interface that a tool names is checked for every client, because only this extension has these members. The type of
an interface, and whether it is read at all, are checked only if the client declared the extension.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mcpspy.conversation.bounds import REMEMBERED, keep
from mcpspy.conversation.context import capabilities
from mcpspy.conversation.model import Exchange, Message, Session
from mcpspy.conversation.outcomes import still_failed
from mcpspy.json_values import excerpt, member, pointer
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.spec.extensions import MIME_TYPE, UI
from mcpspy.wire.jsonrpc import Error, Result

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


@rule(
    "ui/other-uri",
    "error",
    """A `ui://` resource comes back under another URI than the one that was requested, or without content. Clients
    look for the URI that the tool names, so they do not show the interface.""",
    fix="Return the requested URI, character by character, as the `uri` of the content.",
    meanwhile="Take the only content of the result, whatever its URI.",
    blame="server",
    spec="server/resources#reading-resources",
    fails="""
        = 2025-11-25
        > 2 resources/read {"uri":"ui://map"}
        < 2 = {"contents":[{"uri":"ui://map.html","mimeType":"text/html;profile=mcp-app","text":"<!DOCTYPE html>"}]}
    """,
    passes="""
        = 2025-11-25
        > 2 resources/read {"uri":"ui://map"}
        < 2 = {"contents":[{"uri":"ui://map","mimeType":"text/html;profile=mcp-app","text":"<!DOCTYPE html>"}]}
    """,
    on=(Result,),
    methods=("resources/read",),
    loss="The app of a tool cannot be shown",
)
def other_uri(message: Message, session: Session) -> Iterator[Fault]:
    """Report an interface that comes back under another URI."""
    wanted, contents = message.name or "", member(message.body.value, "result", "contents")
    uris = [member(it, "uri") for it in contents] if isinstance(contents, list) else []
    if wanted.startswith(_SCHEME) and contents == []:
        yield Fault(f"the app {excerpt(wanted)} comes back without content", "/result/contents")
    elif wanted.startswith(_SCHEME) and wanted not in uris and uris and isinstance(uris[0], str):
        yield Fault(f"the app {excerpt(wanted)} comes back as {excerpt(uris[0])}", "/result/contents/0/uri")


@rule(
    "ui/unreadable",
    "error",
    """A tool names an interface that the server refuses to send: `resources/read` fails for its URI. Clients show only
    the text of the result.""",
    fix="Serve the URI of `_meta.ui.resourceUri` by `resources/read`, or do not name it.",
    meanwhile="Show the result as text.",
    blame="server",
    spec=f"{_PAGE}#resource-discovery",
    fails="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"map","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://map"}}}]}
        > 3 resources/read {"uri":"ui://map"}
        < 3 ! {"code":-32002,"message":"Resource not found"}
    """,
    passes="""
        = 2025-11-25
        > 2 tools/list
        < 2 = {"tools":[{"name":"map","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://map"}}}]}
        > 3 resources/read {"uri":"ui://map"}
        < 3 = {"contents":[{"uri":"ui://map","mimeType":"text/html;profile=mcp-app","text":"<!DOCTYPE html>"}]}
    """,
    on=(Error,),
    methods=("resources/read",),
    explains=("error", "refused"),
)
class Unreadable(StatefulCheck):
    """Report interfaces that cannot be read, if a listed tool names them. A later success repairs it."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._refused: dict[str, tuple[Message, Exchange]] = {}  # by URI

    def check(self, message: Message) -> Iterator[Fault]:
        """Remember a refusal."""
        if message.exchange and (message.name or "").startswith(_SCHEME) and message.frame.size <= REMEMBERED:
            keep(self._refused, message.name, (message, message.exchange))
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report each URI once. After a gap, it may have been read later."""
        for name, tool in self.session.listing.tools.items() if not self.session.gaps else ():
            refusal = self._refused.pop(_resource_of(tool.definition) or "", None)
            if refusal and still_failed(refusal[1]):
                message, exchange = refusal
                code = member(message.body.value, "error", "code")
                yield Fault(
                    f"the app of the tool {excerpt(name)} cannot be read: {excerpt(exchange.name)} is refused with "
                    f"error {excerpt(code)}",
                    related=(exchange.request.n, tool.listed),
                    blame="server",
                    at=message,
                )


@rule(
    "ui/never-read",
    "info",
    """The client declared MCP Apps and called a tool that names an interface, but never read the interface. So the
    user saw only the text of the result, unless the client has the interface from an earlier session.""",
    fix="Read the `_meta.ui.resourceUri` of a tool with `resources/read` when the tool is called, or before.",
    meanwhile="Return a text that is enough without the interface.",
    blame="client",
    spec=f"{_PAGE}#resource-discovery",
    fails="""
        > 1 initialize {"protocolVersion":"2025-11-25","capabilities":{"extensions":{"io.modelcontextprotocol/ui":\
{"mimeTypes":["text/html;profile=mcp-app"]}}},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},\
"serverInfo":{"name":"s","version":"1"}}
        > notifications/initialized
        > 2 tools/list
        < 2 = {"tools":[{"name":"map","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://map"}}}]}
        > 3 tools/call {"name":"map","arguments":{}}
        < 3 = {"content":[]}
        @60 > 4 ping
        < 4 = {}
    """,
    passes="""
        > 1 initialize {"protocolVersion":"2025-11-25","capabilities":{"extensions":{"io.modelcontextprotocol/ui":\
{"mimeTypes":["text/html;profile=mcp-app"]}}},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},\
"serverInfo":{"name":"s","version":"1"}}
        > notifications/initialized
        > 2 tools/list
        < 2 = {"tools":[{"name":"map","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://map"}}}]}
        > 3 tools/call {"name":"map","arguments":{}}
        < 3 = {"content":[]}
        > 4 resources/read {"uri":"ui://map"}
        < 4 = {"contents":[{"uri":"ui://map","mimeType":"text/html;profile=mcp-app","text":"<!DOCTYPE html>"}]}
    """,
    on=(Result, Error),
    methods=("tools/list", "resources/read"),
    loss="The app of a tool was never shown",
)
class NeverRead(StatefulCheck):
    """Report interfaces of called tools that the client did not read."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._reads = session.of_capture(_Reads)
        self._listed: dict[str, tuple[Message, int]] = {}  # by tool: its latest listing, and its index there

    def check(self, message: Message) -> Iterator[Fault]:
        """Take a listing, or the answer to a read."""
        name = message.name
        if message.method == "resources/read":
            if name and name.startswith(_SCHEME):
                keep(self._reads.uris, name, None)
        elif _shows(message, self.session):
            tools = member(message.body.value, "result", "tools")
            for place, tool in enumerate(tools if isinstance(tools, list) else ()):
                named, visibility = member(tool, "name"), member(tool, "_meta", "ui", "visibility")
                if isinstance(named, str) and _resource_of(tool) and visibility != ["app"]:
                    keep(self._listed, named, (message, place))
        return iter(())

    def close(self) -> Iterator[Fault]:
        """Report them once for each interface, unless records are missing or nothing followed the call."""
        session, reported = self.session, set[str]()
        for name, (listing, place) in self._listed.items():
            tool = session.listing.tools.get(name)
            uri = _resource_of(tool.definition) if tool else None
            call: Exchange | None = tool.called if tool else None
            if uri is None or call is None or call.outcome != "ok" or session.gaps or uri in self._reads.uris:
                continue
            n = call.request.n
            if session.last_answered > n and uri not in reported:
                reported.add(uri)
                yield Fault(
                    f"the tool {excerpt(name)} was called in #{n}, and its app {excerpt(uri)} was never read",
                    pointer("result", "tools", place, "_meta"),
                    (n,),
                    blame="client",
                    at=listing,
                )


@dataclass(slots=True)
class _Reads:
    """The interfaces that the clients of a capture requested; a client may keep one for its next session."""

    uris: dict[str, None] = field(default_factory=dict)


def _shows(message: Message, session: Session) -> bool:
    """Return whether the client declared that it shows interfaces."""
    return member(capabilities("client", message, session), "extensions", UI.id) is not None


def _resource_of(definition: Any) -> str | None:
    """Return the URI of the interface that a tool names."""
    uri = member(definition, "_meta", "ui", "resourceUri") or member(definition, "_meta", _FLAT)
    return uri if isinstance(uri, str) and uri.startswith(_SCHEME) else None


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
