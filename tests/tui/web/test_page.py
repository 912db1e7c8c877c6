"""The application in a browser, and the access to it."""

import asyncio
import json
import os
import re
import signal
import socket
import struct
import sys
import time
from contextlib import closing, suppress

import pytest

pytest.importorskip("textual_serve")

from aiohttp.web import WebSocketResponse

from mcpspy.errors import UsageError
from mcpspy.tui.web import page as web
from mcpspy.tui.web.page import Pages, WebGate
from tests.transcript import capture
from tests.tui.web.browser import LIMIT, fetch, needs_chromium

HERE = "127.0.0.1:6280"
CLOSED = b"\x88\x02\x03\xe8"  # a close frame of a WebSocket (RFC 6455, 5.5.1): normal closure


def let_in(link):
    """Return the cookie that the link gives."""
    return fetch(link, "POST")[2]["Set-Cookie"].partition(";")[0]


# The access control


def test_the_host_of_the_link_is_let_through_and_no_other():
    gate = WebGate(HERE)
    assert gate.refusal([HERE], []) is None
    assert gate.refusal([HERE], [f"http://{HERE}"]) is None
    assert gate.refusal(["127.0.0.1:6280".upper()], []) is None
    for hosts in (["evil.example"], ["evil.example:6280"], ["127.0.0.1"], ["localhost:6280"], [], [HERE, HERE], [""]):
        assert "another Host" in gate.refusal(hosts, [])


@pytest.mark.parametrize(
    "origins", [["http://evil.example"], ["null"], [f"https://{HERE}"], ["http://127.0.0.1:1"], [""], ["http://x"] * 2]
)
def test_a_page_of_another_origin_is_refused(origins):
    assert WebGate(HERE).refusal([HERE], origins) == "the request comes from a page of another origin"


def test_the_token_is_known_alone_and_until_it_is_spent():
    gate = WebGate(HERE)
    assert not gate.knows("")
    assert not gate.knows(gate.token + "x")
    assert not gate.knows(gate.cookie)
    assert not gate.knows("é")
    assert gate.knows(gate.token)
    assert gate.knows(gate.token)
    gate.spend()
    assert not gate.knows(gate.token)


def test_the_cookie_is_not_the_token():
    gate = WebGate(HERE)
    assert gate.admits(gate.cookie)
    assert not gate.admits(gate.token)
    assert not gate.admits("")
    assert gate.cookie != WebGate(HERE).cookie


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0"])  # noqa: S104 (mcpspy refuses them)
def test_an_address_that_no_browser_can_name_is_refused(host):
    with pytest.raises(UsageError, match=r"--web needs an address that a browser can name.*is not one"):
        web.serve([], host, 0)


@pytest.mark.parametrize(("host", "address"), [("localhost", "127.0.0.1"), ("::1", "::1"), ("127.0.0.2", "127.0.0.2")])
def test_on_this_machine_alone_nobody_is_warned_of(host, address):
    assert web.said(host, address) == ["the link works once, in one browser; Ctrl-C ends it"]


@pytest.mark.parametrize(("host", "address"), [("box.example", "192.0.2.7"), ("fd00::7", "fd00::7")])
def test_beyond_this_machine_those_on_the_way_are_warned_of(host, address):
    _, warning = web.said(host, address)
    expected = f"listening on {host}: this is plain HTTP, so others on the network can read the traffic"
    assert warning == expected


# The server


def test_what_is_to_be_known_stands_on_stderr_and_the_link_alone_on_stdout(tmp_path, served):
    process, _ = served(tmp_path)
    assert process.stderr.readline() == f"mcpspy: {web.said('127.0.0.1', '127.0.0.1')[0]}\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=LIMIT) == ("", "")


