"""The page of `tui --web` in a real browser (A-15)."""

import http.server
import signal
import threading
from contextlib import closing, contextmanager

import pytest

pytest.importorskip("textual_serve")

from tests.limits import LIMIT
from tests.transcript import capture
from tests.tui.web.browser import needs_chromium
from tests.tui.web.websocket import Page, authority_of

pytestmark = needs_chromium

MESSAGE = "document.querySelector('.closed-dialog .message')?.textContent"
REACH = """
window.results = [];
const note = (result) => window.results.push(result);
for (const protocols of [[], ["mcpspy.tui"], ["mcpspy.tui", "guess"]]) {
    const socket = new WebSocket(`ws://${arguments[0]}/ws?width=80&height=24`, protocols);
    socket.onopen = () => note("opened");
    socket.onerror = () => note("refused");
}
for (const options of [{}, {credentials: "include"}])
    fetch(`http://${arguments[0]}/`, options).then(() => note("read"), () => note("refused"));
const script = document.createElement("script");
script.onload = () => note("loaded");
script.onerror = () => note("refused");
script.src = `http://${arguments[0]}/static/js/textual.js`;
document.head.append(script);
"""
"""What a page of another origin can try. It notes six results."""


@pytest.fixture
def captured(tmp_path):
    """A capture that fills the screen."""
    return capture(
        tmp_path / "a.jsonl", "\n".join(f'> {{"jsonrpc":"2.0","id":{n},"method":"ping"}}' for n in range(50))
    )


def shown(browser):
    """Wait until the application is shown and takes keys. The page may be loading."""
    browser.until("document.body?.classList.contains('-first-byte')")
    browser.until("document.activeElement.matches('.xterm textarea')")


@contextmanager
def program():
    """Run another program with a page on another port of 127.0.0.1. Yields its URL and the headers of its visits."""
    visits = []

    class Visit(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            visits.append(dict(self.headers))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>other</title><link rel=icon href=data:,>")

        def log_message(self, *_): ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Visit) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", visits
        finally:
            server.shutdown()
            thread.join(LIMIT)


def test_the_session_is_drawn_and_takes_keys(captured, served, browser):
    """A-15: the URL no longer has the secret, and the tab can be reloaded."""
    _, link = served(captured)
    browser.ask("/url", url=link)
    shown(browser)
    assert browser.script("return document.title") == "mcpspy"
    assert browser.script("return location.pathname + location.search + location.hash") == "/"
    assert browser.script("return document.cookie + localStorage.length") == "0"
    browser.script("window.before = true")
    browser.ask("/refresh")
    browser.until("!window.before")
    shown(browser)
    drawn = browser.settled()
    browser.press("j")
    assert browser.settled(drawn) != drawn
    browser.press("q")
    browser.until("document.body.classList.contains('-closed')")
    assert browser.script(f"return {MESSAGE}") == "Session ended."
    assert browser.log() == []


def test_a_program_on_another_port_gets_no_access_from_a_visit(captured, served, browser):
    """A-15: the browser gives it nothing that opens the WebSocket, and its page cannot open one."""
    _, link = served(captured)
    browser.ask("/url", url=link)
    shown(browser)
    with program() as (other, visits):
        browser.ask("/url", url=other)
        assert browser.script("return document.title") == "other"
        (visit,) = visits
        own = {name: visit[name] for name in visit if name in ("Cookie", "Referer", "Authorization")}
        with closing(Page(link, own | {"Sec-WebSocket-Protocol": None})) as stolen:
            assert (own, stolen.status) == ({}, 403)
        browser.ask("/execute/sync", script=REACH, args=[authority_of(link)])
        browser.until("window.results.length === 6")
        assert set(browser.script("return window.results")) == {"refused"}
        browser.script(f"location.href = 'http://{authority_of(link)}/'")
        browser.until("document.body?.textContent.includes('copy the printed link into the address bar')")


def test_a_page_without_a_valid_secret_names_the_command(captured, served, browser):
    """A-15: also with a wrong one. A link that is opened in the same tab works."""
    _, link = served(captured)
    page = link.partition("#")[0]
    for url in (page, f"{page}#secret=wrong", f"{page}#other"):
        browser.ask("/url", url="about:blank")
        browser.ask("/url", url=url)
        browser.until(f"{MESSAGE}?.startsWith('This page has no valid secret.')")
        assert "Run 'mcpspy tui --web' and open the link that it prints." in browser.script(f"return {MESSAGE}")
        assert browser.script("return location.href") == page
        assert browser.script("return document.querySelector('.closed-dialog button')") is None
    browser.ask("/url", url=link)
    shown(browser)
    assert browser.script("return location.href") == page


@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_a_page_shows_that_the_server_has_ended(captured, served, browser, name):
    """A-15: and names the command."""
    process, link = served(captured)
    browser.ask("/url", url=link)
    shown(browser)
    process.send_signal(getattr(signal, name))
    browser.until(f"{MESSAGE}?.startsWith('mcpspy has ended.')")
    assert "Run 'mcpspy tui --web'" in browser.script(f"return {MESSAGE}")
