"""The application in a browser: one page, served through textual-serve to anyone who has the link.

The server does not read captures: each open page has its own process (`mcpspy.tui.web.process`), and communicates with
it over a WebSocket. A client with access can see everything that was captured, so the WebSocket needs a secret that
only the page has (A-15):

- The secret is in the fragment of the link, which browsers send to no server. The page removes it from the URL, keeps
  it for its tab, and offers it as a subprotocol when it opens the WebSocket: in a header, not in a URL. There is no
  cookie, because browsers send a cookie to every port of a host. A mail or chat program that fetches the link gets no
  access, so the link need not be limited to one use.
- The Host must be the one in the link. Otherwise a web page that maps another name to our address (DNS rebinding) could
  read our pages.
- The Origin, if a browser sends one, must be ours. A WebSocket of a browser always has one. For a request without an
  Origin, Sec-Fetch-Site shows whether another page made it. A page on another port of 127.0.0.1 has another origin but
  is of the same site.

The page and its assets hold nothing secret. It may load nothing from other origins. No process outlives its page, and
the input from a page is validated and limited before a process receives it.
"""

import asyncio
import json
import logging
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
from mcpspy.process.ports import bound, on_ending_signal, to_dial
from mcpspy.relay.http.host_guard import is_loopback
from mcpspy.text import printable
from mcpspy.tui.textual_serve_internals import Service, application_of
from mcpspy.tui.web.connections import BACKLOG, QUEUE, PagelessConnections

