"""The SDK's OAuth client, of either major version, with a browser that accepts everything: `login_client.py URL`.

It prints one JSON document: the server's answer to one call, or the error that ended the login, and all its secrets.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

try:
    import httpx2 as httpx
    from mcp.shared.auth import AuthorizationCodeResult
except ImportError:  # SDK 1.x
    import httpx

    AuthorizationCodeResult = None


class Memory:
    """The client's storage for a login."""

    def __init__(self):
        self.tokens = self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


async def main(url):
    memory, secrets, arrived = Memory(), [], []

    async def browse(page):
        async with httpx.AsyncClient() as browser:
            answer = await browser.get(page)
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        arrived.append({name: query[name][0] for name in ("code", "state", "iss") if name in query})
        secrets.append(query["code"][0])

    async def arrive():
        came = arrived[-1]
        return AuthorizationCodeResult(**came) if AuthorizationCodeResult else (came["code"], came["state"])

    async def look(request):
        form = parse_qs(request.content.decode()) if request.headers.get("content-type", "").endswith("encoded") else {}
        secrets.extend(form.get("code_verifier", []))

    metadata = OAuthClientMetadata(client_name="login", redirect_uris=["http://127.0.0.1:1/callback"])
    auth = OAuthClientProvider(url, metadata, memory, browse, arrive)
    document = {}
    try:
        async with (
            httpx.AsyncClient(auth=auth, timeout=20, event_hooks={"request": [look]}) as http,
            streamable_http_client(url, http_client=http) as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            document["said"] = (await session.call_tool("secret")).content[0].text
    except* Exception as group:
        error = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        document["error"] = f"{type(error).__name__}: {error}"
    if memory.tokens:
        secrets += [memory.tokens.access_token, memory.tokens.refresh_token]
    if memory.client and memory.client.client_secret:
        secrets.append(memory.client.client_secret)
    print(json.dumps(document | {"secrets": secrets}))


asyncio.run(main(sys.argv[1]))
