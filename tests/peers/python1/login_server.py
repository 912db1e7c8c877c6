"""An MCP server that requires a login, and its authorization server, with the SDK: `login_server.py KIND [CERT KEY]`.

`named`: protected-resource metadata name the server and an authorization server on another port, which ignores the
`resource` of token requests. `strict`: as `named`, but the server accepts only tokens that were requested for itself.
`hidden`: the server is its own authorization server, without any metadata (as in 2025-03-26). The program prints the
server's port. With a certificate file and its key file, both servers use TLS.
"""

import asyncio
import secrets
import socket
import sys
import time

import uvicorn
from mcp.server.auth.provider import AccessToken, AuthorizationCode, ProviderTokenVerifier, construct_redirect_uri
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.fastmcp import FastMCP
from mcp.shared.auth import OAuthToken
from starlette.applications import Starlette

TLS = dict(zip(("ssl_certfile", "ssl_keyfile"), sys.argv[2:], strict=False))


class Provider:
    """An authorization server that registers every client and issues each requested token without asking a user."""

    def __init__(self):
        self.clients = {}
        self.codes = {}
        self.tokens = {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = secrets.token_urlsafe(24)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 600,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        token = secrets.token_urlsafe(24)
        self.tokens[token] = AccessToken(
            token=token,
            client_id=client.client_id,
            scopes=authorization_code.scopes,
            resource=authorization_code.resource,
        )
        return OAuthToken(access_token=token, refresh_token=secrets.token_urlsafe(24), expires_in=3600)

    async def load_refresh_token(self, client, refresh_token):
        return None

    async def load_access_token(self, token):
        return self.tokens.get(token)


def listener():
    found = socket.socket(proto=socket.IPPROTO_TCP)
    found.bind(("127.0.0.1", 0))
    found.listen()
    return found, f"{'https' if TLS else 'http'}://127.0.0.1:{found.getsockname()[1]}"


async def main(kind):
    (own, origin), (other, issuer) = listener(), listener()
    provider, registration = Provider(), ClientRegistrationOptions(enabled=True)
    if kind == "hidden":
        settings = AuthSettings(issuer_url=origin, resource_server_url=None, client_registration_options=registration)
        server = FastMCP("login", auth=settings, auth_server_provider=provider)
    else:
        resource = f"{origin}/mcp"
        strict = kind == "strict"
        settings = AuthSettings(issuer_url=issuer, resource_server_url=resource, validate_token_resource=strict)
        server = FastMCP("login", auth=settings, token_verifier=ProviderTokenVerifier(provider))

    @server.tool()
    def secret() -> str:
        return "for those who have logged in"

    application = server.streamable_http_app()
    if kind == "hidden":
        application.router.routes[:] = [it for it in application.routes if ".well-known" not in it.path]
    desk = Starlette(routes=create_auth_routes(provider, settings.issuer_url, client_registration_options=registration))
    print(own.getsockname()[1], flush=True)
    servers = [
        uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=0, **TLS)).serve(sockets=[port])
        for app, port in ((application, own), (desk, other))
    ]
    await asyncio.gather(*servers)


asyncio.run(main(sys.argv[1]))
