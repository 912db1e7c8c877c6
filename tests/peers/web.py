"""Shared code of the two Python servers over HTTP: one SDK server behind uvicorn on a free port, which is printed."""

import contextlib
import socket
import sys

import uvicorn
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Mount, Route, WebSocketRoute

# The same settings as in the SDK's own applications on a loopback address.
SECURITY = TransportSecuritySettings(
    enable_dns_rebinding_protection=True,
    allowed_hosts=["127.0.0.1:*", "localhost:*", "[::1]:*"],
    allowed_origins=["http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*"],
)


class Endpoint:
    """An ASGI application as an object: Starlette treats a function as one of its own endpoints."""

    def __init__(self, application):
        self.application = application

    async def __call__(self, scope, receive, send):
        await self.application(scope, receive, send)


def streamable(server, *, json=False):
    manager = StreamableHTTPSessionManager(app=server, json_response=json, security_settings=SECURITY)

    @contextlib.asynccontextmanager
    async def lifespan(_):
        async with manager.run():
            yield

    return Starlette(routes=[Route("/mcp", Endpoint(manager.handle_request))], lifespan=lifespan)


def legacy(server, options):
    transport = SseServerTransport("/messages/", SECURITY)

    async def connect(scope, receive, send):
        async with transport.connect_sse(scope, receive, send) as (read, write):
            await server.run(read, write, options)

    return Starlette(routes=[Route("/sse", Endpoint(connect)), Mount("/messages/", transport.handle_post_message)])


def websocket(server, options):
    from mcp.server.websocket import websocket_server  # only in SDK 1.x

    async def connect(scope, receive, send):
        async with websocket_server(scope, receive, send, SECURITY) as (read, write):
            await server.run(read, write, options)

    return Starlette(routes=[WebSocketRoute("/ws", Endpoint(connect))])


async def serve(transport, server, options):
    """Serve over `http`, `json` (the same, answered without events), `sse` or `ws` until a signal comes.

    Use TLS if a certificate and its key are given.
    """
    server.create_initialization_options = lambda *_, **__: options
    if transport in ("http", "json"):
        application = streamable(server, json=transport == "json")
    else:
        application = {"sse": legacy, "ws": websocket}[transport](server, options)
    listener = socket.socket(proto=socket.IPPROTO_TCP)  # otherwise asyncio leaves Nagle's algorithm on
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # a reader of the printed port may connect at once
    print(listener.getsockname()[1], flush=True)
    tls = dict(zip(("ssl_certfile", "ssl_keyfile"), sys.argv[2:], strict=False))
    config = uvicorn.Config(application, log_level="error", timeout_graceful_shutdown=0, **tls)
    await uvicorn.Server(config).serve(sockets=[listener])
