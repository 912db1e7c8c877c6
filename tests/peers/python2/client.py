"""The client of the Python SDK 2.x: `client.py [--scenario NAME] [--revision R] -- COMMAND ARG...`.

It starts COMMAND with the SDK's own stdio transport, or connects to a server (`--http URL`, `--sse URL`). Then it runs
a scenario and prints the results as one JSON document.

Without `--revision` it probes with `server/discover` and falls back to `initialize`. With 2026-07-28 the fallback is an
error. A revision of the handshake era is requested in `initialize`, without a probe.
"""

import asyncio
import os
import sys
import warnings

import anyio
import mcp.client.session
import mcp_types as types
from mcp import Client, MCPDeprecationWarning, MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from scenario import (
    ANSWERS,
    ELICITATION,
    REVISIONS,
    UNSUPPORTED,
    Inbox,
    Progress,
    parse_arguments,
    print_document,
    run_scenario,
)

warnings.simplefilter("ignore", MCPDeprecationWarning)  # the features that 2026-07-28 deprecates are still tested


def dump(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


class Peer:
    """The verbs of a scenario, implemented with this SDK."""

    def __init__(self, client):
        self.client = client
        self.modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
        self.listening = None

    @staticmethod
    def describe(error):
        if isinstance(error, MCPError):
            return dump(error.error)
        return {"type": type(error).__name__, "message": str(error)}

    async def ping(self):
        return UNSUPPORTED if self.modern else dump(await self.client.send_ping())

    async def list_tools(self):
        return dump(await self.client.list_tools())

    async def call_tool(self, name, arguments, progress=0):
        if not progress:
            return dump(await self.client.call_tool(name, arguments))
        reports = Progress(progress)
        result = await self.client.call_tool(name, arguments, progress_callback=reports)
        return {"answer": dump(result), "progress": await reports.all()}

    async def call_at_once(self, name, count):
        calls = [self.client.call_tool(name, {"text": f"call {number}"}) for number in range(count)]
        return [dump(result) for result in await asyncio.gather(*calls)]

    async def call_by_hand(self, name):
        """Call a tool and answer `input_required` round by round, without the SDK's driver."""
        if not self.modern:
            return UNSUPPORTED
        rounds = [await self.client.session.call_tool(name, {}, allow_input_required=True)]
        while isinstance(rounds[-1], types.InputRequiredResult):
            answers = {
                key: types.ElicitResult.model_validate(ANSWERS["elicitation"]) for key in rounds[-1].input_requests
            }
            rounds.append(
                await self.client.session.call_tool(
                    name,
                    {},
                    input_responses=answers,
                    request_state=rounds[-1].request_state,
                    allow_input_required=True,
                )
            )
        return [dump(result) for result in rounds]

    async def cancel_call(self, name):
        reports = Progress(1)
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: self.client.call_tool(name, {}, progress_callback=reports))
            await reports.all()
            group.cancel_scope.cancel()
        return {"cancelled": True, "progress": reports.reports}

    async def list_resources(self):
        pages = [await self.client.list_resources()]
        while pages[-1].next_cursor:
            pages.append(await self.client.list_resources(cursor=pages[-1].next_cursor))
        return [dump(page) for page in pages]

    async def list_resource_templates(self):
        return dump(await self.client.list_resource_templates())

    async def read_resource(self, uri):
        return dump(await self.client.read_resource(uri))

    async def subscribe(self, uri):
        return UNSUPPORTED if self.modern else dump(await self.client.subscribe_resource(uri))

    async def unsubscribe(self, uri):
        return UNSUPPORTED if self.modern else dump(await self.client.unsubscribe_resource(uri))

    async def listen(self, uri):
        if not self.modern:
            return UNSUPPORTED
        self.listening = self.client.listen(tools_list_changed=True, resource_subscriptions=[uri])
        return dump((await self.listening.__aenter__()).honored)

    async def stop_listening(self):
        if not self.modern:
            return UNSUPPORTED
        await self.listening.__aexit__(None, None, None)
        return "stopped"

    async def list_prompts(self):
        return dump(await self.client.list_prompts())

    async def get_prompt(self, name, arguments=None):
        return dump(await self.client.get_prompt(name, arguments))

    async def complete(self, ref, argument):
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return dump(await self.client.complete(kind.model_validate(ref), argument))

    async def set_log_level(self, level):
        return UNSUPPORTED if self.modern else dump(await self.client.set_logging_level(level))

    async def send_unknown(self, method):
        request = types.Request[None, str](method=method, params=None)
        return dump(await self.client.session.send_request(request, types.Result))

    async def send_roots_changed(self):
        if self.modern:
            return UNSUPPORTED
        await self.client.send_roots_list_changed()
        return "sent"


async def answer_sampling(_, __):
    return types.CreateMessageResult.model_validate(ANSWERS["sampling"])


async def answer_elicitation(_, params):
    if params.mode == "url":
        return types.ElicitResult(action="accept")
    return types.ElicitResult.model_validate(ANSWERS["elicitation"])


async def answer_roots(_):
    return types.ListRootsResult.model_validate(ANSWERS["roots"])


def mode_of(revision):
    """Return the SDK's mode: probe for the newest revision, or use the handshake for an older one."""
    if revision is None or revision in MODERN_PROTOCOL_VERSIONS:
        return "auto"
    mcp.client.session.LATEST_HANDSHAKE_VERSION = revision  # ClientSession.initialize requests it
    return "legacy"


def transport(arguments):
    if arguments.http:
        return arguments.http
    if arguments.sse:
        return sse_client(arguments.sse)
    return StdioServerParameters(command=arguments.command[0], args=arguments.command[1:])


async def main():
    arguments = parse_arguments(REVISIONS)
    inbox = Inbox()

    async def on_message(message):
        if not isinstance(message, Exception):
            inbox.append(dump(message))

    elicits = arguments.revision is None or arguments.revision in ELICITATION
    client = Client(
        transport(arguments),
        mode=mode_of(arguments.revision),
        sampling_callback=answer_sampling,
        elicitation_callback=answer_elicitation if elicits else None,
        list_roots_callback=answer_roots,
        message_handler=on_message,
        log_level="info",
        client_info=types.Implementation(name="python2-client", version="1.0.0"),
    )
    async with client:
        if arguments.revision in MODERN_PROTOCOL_VERSIONS and client.protocol_version != arguments.revision:
            sys.exit(f"the server speaks {client.protocol_version}, not {arguments.revision}")
        settled = client.session.initialize_result or client.session.discover_result
        connected = {"revision": client.protocol_version, **dump(settled)}
        document = await run_scenario(arguments.scenario, Peer(client), connected, inbox)
    print_document(document)


asyncio.run(main())