PATIENCE = 3.0
"""The seconds that an application has to exit."""
_MOST = (1000, 500)  # maximum columns and lines of a terminal; memory for the screen grows with their product
_POLICY = (  # the page has inline scripts and styles; it also refers to a font of another origin, but works without it
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self' ws://{}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SUBPROTOCOL = "mcpspy.tui"
"""The subprotocol that a page offers beside the secret, and the only one that is named in a response."""
_HEAD = """<title>mcpspy</title>
<link rel="icon" href="data:,">
<script>
  function keepSecret() { // in this tab, so that it can be reloaded; the URL no longer has it
    const found = /^#secret=([\\w-]+)$/.exec(location.hash);
    history.replaceState(null, "", "/");
    if (found) sessionStorage.setItem("secret", found[1]);
  }
  function show(text) {
    document.querySelector(".closed-dialog .message").textContent = text;
    document.querySelector(".closed-dialog button").remove();
  }
  keepSecret();
  addEventListener("hashchange", () => { keepSecret(); location.reload(); }); // a new link in this tab
  window.WebSocket = class extends WebSocket {
    constructor(url) {
      const secret = sessionStorage.getItem("secret");
      super(url, secret ? ["mcpspy.tui", secret] : []);
      let opened = false;
      this.addEventListener("open", () => { opened = true; });
      this.addEventListener("close", async () => {
        const running = await fetch("/", {method: "HEAD"}).then(() => true, () => false);
        const command = "Run 'mcpspy tui --web' and open the link that it prints.";
        if (!running) show(`mcpspy has ended. ${command}`);
        else if (!opened) show(`This page has no valid secret. ${command}`);
      });
    }
  };
  const ready = setInterval(() => {
    if (document.body.classList.contains("-first-byte")) {
      document.querySelector(".xterm textarea").focus();
      clearInterval(ready);
    }
  }, 20);
</script>
</head>"""
"""Additions to textual-serve's page: a title, an icon that causes no request, the secret for the WebSocket that its
script opens, why there is none, and keys that work without a click."""
_FOOT = """<noscript style="color: white; position: relative; z-index: 30">mcpspy needs JavaScript</noscript>
</body>"""


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
    lines = ["anyone who has the link can see the captures and control running sessions; Ctrl-C ends it"]
    if not is_loopback(address):
        lines.append(f"listening on {host}: this is plain HTTP, so others on the network can read the traffic")
    return lines


async def _serve(targets: list[str], host: str, listener: socket.socket, lines: list[str]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    on_ending_signal(loop, stop.set)
    pages = Pages(targets, to_dial(host), listener.getsockname()[1])
    runner = web.AppRunner(await pages.application(), shutdown_timeout=0.5, logger=_silent())
    await runner.setup()
    server = runner.server
    assert server
    loop.set_exception_handler(pages.connections.report)
    accepting = await loop.create_server(lambda: pages.connections.opened(server()), sock=listener, backlog=BACKLOG)
    listener.listen(QUEUE)  # BACKLOG also limited the queue of the kernel, where a client would wait for seconds
    try:
        print(pages.link, flush=True)
        for line in lines:
            print(f"mcpspy: {printable(line, 300)}", file=sys.stderr, flush=True)
        await stop.wait()
    finally:
        accepting.close()
        await runner.cleanup()


def _silent() -> logging.Logger:
    """Return a logger for aiohttp, which would print a traceback for each malformed request."""
    silent = logging.getLogger("mcpspy.tui.web")
    silent.disabled = True
    return silent


class WebGate:
    """Decides who may use the server at `authority`, the host and port in its link."""

    def __init__(self, authority: str) -> None:
        self._authority = authority.lower()
        self.secret = secrets.token_urlsafe(24)
        """The secret in the link."""

    def refusal(self, hosts: Sequence[str], origins: Sequence[str], sites: Sequence[str]) -> str | None:
        """Return why a request with these Host, Origin and Sec-Fetch-Site headers is refused; None if it is accepted.

        Sec-Fetch-Site counts only without an Origin: browsers differ in what they send with a WebSocket.
        """
        if [host.lower() for host in hosts] != [self._authority]:
            return f"this server is {self._authority}, and the request has another Host"
        own = [origin.lower() for origin in origins] == [f"http://{self._authority}"]
        if not own and (origins or list(sites) not in ([], ["none"], ["same-origin"])):
            return "the request comes from a page of another origin: copy the printed link into the address bar"
        return None

    def opens(self, origins: Sequence[str], subprotocols: str) -> bool:
        """Return whether an accepted request, with these headers, may open a WebSocket."""
        offered = subprotocols.rpartition(",")[2].strip()
        return bool(origins) and secrets.compare_digest(offered.encode(errors="replace"), self.secret.encode())


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
        self._words = [sys.executable, "-P", "-m", "mcpspy.tui.web.process", *targets]
        self._gate = WebGate(authority)
        self.link = f"http://{authority}/#secret={self._gate.secret}"
        """The link to the captures."""
        self._headers = {
            "Content-Security-Policy": _POLICY.format(authority),
            "Cross-Origin-Opener-Policy": "same-origin",  # a page that has opened ours cannot navigate it
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        self._open: set[asyncio.Task[object]] = set()
        self.connections = PagelessConnections()
        """The connections that are not accepted WebSockets."""

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
        response.text = (response.text or "").replace("</head>", _HEAD, 1).replace("</body>", _FOOT, 1)
        return response

    async def handle_download(self, request: web.Request) -> web.StreamResponse:  # noqa: ARG002 (textual-serve's signature)
        """Refuse: the application offers no files, and a page cannot send the secret with a download."""
        raise web.HTTPNotFound

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run an application for a page until one of them ends."""
        headers = request.headers
        if not self._gate.opens(headers.getall("Origin", []), headers.get("Sec-WebSocket-Protocol", "")):
            raise web.HTTPForbidden(text="mcpspy: the WebSocket needs the secret in the printed link\n")
        page = web.WebSocketResponse(heartbeat=15, protocols=[_SUBPROTOCOL])
        application = Application(self._words, page, self)
        size = bounded(to_int(request.query.get("width", ""), 80), to_int(request.query.get("height", ""), 24))
        task = asyncio.current_task()
        assert task
        self._open.add(task)
        try:
            await page.prepare(request)
            self.connections.release(request.protocol)
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
        self.connections.renew(request.protocol)
        reason = self._gate.refusal(
            *(request.headers.getall(name, []) for name in ("Host", "Origin", "Sec-Fetch-Site"))
        )
        if reason:
            raise web.HTTPForbidden(text=f"mcpspy: {printable(reason, 300)}\n")
        try:
            return await handler(request)
        except (web.HTTPException, ConnectionError):
            raise
        except Exception as error:  # aiohttp would log a traceback
            what = f"a bug ended a request ({type(error).__name__}: {error}); the server goes on"
            print(f"mcpspy: {printable(what, 300)}", file=sys.stderr, flush=True)
            raise

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
