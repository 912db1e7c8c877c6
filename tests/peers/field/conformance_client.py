"""The client that the official conformance suite tests: the Python SDK 2.x, `conformance_client.py [COMMAND...] URL`.

It speaks HTTP. With a COMMAND it speaks stdio: COMMAND starts a bridge to HTTP, which gets the URL. The suite starts
the client, with the scenario, its context (JSON) and the revision in the environment. In most scenarios the client
lists the tools and calls each. It accepts everything: elicitations get the defaults of their form, logins succeed.
"""

import asyncio
import contextlib
import json
import os
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
import mcp_types as types
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
MODERN = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION") in MODERN_PROTOCOL_VERSIONS
HANDSHAKE = {"json-schema-ref-no-deref"}  # here the suite's server only has the handshake era
CALLBACK = "http://127.0.0.1:1/callback"
CLIENT_ID_DOCUMENT = "https://conformance-test.local/client-metadata.json"  # the URL that the suite expects
VALUES = {"string": "x", "integer": 1, "number": 1, "boolean": True, "object": {}, "array": [], "null": None}


# --- requests of the server


async def sampled(context, params):
    return types.CreateMessageResult(role="assistant", content=types.TextContent(text="Paris"), model="none")


async def roots(context):
    return types.ListRootsResult(roots=[])


async def elicited(context, params):
    members = params.requested_schema.get("properties", {}).items()
    content = {name: schema["default"] for name, schema in members if "default" in schema}
    required = params.requested_schema.get("required", [])
    content |= {name: VALUES[schema["type"]] for name, schema in members if name in required and name not in content}
    return types.ElicitResult(action="accept", content=content)


# --- scenarios


def arguments(tool):
    schemas = tool.input_schema.get("properties", {})
    return {name: VALUES.get(schemas.get(name, {}).get("type"), "x") for name in tool.input_schema.get("required", [])}


async def call(client, calls):
    """Make some calls. The server may refuse any of them."""
    for name, values in calls:
        with contextlib.suppress(MCPError):
            await client.call_tool(name, values)


async def each_tool(client):
    tools = (await client.list_tools()).tools
    await call(client, [(tool.name, {"a": 5, "b": 3} if "add" in tool.name else arguments(tool)) for tool in tools])


async def calls_of_the_suite(client):
    known = {tool.name for tool in (await client.list_tools()).tools}
    await call(client, [(it["name"], it.get("arguments") or {}) for it in CONTEXT["toolCalls"] if it["name"] in known])


async def schema_and_back(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})


SCENARIOS = {
    "http-custom-headers": calls_of_the_suite,
    "json-schema-2020-12-preservation": schema_and_back,
}


# --- logins


class Memory:
    """The client's storage for a login."""

    def __init__(self, client=None):
        self.tokens, self.client = None, client

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


def code_grant(url):
    arrived = []

    async def browse(page):
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(page)
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        arrived.append({name: query[name][0] for name in ("code", "state", "iss") if name in query})

    async def arrive():
        return AuthorizationCodeResult(**arrived[-1])

    known = None
    if "client_id" in CONTEXT:
        known = OAuthClientInformationFull(
            client_id=CONTEXT["client_id"],
            client_secret=CONTEXT.get("client_secret"),
            redirect_uris=[CALLBACK],
            token_endpoint_auth_method="client_secret_basic" if "client_secret" in CONTEXT else "none",
        )
    metadata = OAuthClientMetadata(client_name="conformance-peer", redirect_uris=[CALLBACK])
    return OAuthClientProvider(url, metadata, Memory(known), browse, arrive, CLIENT_ID_DOCUMENT)


def with_secret(url):
    return ClientCredentialsOAuthProvider(url, Memory(), CONTEXT["client_id"], CONTEXT["client_secret"])


def with_key(url):
    signed = SignedJWTParameters(
        issuer=CONTEXT["client_id"],
        subject=CONTEXT["client_id"],
        signing_algorithm=CONTEXT.get("signing_algorithm", "ES256"),
        signing_key=CONTEXT["private_key_pem"],
    )
    return PrivateKeyJWTOAuthProvider(url, Memory(), CONTEXT["client_id"], signed.create_assertion_provider())


def with_identity(url):
    """Exchange a token of the company's identity provider for one of the server (RFC 8693, RFC 7523)."""
    parts = urlsplit(url)
    metadata = httpx2.get(f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}")

    async def assertion(audience, resource):
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "subject_token": CONTEXT["idp_id_token"],
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "audience": audience,
            "resource": resource,
            "client_id": CONTEXT["idp_client_id"],
        }
        async with httpx2.AsyncClient() as http:
            return (await http.post(CONTEXT["idp_token_endpoint"], data=form)).json()["access_token"]

    issuer = metadata.json()["authorization_servers"][0]
    secret = CONTEXT["client_id"], CONTEXT["client_secret"]
    method = "client_secret_basic"
    return IdentityAssertionOAuthProvider(url, Memory(), *secret, issuer, assertion, token_endpoint_auth_method=method)


LOGINS = {
    "auth/client-credentials-basic": with_secret,
    "auth/client-credentials-jwt": with_key,
    "auth/enterprise-managed-authorization": with_identity,
}


async def main(bridge, url):
    auth = LOGINS.get(SCENARIO, code_grant)(url) if SCENARIO.startswith("auth/") else None
    asked = {"sampling_callback": sampled, "list_roots_callback": roots, "elicitation_callback": elicited}
    mode = "auto" if MODERN and SCENARIO not in HANDSHAKE else "legacy"
    async with httpx2.AsyncClient(auth=auth, timeout=20) as http:
        server = streamable_http_client(url, http_client=http)
        if bridge:
            server = StdioServerParameters(command=bridge[0], args=[*bridge[1:], url])
        async with Client(server, mode=mode, **asked) as client:
            await SCENARIOS.get(SCENARIO, each_tool)(client)


asyncio.run(main(sys.argv[1:-1], sys.argv[-1]))
