"""Rules about results that clients refuse or cut: types of images, sizes."""

from collections.abc import Iterator
from typing import Any

from mcpspy.conversation.model import Message, Session
from mcpspy.cost import compact_size, encoded_size, tokens
from mcpspy.json_values import excerpt, member, pointer
from mcpspy.rules.compat.limits import refused
from mcpspy.rules.content import media_in
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.spec.client_limits import limits
from mcpspy.wire.jsonrpc import Result

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
