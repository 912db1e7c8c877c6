"""What the two Python servers share over HTTP: one SDK server behind uvicorn on a free port, which is printed."""

import contextlib
import socket

import uvicorn
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Mount, Route

# As the SDK's own applications have it on a loopback address.
SECURITY = TransportSecuritySettings(
    enable_dns_rebinding_protection=True,
    allowed_hosts=["127.0.0.1:*", "localhost:*", "[::1]:*"],
    allowed_origins=["http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*"],
)


class Endpoint:
    """An ASGI application as an object: Starlette takes a function for one of its own kind."""

    def __init__(self, application):
        self.application = application

    async def __call__(self, scope, receive, send):
        await self.application(scope, receive, send)


def streamable(server):
    manager = StreamableHTTPSessionManager(app=server, security_settings=SECURITY)

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


async def serve(transport, server, options):
    """Serve over `http` or `sse` until a signal comes."""
    server.create_initialization_options = lambda *_, **__: options
    application = streamable(server) if transport == "http" else legacy(server, options)
    listener = socket.socket(proto=socket.IPPROTO_TCP)  # without which asyncio leaves Nagle's algorithm on
    listener.bind(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(application, log_level="error", timeout_graceful_shutdown=0)
    await uvicorn.Server(config).serve(sockets=[listener])
