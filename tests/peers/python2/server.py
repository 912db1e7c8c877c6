"""The server of the Python SDK 2.x, over stdio, `--http` or `--sse`: the features of `features.json`.

Every answer is fixed by its request.

It serves both eras, and the client's first request decides. After `initialize` it sends requests to the client. Under
2026-07-28 it answers `input_required`, the client calls again, and changes go to `subscriptions/listen`.
"""

import asyncio
import json
import os
import sys
import time
import warnings

import anyio
import mcp_types as types
import pydantic
from mcp import MCPDeprecationWarning, MCPError, stdio_server
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

warnings.simplefilter("ignore", MCPDeprecationWarning)  # sampling, roots and logging are deprecated, but still tested

with open(os.path.join(os.path.dirname(__file__), "..", "features.json"), encoding="utf-8") as file:
    FEATURES = json.load(file)

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # the folder of `web`
tools = list(FEATURES["tools"])
bus = InMemorySubscriptionBus()


def text(value, **members):
    return types.CallToolResult(content=[types.TextContent(text=value)], **members)


def compact(value):
    if isinstance(value, pydantic.BaseModel):
        value = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def modern(context):
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def client_has(context, **capability):
    return context.session.check_client_capability(types.ClientCapabilities(**capability))


# --- tools


async def list_tools(_, __):
    return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in tools])


async def add(_, params):
    total = {"sum": params.arguments["a"] + params.arguments["b"]}
    return text(compact(total), structured_content=total)


async def echo(_, params):
    return text(params.arguments["text"])


async def repeat(_, params):
    return text(params.arguments["text"] * params.arguments["times"])


async def gallery(_, __):
    return types.CallToolResult.model_validate({"content": FEATURES["gallery"]})


async def fail(_, __):
    return text("failed as asked", is_error=True)


async def slow(context, params):
    steps = params.arguments["steps"]
    for step in range(1, steps + 1):
        await context.session.report_progress(step, steps, f"step {step}")
    return text(f"{steps} steps")


async def hang(context, _):
    await context.session.report_progress(0, 1, "waiting")
    try:
        await anyio.sleep_forever()
    finally:
        if sys.argv[1:]:  # over stdio, stdout carries the protocol
            print("cancelled", time.time_ns(), flush=True)


async def log(context, params):
    level = params.arguments["level"]
    await context.session.send_log_message(level, {"note": "as asked"}, "peer", context.request_id)
    return text("logged")


async def answered(context, params, *requests):
    """Return the client's answers as text. Under 2026-07-28, return the result that requests a missing answer."""
    if not modern(context):
        return text(" ".join([compact(await context.session.send_request(*request)) for request in requests]))
    answers = json.loads(params.request_state or "[]")
    answers += [compact(answer) for answer in (params.input_responses or {}).values()]
    if len(answers) == len(requests):
        return text(" ".join(answers))
    request, _ = requests[len(answers)]
    return types.InputRequiredResult(
        input_requests={f"input-{len(answers) + 1}": request}, request_state=compact(answers)
    )


def elicitation():
    """Return a request to the client and the type of its result, as `answered` accepts them."""
    request = types.ElicitRequest(params=types.ElicitRequestFormParams.model_validate(FEATURES["elicitation"]))
    return request, types.ElicitResult


async def ask(context, params):
    if not client_has(context, elicitation=types.ElicitationCapability()):
        return text("the client does not elicit", is_error=True)
    return await answered(context, params, elicitation())


async def ask_twice(context, params):
    if not client_has(context, elicitation=types.ElicitationCapability()):
        return text("the client does not elicit", is_error=True)
    return await answered(context, params, elicitation(), elicitation())


async def visit(context, _):
    page = FEATURES["visit"]
    session = context.session
    if not client_has(context, elicitation=types.ElicitationCapability(url=types.UrlElicitationCapability())):
        return text("the client does not visit pages", is_error=True)
    answer = await session.elicit_url(page["message"], page["url"], page["elicitationId"], context.request_id)
    await session.send_elicit_complete(page["elicitationId"], context.request_id)
    return text(compact(answer))


async def sample(context, params):
    if not client_has(context, sampling=types.SamplingCapability()):
        return text("the client does not sample", is_error=True)
    sampling = types.CreateMessageRequestParams.model_validate(FEATURES["sampling"])
    return await answered(context, params, (types.CreateMessageRequest(params=sampling), types.CreateMessageResult))


async def roots(context, params):
    if not client_has(context, roots=types.RootsCapability()):
        return text("the client has no roots", is_error=True)
    return await answered(context, params, (types.ListRootsRequest(), types.ListRootsResult))


async def touch(context, _):
    if modern(context):
        await bus.publish(ResourceUpdated("peer://counter"))
    else:
        await context.session.send_resource_updated("peer://counter")
    return text("touched")


async def grow(context, _):
    if FEATURES["grown"] not in tools:
        tools.append(FEATURES["grown"])
    if modern(context):
        await bus.publish(ToolsListChanged())
    else:
        await context.session.send_tool_list_changed()
    return text("grown")


CALLS = {
    call.__name__: call
    for call in (add, echo, repeat, gallery, fail, slow, hang, log, ask, ask_twice, visit, sample, roots, touch, grow)
} | {"grown": echo}


async def call_tool(context, params):
    if params.name not in {tool["name"] for tool in tools}:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await CALLS[params.name](context, params)


# --- resources, prompts, completion


async def list_resources(_, params):
    resources = [types.Resource.model_validate(resource) for resource in FEATURES["resources"]]
    if params.cursor == "page-2":
        return types.ListResourcesResult(resources=resources[2:])
    return types.ListResourcesResult(resources=resources[:2], next_cursor="page-2")


async def list_resource_templates(_, __):
    templates = [types.ResourceTemplate.model_validate(template) for template in FEATURES["resourceTemplates"]]
    return types.ListResourceTemplatesResult(resource_templates=templates)


async def read_resource(context, params):
    contents = FEATURES["contents"].get(params.uri)
    if params.uri.startswith("peer://city/"):
        name = params.uri.removeprefix("peer://city/")
        contents = {"uri": params.uri, "mimeType": "text/plain", "text": name}
    if contents is None:
        code = types.INVALID_PARAMS if modern(context) else -32002
        raise MCPError(code, "Resource not found", {"uri": params.uri})
    return types.ReadResourceResult.model_validate({"contents": [contents]})


async def accept(_, __):
    """Accept subscribe, unsubscribe and setLevel without effect: the tools send their notifications in any case."""
    return types.EmptyResult()


async def list_prompts(_, __):
    return types.ListPromptsResult(prompts=[types.Prompt.model_validate(prompt) for prompt in FEATURES["prompts"]])


async def get_prompt(_, params):
    if params.name not in {prompt["name"] for prompt in FEATURES["prompts"]}:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    content = types.TextContent(text=compact({params.name: params.arguments or {}}))
    return types.GetPromptResult(description=params.name, messages=[types.PromptMessage(role="user", content=content)])


async def complete(_, params):
    argument = params.argument
    values = [word for word in FEATURES["completions"].get(argument.name, []) if word.startswith(argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


async def main():
    server = Server(
        FEATURES["name"],
        version=FEATURES["version"],
        instructions=FEATURES["instructions"],
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_resource_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=accept,
        on_unsubscribe_resource=accept,
        on_subscriptions_listen=ListenHandler(bus),
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=accept,
    )
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    sys.stderr.write("python2 server: ready\n")
    sys.stderr.flush()
    if sys.argv[1:]:
        from web import serve

        await serve(sys.argv[1].removeprefix("--"), server, options)
        return
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


asyncio.run(main())
