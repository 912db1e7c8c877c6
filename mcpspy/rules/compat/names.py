"""Rules about names, texts and numbers of tools that clients refuse."""

import re
from collections.abc import Iterator
from typing import Any

from mcpspy.conversation.history import SessionHistory, keep
from mcpspy.conversation.model import Message
from mcpspy.conversation.offers import page
from mcpspy.json_values import excerpt, member, pointer
from mcpspy.rules.compat.limits import label, new_tools, refused
from mcpspy.rules.rule import Fault, Later, StatefulCheck, rule
from mcpspy.spec.client_limits import limits
from mcpspy.wire.jsonrpc import Result


@rule(
    "compat/tool-name",
    "error",
    """A client or model API refuses the name of a tool: MCP allows dots and any length, most model APIs allow neither.
    Only with `check --client`. Rename the tool: 1 to 58 letters, digits, `_` and `-`, with a letter first, suit every
    client in the table. A client should replace other characters and shorten the name itself.""",
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
    on=(Result,),
    methods=("tools/list",),
)
def tool_name(message: Message, history: SessionHistory) -> Iterator[Fault]:
    """Names that do not match the pattern of a client."""
    known = limits("compat/tool-name", history.clients)
    for place, tool in new_tools(message, history):
        name = tool.get("name")
        if isinstance(name, str):
            broken = [limit for limit in known if not re.fullmatch(limit.pattern, name)]
            got = f"{label(tool)} has a name of {len(name)} characters" if len(name) > 58 else label(tool)
            yield from refused(got, broken, f"/result/tools/{place}/name", "rename the tool")


@rule(
    "compat/property-name",
    "error",
    """A client or model API refuses the name of an argument, such as `filter[id]` or `$top`, which generated servers
    take over from a REST API. Only with `check --client`. Rename the property in the inputSchema, and translate it back
    in the server.""",
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
    on=(Result,),
    methods=("tools/list",),
)
def property_name(message: Message, history: SessionHistory) -> Iterator[Fault]:
    """Names of properties at the top level that do not match the pattern of a client; the first stands for all."""
    known = limits("compat/property-name", history.clients)
    for place, tool in new_tools(message, history):
        names = member(tool, "inputSchema", "properties")
        for name in names if isinstance(names, dict) else ():
            broken = [limit for limit in known if not re.fullmatch(limit.pattern, name)]
            if broken:
                where = pointer("result", "tools", place, "inputSchema", "properties", name)
                yield from refused(f"{label(tool)} has the property {excerpt(name)}", broken, where, "rename it")
                break


@rule(
    "compat/description-length",
    "info",
    """A client cuts the description of a tool, so the model does not see the rest. Only with `check --client`. Put what
    matters first, and move reference material into a resource.""",
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
    on=(Result,),
    methods=("tools/list",),
)
def description_length(message: Message, history: SessionHistory) -> Iterator[Fault]:
    """Descriptions that are longer than a client passes on."""
    known = limits("compat/description-length", history.clients)
    for place, tool in new_tools(message, history):
        text = tool.get("description")
        if isinstance(text, str):
            broken = [limit for limit in known if len(text) > limit.most]
            got = f"{label(tool)} has a description of {len(text):,} characters"
            yield from refused(got, broken, f"/result/tools/{place}/description", "shorten it")


@rule(
    "compat/tool-count",
    "error",
    """A model API refuses so many tools. The tools of all servers of a client and its own count together, so fewer may
    already be too many. Only with `check --client`. Offer fewer tools, or let the user choose groups of them; a client
    should let its user switch tools off.""",
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
    """More tools than a client takes, in all pages of a listing; said again when there is another number of them.

    Where listings share a cursor, a page may belong to any of them: then the least that was listed before it counts.
    """

    def __init__(self, history: SessionHistory) -> None:
        super().__init__(history)
        self._limits = limits("compat/tool-count", history.clients)
        self._before: dict[str, int] = {}
        """By cursor: the tools of the pages before the one that is asked for by it."""
        self._told = 0

    def check(self, message: Any) -> Iterator[Fault | Later]:
        """Count the tools of the next page; the last page tells."""
        found, request = page(message), message.exchange.request if message.exchange else None
        if found is None or request is None:
            return
        cursor = member(request.body.value, "params", "cursor")
        more = member(message.body.value, "result", "nextCursor")
        counted = len(found.entries or ()) + (self._before.get(cursor, 0) if isinstance(cursor, str) else 0)
        if isinstance(more, str):
            keep(self._before, more, min(counted, self._before.get(more, counted)))
        broken = [limit for limit in self._limits if counted > limit.most]
        if found.last and broken and counted != self._told:
            self._told = counted
            yield from refused(f"the server lists {counted:,} tools", broken, "/result/tools", "offer fewer tools")