def test_the_link_works_for_one_browser(tmp_path, served):
    _, link = served(tmp_path)
    page = link.partition("?")[0]
    status, body, _ = fetch(page)
    assert (status, body) == (403, "mcpspy: the printed link works once, in one browser: start mcpspy again\n")
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        for method in ("GET", "POST"):
            assert fetch(link, method, **headers)[0] == 403, "and the token is not spent"
    for method in ("GET", "HEAD", "GET"):
        status, body, headers = fetch(link, method)
        assert (status, headers["Set-Cookie"]) == (200, None), "nor by a program that looks at links"
        assert "textual-terminal" not in body
    assert fetch(link[:-1], "POST")[0] == fetch(page, "POST")[0] == 403
    status, body, headers = fetch(link, "POST")
    assert (status, body) == (204, "")
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    cookie = cookie.partition(";")[0]
    assert fetch(link)[0] == fetch(link, "POST")[0] == 403
    for path in ("", "static/js/textual.js", "ws"):
        assert fetch(page + path)[0] == 403
    status, body, _ = fetch(page, Cookie=cookie)
    assert status == 200
    assert "textual-terminal" in body
    assert fetch(page + "static/js/textual.js", Cookie=cookie)[0] == 200
    assert fetch(page, Cookie=cookie, Host="evil.example")[0] == 403
    assert fetch(page, Cookie=cookie[:-1])[0] == 403


def test_the_page_may_fetch_from_its_own_origin_only(tmp_path, served):
    _, link = served(tmp_path)
    _, body, headers = fetch(link.partition("?")[0], Cookie=let_in(link))
    authority = link.split("/")[2]
    rules = dict(rule.strip().split(" ", 1) for rule in headers["Content-Security-Policy"].split(";"))
    assert rules.pop("connect-src") == f"'self' ws://{authority}"
    assert rules["default-src"] == "'none'"
    assert not re.search(r"https?:|\*", " ".join(rules.values()))
    own = set(re.findall(r"(?:src|-url)=\"([^\"]*)\"", body))
    assert own
    assert all(url.split("/")[2] == authority for url in own)


# A page: only its WebSocket


class Page:
    """The WebSocket of a page."""

    def __init__(self, link, cookie, origin=None):
        authority = link.split("/")[2]
        self.socket = socket.create_connection(authority.split(":"), timeout=LIMIT)
        lines = [
            "GET /ws?width=80&height=24 HTTP/1.1",
            f"Host: {authority}",
            f"Origin: {origin or 'http://' + authority}",
            f"Cookie: {cookie}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        ]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self.seen = b""
        self.status = int(self.until(b"\r\n\r\n").split()[1])

    def until(self, wanted):
        """Return the received bytes up to `wanted`; without it, all bytes until the server closes."""
        deadline = time.monotonic() + LIMIT
        while wanted is None or wanted not in self.seen:
            assert time.monotonic() < deadline, self.seen[-2000:]
            chunk = self.socket.recv(65536)
            if not chunk:
                assert wanted is None, self.seen[-2000:]
                break
            self.seen += chunk
        return self.seen

    def close(self):
        """Disconnect without a close frame."""
        self.socket.close()

    def send(self, *message):
        """Send a JSON message."""
        self.say(json.dumps(message))

    def say(self, text):
        """Send any text as a WebSocket text message, masked with zeros."""
        body = text.encode()
        self.socket.sendall(struct.pack("!BB4x", 0x81, 0x80 | len(body)) + body)


@pytest.fixture
def page(tmp_path, served):
    """A page that shows a capture: its WebSocket, the process that serves it, the link and the cookie."""
    process, link = served(capture(tmp_path / "a.jsonl", '> {"jsonrpc":"2.0","id":1,"method":"ping"}'))
    cookie = let_in(link)
    with closing(Page(link, cookie)) as opened:
        yield opened, process, link, cookie


def children(pid):
    """Return the descendants of a process."""
    with suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [pid for child in map(int, file.read().split()) for pid in (child, *children(child))]
    return []


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids):
    deadline = time.monotonic() + LIMIT
    while any(map(alive, pids)):
        assert time.monotonic() < deadline, "the application goes on"
        time.sleep(0.01)
    return True


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_a_page_shows_the_session_takes_keys_and_closes_when_the_user_quits(page):
    opened, *_ = page
    assert opened.status == 101
    opened.until(b"ping")
    opened.send("stdin", "q")
    opened.until(None)


def test_the_websocket_is_guarded_as_the_page_is(page):
    _, _, link, cookie = page
    for cookie_sent, origin, status in (
        ("", None, 403), (cookie, "http://evil.example", 403), (cookie, "null", 403), (cookie, None, 101),
    ):  # fmt: skip
        with closing(Page(link, cookie_sent, origin)) as other:
            assert other.status == status


