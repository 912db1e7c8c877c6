"""The server that the official conformance suite tests: the Python SDK 2.x over HTTP; it prints the port it listens on.

The suite names the tools, resources and prompts that it calls (`conformance list`; each scenario describes its needs).
Tools with `input_required` in their name belong to 2026-07-28. Tools that send requests to the client belong to the
handshake era.
"""

import asyncio
import base64
import json
import socket
import warnings
from typing import Annotated, Any

import mcp_types as types
import uvicorn
from mcp import MCPDeprecationWarning, MCPError
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.server.mcpserver.prompts.base import Prompt, UserMessage
from mcp.server.streamable_http import EventMessage, EventStore
from pydantic import Field

warnings.simplefilter("ignore", MCPDeprecationWarning)  # sampling, roots and logging are deprecated, but still tested

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
RETRY = 100  # ms until a client reconnects to a closed stream
NOTHING_DONE = types.EmptyResult()


class Events(EventStore):
    """The events of every stream, so that a client can resume one."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id, send_callback):
        seen = int(last_event_id) if last_event_id.isdecimal() else 0
        if not 0 < seen <= len(self.events):
            return None
        wanted = self.events[seen - 1][0]
        for number, (stream, message) in enumerate(self.events[seen:], seen + 1):
            if stream == wanted and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return wanted


server = MCPServer(
    "conformance-peer",
    version="1",
    log_level="ERROR",
    request_state_security=RequestStateSecurity(keys=[b"a key that is only used in tests, and long enough"]),
)


def text(value):
    return types.TextContent(text=value)


def image():
    return types.ImageContent(data=PNG, mime_type="image/png")


def embedded(uri, value="embedded", mime_type="text/plain"):
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=value))


# --- tools that answer by themselves


CONTENT = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [image()],
    "test_audio_content": [types.AudioContent(data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [embedded("test://embedded-resource")],
    "test_multiple_content_types": [
        text("three kinds"),
        image(),
        embedded("test://mixed-content-resource", '{"test": "data", "value": 123}', "application/json"),
    ],
}


def always(content):
    def tool() -> Any:
        return types.CallToolResult(content=content)

    return tool


for name, content in CONTENT.items():
    server.add_tool(always(content), name, description=f"Give fixed content: {name}.")


@server.tool()
async def test_error_handling() -> str:
    """Fail."""
    raise ValueError("failed as asked")


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Log three messages, if the client wants any."""
    for step in ("started", "going on", "done"):
        await ctx.info(step)
        await asyncio.sleep(0.05)
    return "logged"


server.add_tool(test_tool_with_logging, "test_logging_tool")


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100, f"{progress} of 100")
        await asyncio.sleep(0.05)
    return "reported"


@server.tool()
async def test_reconnection(ctx: Context) -> str:
    """Close the stream of the answer, so that the client has to reconnect."""
    await ctx.close_sse_stream()
    await asyncio.sleep(3 * RETRY / 1000)
    return "reconnected"


@server.tool()
def test_x_mcp_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Take an argument that HTTP has as a header too."""
    return region


@server.tool()
def test_missing_capability(ctx: Context) -> str:
    """Work only with a client that declares sampling."""
    if not (ctx.client_capabilities and ctx.client_capabilities.sampling):
        code, needed = types.MISSING_REQUIRED_CLIENT_CAPABILITY, {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(code=code, message="sampling is not declared", data=needed)
    return "sampling is declared"


SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}}}},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@server.tool()
def json_schema_2020_12_tool() -> str:
    """Have an inputSchema with the keywords of JSON Schema 2020-12."""
    return "called"


server._tool_manager.get_tool("json_schema_2020_12_tool").parameters = SCHEMA_2020_12  # no public API


# --- tools that send requests to the client (handshake era)


def form(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


STRING = {"type": "string"}
LEVELS = [{"const": name, "title": name.title()} for name in ("low", "medium", "high")]
FORMS = {
    "test_elicitation_sep1034_defaults": form(
        name=STRING | {"default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status=STRING | {"enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    ),
    "test_elicitation_sep1330_enums": form(
        untitledSingle=STRING | {"enum": ["low", "high"]},
        titledSingle=STRING | {"oneOf": LEVELS},
        legacyEnum=STRING | {"enum": ["s", "l"], "enumNames": ["small", "large"]},
        untitledMulti={"type": "array", "items": STRING | {"enum": ["low", "high"]}},
        titledMulti={"type": "array", "items": {"anyOf": LEVELS}},
    ),
}


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    messages = [types.SamplingMessage(role="user", content=text(prompt))]
    result = await ctx.session.create_message(messages, max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {getattr(result.content, 'text', '')}"


async def ask(ctx, message, schema):
    result = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return f"action={result.action}, content={json.dumps(result.content)}"


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user."""
    return await ask(ctx, message, form(["username", "email"], username=STRING, email=STRING))


def asking(schema):
    async def tool(ctx: Context) -> str:
        return await ask(ctx, "Please fill in.", schema)

    return tool


for name, schema in FORMS.items():
    server.add_tool(asking(schema), name, description="Ask the user by a form.")


