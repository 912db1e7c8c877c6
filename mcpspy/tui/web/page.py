"""The application in a browser: one page, served through textual-serve to anyone who has the link.

The server does not read captures: each open page has its own process (`mcpspy.tui.web.process`), and communicates with
it over a WebSocket. A client with access can see everything that was captured, so every request is checked, including
the request for the WebSocket:

- The Host must be the one in the link. Otherwise a web page that maps another name to our address (DNS rebinding) could
  read our pages.
- The Origin, if a browser sends one, must be ours.
- The link admits one browser, once, which then gets a cookie. Mail and chat programs fetch links before people open
  them, but only with GET. So a GET returns a page that repeats the request with POST, and only a POST spends the token.

A page may load nothing from other origins. No process outlives its page, and the input from a page is validated and
limited before a process receives it.
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
"""The seconds that an application has to exit."""
_MOST = (1000, 500)  # maximum columns and lines of a terminal; memory for the screen grows with their product
_POLICY = (  # the page has inline scripts and styles; it also refers to a font of another origin, but works without it
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
"""Additions to textual-serve's page: a title, an icon that causes no request, and keys that work without a click."""
_DOOR = """<!DOCTYPE html>
<title>mcpspy</title>
<link rel="icon" href="data:,">
<noscript>mcpspy needs JavaScript</noscript>
<script>
  fetch(location.href, {method: "POST"}).then(() => location.replace("/"));
</script>
"""
"""The page that the link shows first: it spends the token, and then loads the application."""


def serve(targets: list[str], host: str, port: int) -> int:
    """Serve the captures at `targets` until a signal arrives. Returns the exit status. Raises UsageError."""
    listener = bound(host, port, "--web")
    address = ip_address(listener.getsockname()[0].partition("%")[0])
    if address.is_unspecified:
        listener.close()
        raise UsageError(f"--web needs an address that a browser can name, such as 127.0.0.1:{port}; {host} is not one")
    asyncio.run(_serve(targets, host, listener, said(host, str(address))))
    return 0


def said(host: str, address: str) -> list[str]:
    """Return the notices for the user who starts a server on a host and address."""
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
        """The token in the link."""
        self._spent = False
        self.name = f"mcpspy-{authority.rpartition(':')[2]}"
        """The name of the cookie. It contains the port, because browsers share cookies between the ports of a host."""
        self.cookie = secrets.token_urlsafe(24)
        """The cookie of the admitted browser."""

    def refusal(self, hosts: Sequence[str], origins: Sequence[str]) -> str | None:
        """Return why a request with these Host and Origin headers is refused; None if it is accepted."""
        if [host.lower() for host in hosts] != [self._authority]:
            return f"this server is {self._authority}, and the request has another Host"
        if [origin.lower() for origin in origins] not in ([], [f"http://{self._authority}"]):
            return "the request comes from a page of another origin"
        return None

    def admits(self, cookie: str) -> bool:
        """Return whether this is the cookie of the admitted browser."""
        return secrets.compare_digest(cookie.encode(), self.cookie.encode())

    def knows(self, token: str) -> bool:
        """Return whether this is the token of the link, and it is not spent."""
        return not self._spent and secrets.compare_digest(token.encode(), self.token.encode())

    def spend(self) -> None:
        """Make the token invalid."""
        self._spent = True


class Application(Service):
    """The process behind one page, and the messages that the page may send to it."""

    def __init__(self, words: Sequence[str], page: web.WebSocketResponse, pages: Server) -> None:
        """Prepare the command `words`, without starting it."""
        super().__init__(
            words,
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=page.close,
            download_manager=pages.download_manager,
        )

    async def take(self, message: object) -> bool:
        """Forward a decoded message of a page. Returns whether the message is valid."""
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
        """Ask the process to exit; kill it after PATIENCE seconds, or if waiting is cancelled."""
        process = self.process
        if process is None:
            return
        deadline = asyncio.get_running_loop().time() + PATIENCE
        try:
            for step in (super().stop, process.wait):  # in one block, the first would hide the time-out
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(deadline):
                        await step()
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()  # until its pipes are read, `wait` would not return


def bounded(width: int, height: int) -> tuple[int, int]:
    """Return a terminal size, limited to valid values."""
    most_width, most_height = _MOST
    return min(max(width, 1), most_width), min(max(height, 1), most_height)


class Pages(Server):
    """textual-serve's server behind the access check; its applications exit with it."""

    def __init__(self, targets: list[str], host: str, port: int) -> None:
        """Prepare the server, without listening; `host` is written as in a URL."""
        authority = host if port == 80 else f"{host}:{port}"
        super().__init__("", host, port, title="mcpspy", public_url=f"http://{authority}")
        self._words = [sys.executable, "-m", "mcpspy.tui.web.process", *targets]
        self._gate = WebGate(authority)
        self.link = f"http://{authority}/?token={self._gate.token}"
        """The link to the captures, valid for one browser."""
        self._headers = {
            "Content-Security-Policy": _POLICY.format(authority),
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        self._open: set[asyncio.Task[object]] = set()

    async def application(self) -> web.Application:
        """Return the web application that answers requests."""
        app = await application_of(self)
        app.middlewares.append(self._guard)
        app.on_response_prepare.append(self._add_headers)
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing, because mcpspy prints its own link."""

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002 (textual-serve's signature)
        """Stop the applications that are running."""
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open, timeout=PATIENCE + 1)

    async def handle_index(self, request: web.Request) -> web.Response:
        """Return the page, with our additions."""
        response = await super().handle_index(request)
        assert isinstance(response, web.Response)
        response.text = (response.text or "").replace("</head>", _HEAD, 1)
        return response

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run an application for a page until one of them ends."""
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
        except asyncio.CancelledError:  # the server is shutting down
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
    """Forward the messages of a page until it is closed or sends an invalid message."""
    with suppress(ConnectionError):
        async for message in page:
            try:
                said = json.loads(message.data) if message.type is WSMsgType.TEXT else None
            except (ValueError, RecursionError):
                said = None
            if not await application.take(said):
                await page.close(code=WSCloseCode.POLICY_VIOLATION)