@on_linux
def test_a_page_that_is_closed_ends_its_application(page):
    opened, process, *_ = page
    opened.until(b"ping")
    started = children(process.pid)
    assert started
    opened.close()
    assert gone(started)
    assert process.poll() is None


@on_linux
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_applications_end_with_the_server_however_that_ends(page, name):
    opened, process, *_ = page
    opened.until(b"ping")
    started = children(process.pid)
    assert started
    process.send_signal(getattr(signal, name))
    if name != "SIGKILL":
        opened.until(CLOSED)
    opened.close()
    assert process.wait(LIMIT) == (-signal.SIGKILL if name == "SIGKILL" else 0)
    assert gone(started)
    assert process.stderr.read() == "mcpspy: the link works once, in one browser; Ctrl-C ends it\n"


@pytest.mark.parametrize(
    ("size", "bounds"),
    [((80, 24), (80, 24)), ((10**6, 10**5), (1000, 500)), ((-5, 0), (1, 1)), ((1, 10**9), (1, 500))],
)
def test_a_terminal_is_no_larger_than_there_can_be_one(size, bounds):
    assert web.bounded(*size) == bounds


@on_linux
def test_a_page_that_asks_for_an_endless_screen_gets_one_that_ends(page):
    opened, process, *_ = page
    opened.until(b"ping")
    opened.send("resize", {"width": 10**6, "height": 10**5})
    opened.send("resize", {"width": 80, "height": 24})
    opened.send("stdin", "q")
    opened.until(CLOSED)
    assert gone(children(process.pid))


@on_linux
def test_a_page_that_says_what_none_of_ours_does_is_closed_without_a_word(page):
    opened, process, link, cookie = page
    opened.until(b"ping")
    for text in ("x", '{"a":1}', "[]", '["stdin",5]', '["resize",{"width":"9"}]', "[" * 110, '["meta"]'):
        with closing(Page(link, cookie)) as other:
            other.say(text)
            other.until(b"\x88\x02\x03\xf0")  # closed because of the message (RFC 6455, 7.4.1: 1008)
    opened.send("ping", "7")
    opened.until(b'["pong", "7"]')
    opened.send("stdin", "\ud800q")  # becomes a question mark, which opens the help; q closes it
    opened.send("stdin", "q")
    opened.until(CLOSED)
    opened.close()
    process.send_signal(signal.SIGINT)
    assert process.wait(LIMIT) == 0
    assert process.stderr.read() == "mcpspy: the link works once, in one browser; Ctrl-C ends it\n"


@on_linux
@pytest.mark.parametrize("wedge", ["time.sleep(1000)", "sys.stdout.buffer.write(bytes(1 << 30))"])
def test_an_application_that_does_not_end_is_ended(wedge, monkeypatch):
    monkeypatch.setattr(web, "PATIENCE", 0.05)
    program = f"import signal, sys, time; signal.signal(15, signal.SIG_IGN); print('__GANGLION__', flush=True); {wedge}"

    async def main():
        async with asyncio.timeout(LIMIT):
            before = children(os.getpid())  # started by other tests
            shown = web.Application([sys.executable, "-c", program], WebSocketResponse(), Pages([], "127.0.0.1", 1))
            await shown.start(80, 24)
            started = set(children(os.getpid())).difference(before)
            await shown.stop()
            return started

    started = asyncio.run(main())
    assert started
    assert gone(started)


# A real browser


@needs_chromium
def test_in_chromium_the_session_is_drawn_and_takes_keys(tmp_path, served, browser):
    said = "\n".join(f'> {{"jsonrpc":"2.0","id":{n},"method":"ping"}}' for n in range(50))
    _, link = served(capture(tmp_path / "a.jsonl", said))
    browser.ask("/url", url=link)
    browser.until("document.body?.classList.contains('-first-byte')")  # it may be between the two pages
    browser.until("document.activeElement.matches('.xterm textarea')")
    assert browser.script("return document.title") == "mcpspy"
    assert browser.script("return location.pathname + location.search") == "/"
    drawn = browser.settled()
    browser.press("j")
    assert browser.settled(drawn) != drawn
    browser.press("q")
    browser.until("document.body.classList.contains('-closed')")
    assert browser.log() == []
