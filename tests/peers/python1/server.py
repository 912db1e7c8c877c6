"""The server of the Python SDK 1.x, over stdio, `--http`, `--sse` or `--ws`: the features of `features.json`.

Every answer is fixed by its request."""

import asyncio
import itertools
import json
import os
import sys
import uuid
import warnings

import anyio
import pydantic
from mcp import types
from mcp.server.experimental import task_scope
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import McpError
from mcp.shared.experimental.tasks.in_memory_task_store import InMemoryTaskStore

warnings.simplefilter("ignore", DeprecationWarning)  # tasks are deprecated in this SDK, but still tested

with open(os.path.join(os.path.dirname(__file__), "..", "features.json"), encoding="utf-8") as file:
    FEATURES = json.load(file)
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # the folder of `web`
FIXED_TIME = "2025-11-25T00:00:00Z"

server = Server(FEATURES["name"], FEATURES["version"], FEATURES["instructions"])
tools = [*FEATURES["tools"], FEATURES["later"]]


class FixedTaskStore(InMemoryTaskStore):
    """The SDK's store, with the same time for every task."""

    async def create_task(self, metadata, task_id=None):
        return _at_fixed_time(await super().create_task(metadata, task_id))

    async def get_task(self, task_id):
        task = await super().get_task(task_id)
        return task and _at_fixed_time(task)

    async def update_task(self, task_id, status=None, status_message=None):
        return _at_fixed_time(await super().update_task(task_id, status, status_message))

    async def list_tasks(self, cursor=None):
        page, cursor = await super().list_tasks(cursor)
        return [_at_fixed_time(task) for task in page], cursor


task_store = FixedTaskStore()


def _at_fixed_time(task):
    return types.Task.model_validate({**task.model_dump(), "createdAt": FIXED_TIME, "lastUpdatedAt": FIXED_TIME})


def text(value, **members):
    return types.CallToolResult(content=[types.TextContent(type="text", text=value)], **members)


def compact(value):
    if isinstance(value, pydantic.BaseModel):
        value = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def client_has(**capability):
    return server.request_context.session.check_client_capability(types.ClientCapabilities(**capability))


# --- tools


@server.list_tools()
async def list_tools():
    return [types.Tool.model_validate(tool) for tool in tools]


async def add(arguments):
    total = {"sum": arguments["a"] + arguments["b"]}
    return text(compact(total), structuredContent=total)


async def echo(arguments):
    return text(arguments["text"])


async def repeat(arguments):
    return text(arguments["text"] * arguments["times"])


async def gallery(_):
    return types.CallToolResult.model_validate({"content": FEATURES["gallery"]})


async def fail(_):
    return text("failed as asked", isError=True)


async def progress(done, total, message):
    context = server.request_context
    if context.meta and context.meta.progressToken is not None:
        # Over HTTP it is sent on the stream of its request. On another stream it could arrive too late.
        related = str(context.request_id)
        await context.session.send_progress_notification(context.meta.progressToken, done, total, message, related)


async def slow(arguments):
    steps = arguments["steps"]
    for step in range(1, steps + 1):
        await progress(step, steps, f"step {step}")
    return text(f"{steps} steps")


async def hang(_):
    await progress(0, 1, "waiting")
    await anyio.sleep_forever()


async def log(arguments):
    context = server.request_context
    await context.session.send_log_message(arguments["level"], {"note": "as asked"}, "peer", context.request_id)
    return text("logged")


async def elicit():
    answer = await server.request_context.session.elicit(
        FEATURES["elicitation"]["message"],
        FEATURES["elicitation"]["requestedSchema"],
        server.request_context.request_id,
    )
    return compact(answer)


async def ask(_):
    if not client_has(elicitation=types.ElicitationCapability()):
        return text("the client does not elicit", isError=True)
    return text(await elicit())


async def ask_twice(_):
    if not client_has(elicitation=types.ElicitationCapability()):
        return text("the client does not elicit", isError=True)
    return text(f"{await elicit()} {await elicit()}")


async def visit(_):
    page = FEATURES["visit"]
    session = server.request_context.session
    if not client_has(elicitation=types.ElicitationCapability(url=types.UrlElicitationCapability())):
        return text("the client does not visit pages", isError=True)
    request_id = server.request_context.request_id
    answer = await session.elicit_url(page["message"], page["url"], page["elicitationId"], request_id)
    await session.send_elicit_complete(page["elicitationId"], request_id)
    return text(compact(answer))


