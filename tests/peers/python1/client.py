"""The client of the Python SDK 1.x: `client.py [--scenario NAME] [--revision R] -- COMMAND ARG...`.

It starts COMMAND with the SDK's own stdio transport, or connects to a server (`--http URL`, `--sse URL`, `--ws URL`).
Then it runs a scenario and prints the results as one JSON document.
"""

import asyncio
import os
import sys
import warnings

import anyio
from mcp import ClientSession, McpError, StdioServerParameters, stdio_client, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from scenario import (
    ANSWERS,
    ELICITATION,
    REVISIONS,
    Inbox,
    Progress,
    parse_arguments,
    print_document,
    run_scenario,
)

warnings.simplefilter("ignore", DeprecationWarning)  # tasks are deprecated in this SDK, but still tested


def dump(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


class Peer:
    """The verbs of a scenario, implemented with this SDK."""

    def __init__(self, session):
        self.session = session

    @staticmethod
    def describe(error):
        if isinstance(error, McpError):
            return dump(error.error)
        return {"type": type(error).__name__, "message": str(error)}

    async def ping(self):
        return dump(await self.session.send_ping())

    async def list_tools(self):
        return dump(await self.session.list_tools())

    async def call_tool(self, name, arguments, progress=0):
        if not progress:
            return dump(await self.session.call_tool(name, arguments))
        reports = Progress(progress)
        result = await self.session.call_tool(name, arguments, progress_callback=reports)
        return {"answer": dump(result), "progress": await reports.all()}

    async def call_at_once(self, name, count):
        calls = [self.session.call_tool(name, {"text": f"call {number}"}) for number in range(count)]
        return [dump(result) for result in await asyncio.gather(*calls)]

    async def cancel_call(self, name):
        """Cancel a call. This SDK has no method for it: send the notification with the id that the request will get."""
        reports = Progress(1)
        request_id = self.session._request_id
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: self.session.call_tool(name, {}, progress_callback=reports))
            await reports.all()
            cancelled = types.CancelledNotification(
                params=types.CancelledNotificationParams(requestId=request_id, reason="enough")
            )
            await self.session.send_notification(types.ClientNotification(cancelled))
            group.cancel_scope.cancel()
        return {"cancelled": True, "progress": reports.reports}

    async def list_resources(self):
        pages = [await self.session.list_resources()]
        while pages[-1].nextCursor:
            params = types.PaginatedRequestParams(cursor=pages[-1].nextCursor)
            pages.append(await self.session.list_resources(params=params))
        return [dump(page) for page in pages]

    async def list_resource_templates(self):
        return dump(await self.session.list_resource_templates())

    async def read_resource(self, uri):
        return dump(await self.session.read_resource(uri))

    async def subscribe(self, uri):
        return dump(await self.session.subscribe_resource(uri))

    async def unsubscribe(self, uri):
        return dump(await self.session.unsubscribe_resource(uri))

    async def list_prompts(self):
        return dump(await self.session.list_prompts())

    async def get_prompt(self, name, arguments=None):
        return dump(await self.session.get_prompt(name, arguments))

    async def complete(self, ref, argument):
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return dump(await self.session.complete(kind.model_validate(ref), argument))

    async def set_log_level(self, level):
        return dump(await self.session.set_logging_level(level))

    async def send_unknown(self, method):
        return dump(await self.session.send_request(types.Request[None, str](method=method, params=None), types.Result))

    async def send_roots_changed(self):
        await self.session.send_roots_list_changed()
        return "sent"

    async def run_task(self, name, arguments):
        tasks = self.session.experimental
        created = await tasks.call_tool_as_task(name, arguments)
        result = await tasks.get_task_result(created.task.taskId, types.CallToolResult)
        status = await tasks.get_task(created.task.taskId)
        return [dump(step) for step in (created, result, status, await tasks.list_tasks())]

    async def cancel_task(self, name, arguments):
        tasks = self.session.experimental
        created = await tasks.call_tool_as_task(name, arguments)
        return [dump(created), dump(await tasks.cancel_task(created.task.taskId))]


async def answer_sampling(_, __):
    return types.CreateMessageResult.model_validate(ANSWERS["sampling"])


async def answer_elicitation(_, params):
    if params.mode == "url":
        return types.ElicitResult(action="accept")
    return types.ElicitResult.model_validate(ANSWERS["elicitation"])


async def answer_roots(_):
    return types.ListRootsResult.model_validate(ANSWERS["roots"])


def transport(arguments):
    if arguments.http:
        return streamable_http_client(arguments.http)
    if arguments.sse:
        return sse_client(arguments.sse)
    if arguments.ws:
        from mcp.client.websocket import websocket_client

        return websocket_client(arguments.ws.replace("http", "ws", 1))
    return stdio_client(StdioServerParameters(command=arguments.command[0], args=arguments.command[1:]))


async def main():
    arguments = parse_arguments(REVISIONS[:-1])
    if arguments.revision:
        types.LATEST_PROTOCOL_VERSION = arguments.revision  # ClientSession.initialize requests it
    inbox = Inbox()

    async def on_message(message):
        if isinstance(message, types.ServerNotification):
            inbox.append(dump(message))

    elicits = arguments.revision is None or arguments.revision in ELICITATION
    async with (
        transport(arguments) as (read, write, *_),
        ClientSession(
            read,
            write,
            sampling_callback=answer_sampling,
            elicitation_callback=answer_elicitation if elicits else None,
            list_roots_callback=answer_roots,
            message_handler=on_message,
            client_info=types.Implementation(name="python1-client", version="1.0.0"),
        ) as session,
    ):
        settled = dump(await session.initialize())
        connected = {"revision": settled["protocolVersion"], **settled}
        document = await run_scenario(arguments.scenario, Peer(session), connected, inbox)
    print_document(document)


asyncio.run(main())
