"""The MCP server over captures, and the only module that uses the MCP SDK (2.x) of the extra `mcpspy[agent]`.

The tools are functions that take some time, so they run in a thread, one at a time: an open capture is not thread-safe.
Meanwhile the server answers pings. Between questions it continues to read the open captures, a slice at a time.
Standard output belongs to the protocol, so nothing else may be printed there.
"""

import errno
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp import MCPError, stdio_server
from mcp.server.lowlevel import Server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcpspy import __version__
from mcpspy.agent.answers import Answer, safe
from mcpspy.agent.captures import AgentCaptures
from mcpspy.agent.catalogue import (
    INSTRUCTIONS,
    PROMPTS,
    TEMPLATES,
    TOOLS,
    AgentTool,
    answer,
    checked,
    listed,
    prompt_text,
    read,
    tool_named,
)
from mcpspy.agent.rows import STEP, NextMatch
from mcpspy.errors import McpspyError, UsageError
from mcpspy.output_file import OutputClosed
from mcpspy.report.differences import to_json

_SLICE = 0.05  # seconds of reading per slice between questions
_IDLE = 0.5  # seconds between two checks for more to read
_DEFAULT = 20.0  # default time-out of `wait_for`, in seconds
REPORTS = 1.0
"""Seconds between two progress notifications."""

Returned = TypeVar("Returned")


class AgentServer:
    """The protocol handlers for the captures of one directory."""

    def __init__(self, captures: AgentCaptures) -> None:
        self._captures = captures
        self._lock = anyio.Lock()
        self.server: Server[Any] = Server(
            "mcpspy",
            version=__version__,
            title="mcpspy",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    async def run(self) -> None:
        """Serve on standard input and output until the client closes it."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read_on)
            async with stdio_server() as (incoming, outgoing):
                await self.server.run(incoming, outgoing, self.server.create_initialization_options())
            tasks.cancel_scope.cancel()
        self._captures.close()

    async def _alone(self, function: Callable[[], Returned]) -> Returned:
        """Run a function in a thread, never two at a time, so that the server stays responsive. Return its result."""
        async with self._lock:
            return await anyio.to_thread.run_sync(function)

    async def _read_on(self) -> None:
        while True:
            more = await self._alone(lambda: self._captures.grow(_SLICE))
            await anyio.sleep(0 if more else _IDLE)

    async def _list_tools(self, _: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(tool) for tool in TOOLS])

    async def _call_tool(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            tool = tool_named(params.name)
        except UsageError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        try:
            given = checked(tool, params.arguments)
            if tool.answer is None:
                found = await self._wait(context, **given)
            else:
                found = await self._alone(partial(answer, tool, self._captures, given))
        except McpspyError as error:
            return _failed(self._sentence(error))
        except Exception as error:  # a bug of ours, or an unforeseen capture: the server continues
            return _failed(f"mcpspy could not answer ({type(error).__name__}); try another session or filter")
        return types.CallToolResult(content=[types.TextContent(text=to_json(found))], structured_content=found)

    def _sentence(self, error: McpspyError) -> str:
        """Return the text of an error for the client, scrubbed: it may quote captured content, such as a file name."""
        return self._captures.scrubber.text(str(error), 600)

    async def _wait(self, context: Any, seconds: float = _DEFAULT, **given: str) -> Answer:
        begin = time.monotonic()
        watch = await self._alone(partial(NextMatch, self._captures, **given))
        reported = begin
        while True:
            found = await self._alone(watch.look)
            now = time.monotonic()
            if found:
                return found
            if now - begin >= seconds:
                return watch.nothing(seconds)
            if now - reported >= REPORTS:
                reported = now
                await context.session.report_progress(round(now - begin, 1), seconds, f"{watch.seen} new rows")
            await anyio.sleep(min(STEP, max(seconds - (now - begin), 0)))

    async def _list_resources(self, _: Any, params: Any) -> types.ListResourcesResult:
        try:
            found, more = await self._alone(lambda: listed(self._captures, params.cursor if params else None))
        except McpspyError as error:
            raise MCPError(types.INVALID_PARAMS, self._sentence(error)) from error
        resources = [
            types.Resource(uri=it.uri, name=it.name, description=it.description, mime_type=it.mime) for it in found
        ]
        return types.ListResourcesResult(resources=resources, next_cursor=more)

    async def _list_templates(self, _: Any, __: Any) -> types.ListResourceTemplatesResult:
        templates = [
            types.ResourceTemplate(uri_template=it.uri, name=it.name, description=it.description, mime_type=it.mime)
            for it in TEMPLATES
        ]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def _read_resource(self, context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text, mime = await self._alone(lambda: read(self._captures, uri))
        except McpspyError as error:
            modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
            code = types.INVALID_PARAMS if modern else _NOT_FOUND
            raise MCPError(code, self._sentence(error), {"uri": safe(uri, 200)}) from error
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=mime, text=text)])

    async def _list_prompts(self, _: Any, __: Any) -> types.ListPromptsResult:
        prompts = [
            types.Prompt(
                name=it.name,
                title=it.title,
                description=it.description,
                arguments=[types.PromptArgument(name=one.name, description=one.description) for one in it.arguments],
            )
            for it in PROMPTS
        ]
        return types.ListPromptsResult(prompts=prompts)

    async def _get_prompt(self, _: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        try:
            prompt, text = prompt_text(params.name, params.arguments or {})
        except UsageError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=prompt.description, messages=[message])


_NOT_FOUND = -32002  # in revisions before 2026-07-28


def _tool(tool: AgentTool) -> types.Tool:
    annotations = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=tool.answer is not None, open_world_hint=False
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=annotations,
    )


def _failed(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=sentence)], is_error=True)


def serve(folder: str) -> None:
    """Serve the captures of a directory until the client disconnects."""
    try:
        anyio.run(AgentServer(AgentCaptures(folder)).run)
    except BaseExceptionGroup as error:
        if error.split(BrokenPipeError)[1] is None:  # the client disconnected while an answer was being written
            raise OutputClosed(errno.EPIPE, os.strerror(errno.EPIPE)) from error
        raise
