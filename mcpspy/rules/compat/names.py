"""Rules about names, descriptions and numbers of tools that clients refuse."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from mcpspy.conversation.bounds import keep
from mcpspy.conversation.model import Session
from mcpspy.conversation.offers import page
from mcpspy.json_values import excerpt, member
from mcpspy.rules.compat.limits import Breach, refused, tool_rule
from mcpspy.rules.rule import Fault, Later, StatefulCheck, rule
from mcpspy.spec.client_limits import Limit, limits
from mcpspy.wire.jsonrpc import Result


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
