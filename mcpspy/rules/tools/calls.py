"""Rules about calls of tools: whether arguments and results conform to what was listed.

The schemas of a tool come from a peer and are hostile until proved otherwise (see `mcpspy.spec.peer_schemas`).
"""

import re
from collections.abc import Iterator
from typing import Any

from mcpspy.conversation.facts import Tool, ToolListing
from mcpspy.conversation.model import Message, Session
from mcpspy.json_values import excerpt, member
from mcpspy.rules.rule import Fault, rule
from mcpspy.spec.peer_schemas import Foreign, Judgement, Validity
from mcpspy.spec.revisions import OUTPUT_SCHEMAS
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
