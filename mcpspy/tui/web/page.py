"""The application in a browser: one page, served through textual-serve to anyone who has the link.

The server knows nothing of captures: each page that is open has a process of its own (`browser`) and talks with it over
a WebSocket. A client that gets through sees everything that was captured, so every request is checked, the one for the
WebSocket included. The Host must be the one in the link, or a web page that gives our address another name (DNS
rebinding) could read what we serve; the Origin, which browsers send along, must be ours; and the link admits one
browser, once, which gets a cookie instead. Programs that look at links before people do (mail, chat) only GET: that
shows a page which asks again, with POST, and the token is spent then. A page may fetch nothing from anywhere else. No
process outlives its page, and what a page says is bounded before a process hears of it.
"""

import asyncio
import json
import secrets
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address

from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.typedefs import Handler
from textual_serve.server import Server, to_int

from mcpspy.errors import UsageError
from mcpspy.process.ports import bound, to_dial
from mcpspy.process.signals import on_ending_signal
from mcpspy.relay.http.host_guard import is_loopback
from mcpspy.text import printable
from mcpspy.tui.textual_serve_internals import Service, application_of

PATIENCE = 3.0
"""Seconds that an application may take to end."""
_MOST = (1000, 500)  # columns and lines of a terminal; the screen of an application grows with their product
_POLICY = (  # the page has scripts and styles inside, and names a font of another origin that it can do without
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self' ws://{}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEAD = """<title>mcpspy</title>
<link rel="icon" href="data:,">
<script>
  history.replaceState(null, "", "/"); // the token is spent
  const ready = setInterval(() => {
    if (document.body.classList.contains("-first-byte")) {
      document.querySelector(".xterm textarea").focus();
      clearInterval(ready);
    }
  }, 20);
</script>
</head>"""
"""What textual-serve's page lacks: a name, an icon that is not asked for, and keys that work without a click."""
_DOOR = """<!DOCTYPE html>
<title>mcpspy</title>
<link rel="icon" href="data:,">
<noscript>mcpspy needs JavaScript</noscript>
<script>
  fetch(location.href, {method: "POST"}).then(() => location.replace("/"));
</script>
"""
"""What the link shows first: it spends the token, and goes on."""


def serve(targets: list[str], host: str, port: int) -> int:
    """Serve the captures at `targets` until a signal ends it; returns the exit status. Raises UsageError."""
    listener = bound(host, port, "--web")
    address = ip_address(listener.getsockname()[0].partition("%")[0])
    if address.is_unspecified:
        listener.close()
        raise UsageError(f"--web needs an address that a browser can name, such as 127.0.0.1:{port}; {host} is not one")
    asyncio.run(_serve(targets, host, listener, said(host, str(address))))
    return 0


def said(host: str, address: str) -> list[str]:
    """What a person who starts a server on that host, at that address, has to know."""
    lines = ["the link works once, in one browser; Ctrl-C ends it"]
    if not is_loopback(address):
        lines.append(f"listening on {host}: this is plain HTTP, so others on the network can read the traffic")
    return lines


async def _serve(targets: list[str], host: str, listener: socket.socket, lines: list[str]) -> None:
    stop = asyncio.Event()
    on_ending_signal(asyncio.get_running_loop(), stop.set)
    pages = Pages(targets, to_dial(host), listener.getsockname()[1])
    runner = web.AppRunner(await pages.application(), shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        print(pages.link, flush=True)
        for line in lines:
            print(f"mcpspy: {printable(line, 300)}", file=sys.stderr, flush=True)
        await stop.wait()
    finally:
        await runner.cleanup()


class WebGate:
    """Decides who may use the server at `authority`, the host and port in its link."""

    def __init__(self, authority: str) -> None:
        self._authority = authority.lower()
        self.token = secrets.token_urlsafe(24)
        """What the link holds."""
        self._spent = False
        self.name = f"mcpspy-{authority.rpartition(':')[2]}"
        """Of the cookie: browsers do not tell the ports of a host apart."""
        self.cookie = secrets.token_urlsafe(24)
        """What the browser that is let in holds."""

    def refusal(self, hosts: Sequence[str], origins: Sequence[str]) -> str | None:
        """Why a request with these Host and Origin headers is refused; None if it is not."""
        if [host.lower() for host in hosts] != [self._authority]:
            return f"this server is {self._authority}, and the request has another Host"
        if [origin.lower() for origin in origins] not in ([], [f"http://{self._authority}"]):
            return "the request comes from a page of another origin"
        return None

    def admits(self, cookie: str) -> bool:
        """Whether this is the cookie of the browser that was let in."""
        return secrets.compare_digest(cookie.encode(), self.cookie.encode())

    def knows(self, token: str) -> bool:
        """Whether this is the token of the link, and nobody has spent it."""
        return not self._spent and secrets.compare_digest(token.encode(), self.token.encode())

    def spend(self) -> None:
        """Let the token be that of the link no longer."""
        self._spent = True


class Application(Service):
    """The process behind one page, and what the page may say to it."""

    def __init__(self, words: Sequence[str], page: web.WebSocketResponse, pages: Server) -> None:
        """Start nothing yet; `words` is the command."""
        super().__init__(
            words,
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=page.close,
            download_manager=pages.download_manager,
        )

    async def take(self, message: object) -> bool:
        """Pass on what a page says, decoded; tells whether that was anything."""
        match message:
            case ["stdin", str(text)]:
                await self.send_bytes(text.encode(errors="replace"))
            case ["resize", {"width": int(width), "height": int(height)}]:
                await self.set_terminal_size(*bounded(width, height))
            case ["ping", sent]:
                await self.remote_write_str(json.dumps(["pong", sent]))
            case ["focus"]:
                await self.focus()
            case ["blur"]:
                await self.blur()
            case _:
                return False
        return True

    async def stop(self) -> None:
        """Ask it to end; one that does not in time, or that nobody can wait for, is ended."""
        process = self.process
        if process is None:
            return
        deadline = asyncio.get_running_loop().time() + PATIENCE
        try:
            for step in (super().stop, process.wait):  # the first would hide from the second that time is up
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(deadline):
                        await step()
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()  # a pipe that still holds something keeps the process from being over


def bounded(width: int, height: int) -> tuple[int, int]:
    """The size of a terminal, as near as there can be one."""
    most_width, most_height = _MOST
    return min(max(width, 1), most_width), min(max(height, 1), most_height)


class Pages(Server):
    """The server: textual-serve's, behind the gate; its applications end with it."""

    def __init__(self, targets: list[str], host: str, port: int) -> None:
        """Listen nowhere yet; `host` is as in a URL."""
        authority = host if port == 80 else f"{host}:{port}"
        super().__init__("", host, port, title="mcpspy", public_url=f"http://{authority}")
        self._words = [sys.executable, "-m", "mcpspy.tui.web.process", *targets]
        self._gate = WebGate(authority)
        self.link = f"http://{authority}/?token={self._gate.token}"
        """Where the captures are to be seen, by one browser."""
        self._headers = {
            "Content-Security-Policy": _POLICY.format(authority),
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        self._open: set[asyncio.Task[object]] = set()

    async def application(self) -> web.Application:
        """What answers requests."""
        app = await application_of(self)
        app.middlewares.append(self._guard)
        app.on_response_prepare.append(self._add_headers)
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: the link is our own."""

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002 (textual-serve's signature)
        """End the applications that are open."""
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open, timeout=PATIENCE + 1)

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page."""
        response = await super().handle_index(request)
        assert isinstance(response, web.Response)
        response.text = (response.text or "").replace("</head>", _HEAD, 1)
        return response

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run an application for a page until either ends."""
        page = web.WebSocketResponse(heartbeat=15)
        application = Application(self._words, page, self)
        size = bounded(to_int(request.query.get("width", ""), 80), to_int(request.query.get("height", ""), 24))
        task = asyncio.current_task()
        assert task
        self._open.add(task)
        try:
            await page.prepare(request)
            await application.start(*size)
            await _listen(page, application)
        except asyncio.CancelledError:  # the server ends
            pass
        finally:
            await application.stop()
            await page.close()
            self._open.discard(task)
        return page

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        gate = self._gate
        reason = gate.refusal(request.headers.getall("Host", []), request.headers.getall("Origin", []))
        if reason:
            raise web.HTTPForbidden(text=f"mcpspy: {printable(reason, 300)}\n")
        if gate.admits(request.cookies.get(gate.name, "")):
            return await handler(request)
        token = request.query.get("token", "")
        if request.path != "/" or not gate.knows(token):
            raise web.HTTPForbidden(text="mcpspy: the printed link works once, in one browser: start mcpspy again\n")
        if request.method != "POST":
            return web.Response(text=_DOOR, content_type="text/html")
        gate.spend()
        response = web.Response(status=204)
        response.set_cookie(gate.name, gate.cookie, httponly=True, samesite="Strict")
        return response

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:  # noqa: ARG002
        response.headers.update(self._headers)


async def _listen(page: web.WebSocketResponse, application: Application) -> None:
    """Pass on what the page says until it is closed, or says what no page of ours does."""
    with suppress(ConnectionError):
        async for message in page:
            try:
                said = json.loads(message.data) if message.type is WSMsgType.TEXT else None
            except (ValueError, RecursionError):
                said = None
            if not await application.take(said):
                await page.close(code=WSCloseCode.POLICY_VIOLATION)