async def sample(_):
    if not client_has(sampling=types.SamplingCapability()):
        return text("the client does not sample", isError=True)
    request = types.CreateMessageRequest(params=types.CreateMessageRequestParams.model_validate(FEATURES["sampling"]))
    session = server.request_context.session
    return text(compact(await session.send_request(types.ServerRequest(request), types.CreateMessageResult)))


async def roots(_):
    if not client_has(roots=types.RootsCapability()):
        return text("the client has no roots", isError=True)
    return text(compact(await server.request_context.session.list_roots()))


async def touch(_):
    await server.request_context.session.send_resource_updated("peer://counter")
    return text("touched")


async def grow(_):
    if FEATURES["grown"] not in tools:
        tools.append(FEATURES["grown"])
    await server.request_context.session.send_tool_list_changed()
    return text("grown")


async def later(arguments):
    context = server.request_context.experimental
    context.validate_task_mode(FEATURES["later"]["execution"]["taskSupport"])

    async def work(task):
        if arguments.get("wait"):
            await task_store.wait_for_update(task.task_id)
            await task.update_status("cancelled as asked", notify=False)  # tells the SDK not to complete it
        return text("done later")

    return await context.run_task(work)


CALLS = {
    call.__name__: call
    for call in (add, echo, repeat, gallery, fail, slow, hang, log, ask, ask_twice, visit, sample, roots, touch, grow)
} | {"grown": echo, "later": later}


@server.call_tool()
async def call_tool(name, arguments):
    if name not in {tool["name"] for tool in tools}:
        raise ValueError(f"unknown tool: {name}")
    return await CALLS[name](arguments)


# --- resources, prompts, completion


@server.list_resources()
async def list_resources(request: types.ListResourcesRequest):
    resources = [types.Resource.model_validate(resource) for resource in FEATURES["resources"]]
    if request.params and request.params.cursor == "page-2":
        return types.ListResourcesResult(resources=resources[2:])
    return types.ListResourcesResult(resources=resources[:2], nextCursor="page-2")


@server.list_resource_templates()
async def list_resource_templates():
    return [types.ResourceTemplate.model_validate(template) for template in FEATURES["resourceTemplates"]]


async def read_resource(request):
    uri = str(request.params.uri)
    contents = FEATURES["contents"].get(uri)
    if uri.startswith("peer://city/"):
        contents = {"uri": uri, "mimeType": "text/plain", "text": uri.removeprefix("peer://city/")}
    if contents is None:
        raise McpError(types.ErrorData(code=-32002, message="Resource not found", data={"uri": uri}))
    return types.ServerResult(types.ReadResourceResult.model_validate({"contents": [contents]}))


server.request_handlers[types.ReadResourceRequest] = read_resource  # the decorator builds the contents itself


@server.subscribe_resource()
async def subscribe_resource(_):
    pass


@server.unsubscribe_resource()
async def unsubscribe_resource(_):
    pass


@server.list_prompts()
async def list_prompts():
    return [types.Prompt.model_validate(prompt) for prompt in FEATURES["prompts"]]


@server.get_prompt()
async def get_prompt(name, arguments):
    if name not in {prompt["name"] for prompt in FEATURES["prompts"]}:
        raise McpError(types.ErrorData(code=types.INVALID_PARAMS, message=f"Unknown prompt: {name}"))
    content = types.TextContent(type="text", text=compact({name: arguments or {}}))
    return types.GetPromptResult(description=name, messages=[types.PromptMessage(role="user", content=content)])


@server.completion()
async def complete(_, argument, __):
    values = [word for word in FEATURES["completions"].get(argument.name, []) if word.startswith(argument.value)]
    return types.Completion(values=values, total=len(values), hasMore=False)


@server.set_logging_level()
async def set_logging_level(_):
    pass


async def main():
    numbers = itertools.count(1)
    task_scope.uuid4 = lambda: uuid.UUID(int=next(numbers))  # counted instead of random
    server.experimental.enable_tasks(store=task_store)
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    options.capabilities.resources.subscribe = True  # this SDK declares false even if a handler is registered
    sys.stderr.write("python1 server: ready\n")
    sys.stderr.flush()
    if sys.argv[1:]:
        from web import serve

        await serve(sys.argv[1].removeprefix("--"), server, options)
        return
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


asyncio.run(main())