# --- tools that need input from the client: `input_required` (2026-07-28)


def elicited(member, kind="string", message="Please fill in."):
    schema = form([member], **{member: {"type": kind}})
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampled(prompt):
    messages = [types.SamplingMessage(role="user", content=text(prompt))]
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=messages, max_tokens=100))


def answered(ctx, state=None, **requests):
    """Return the client's answers as text if all are there, else the result that requests them."""
    answers = ctx.input_responses or {}
    if requests.keys() <= answers.keys() and (state is None or ctx.request_state == state):
        return " ".join(["state-ok", *(answers[name].model_dump_json(exclude_none=True) for name in sorted(requests))])
    return types.InputRequiredResult(input_requests=requests, request_state=state)


ROOTS = types.ListRootsRequest()
INPUTS = {
    "elicitation": {"user_name": elicited("name")},
    "sampling": {"capital_question": sampled("What is the capital of France?")},
    "list_roots": {"client_roots": ROOTS},
    "request_state": {"confirm": elicited("ok", "boolean")},
    "multiple_inputs": {"user_name": elicited("name"), "greeting": sampled("Greet."), "client_roots": ROOTS},
    "tampered_state": {"confirm": elicited("ok", "boolean")},
}
WITH_STATE = {"request_state", "multiple_inputs", "tampered_state"}


def requiring(requests, state):
    async def tool(ctx: Context) -> Any:
        return answered(ctx, state, **requests)

    return tool


for name, requests in INPUTS.items():
    tool = requiring(requests, name if name in WITH_STATE else None)
    server.add_tool(tool, f"test_input_required_result_{name}", description="Need input from the client.")
server.add_tool(requiring(INPUTS["elicitation"], None), "test_streaming_elicitation", description="Need input as well.")


@server.tool()
async def test_input_required_result_multi_round(ctx: Context) -> Any:
    """Need input twice."""
    first = ctx.request_state in (None, "first")
    step = answered(ctx, "first" if first else "second", **{"step1" if first else "step2": elicited("name")})
    if first and not isinstance(step, types.InputRequiredResult):
        return types.InputRequiredResult(input_requests={"step2": elicited("color")}, request_state="second")
    return step


@server.tool()
async def test_input_required_result_capabilities(ctx: Context) -> Any:
    """Need input of the kinds that the client declares."""
    declared = ctx.client_capabilities or types.ClientCapabilities()
    requests = {"sample": sampled("Say hello.")} if declared.sampling is not None else {}
    requests |= {"ask": elicited("name")} if declared.elicitation is not None else {}
    return types.InputRequiredResult(input_requests=requests, request_state="asked")


# --- tools that change listings


def nothing() -> str:
    """Do nothing."""
    return "nothing"


@server.tool()
async def test_trigger_tool_change(ctx: Context) -> str:
    """Add a tool and remove it."""
    server.add_tool(nothing, "test_short_lived")
    server.remove_tool("test_short_lived")
    await ctx.notify_tools_changed()
    return "changed"


@server.tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Add a prompt and remove it."""
    server.add_prompt(Prompt.from_function(nothing, name="test_short_lived"))
    server.remove_prompt("test_short_lived")
    await ctx.notify_prompts_changed()
    return "changed"


# --- resources, prompts, completions


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A fixed text."""
    return "the text"


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A fixed picture."""
    return base64.b64decode(PNG)


@server.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    """A text to subscribe to."""
    return "the watched text"


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # noqa: A002 (the name in the template)
    """A text for each id."""
    return json.dumps({"id": id, "templateTest": True})


@server.prompt()
def test_simple_prompt() -> list[UserMessage]:
    """A fixed prompt."""
    return [UserMessage(text("a simple prompt"))]


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> list[UserMessage]:
    """A prompt with two arguments."""
    return [UserMessage(text(f"arg1='{arg1}', arg2='{arg2}'"))]


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 (the suite's name)
    """A prompt with a resource in it."""
    return [UserMessage(embedded(resourceUri)), UserMessage(text("Please read the resource above."))]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    """A prompt with a picture in it."""
    return [UserMessage(image()), UserMessage(text("Please look at the picture above."))]


@server.prompt()
async def test_input_required_result_prompt(ctx: Context) -> Any:
    """A prompt that needs input from the client."""
    step = answered(ctx, user_context=elicited("context"))
    return step if isinstance(step, types.InputRequiredResult) else [UserMessage(text(step))]


@server.completion()
async def complete(ref, argument, context) -> types.Completion:
    """Complete nothing."""
    return types.Completion(values=["paris", "park"], total=2, has_more=False)


async def accept(context, params):
    return NOTHING_DONE


for method, kind in {
    "logging/setLevel": types.SetLevelRequestParams,
    "resources/subscribe": types.SubscribeRequestParams,
    "resources/unsubscribe": types.UnsubscribeRequestParams,
}.items():
    server._lowlevel_server.add_request_handler(method, kind, accept)


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    application = server.streamable_http_app(event_store=Events(), retry_interval=RETRY)
    uvicorn.Server(uvicorn.Config(application, log_level="error")).run([listener])


if __name__ == "__main__":
    main()
