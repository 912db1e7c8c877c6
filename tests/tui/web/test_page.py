"""The server, and the application behind a page. `test_access` tests who may use them, `test_in_chromium` the page."""

import asyncio
import os
import signal
import sys
import time
from contextlib import closing, suppress

import pytest

pytest.importorskip("textual_serve")

from aiohttp.web import WebSocketResponse

from mcpspy.errors import UsageError
from mcpspy.tui.web import page as web
from mcpspy.tui.web.page import Pages
from tests.limits import LIMIT
from tests.transcript import capture
from tests.tui.web.websocket import Page

NOTICE = "anyone who has the link can see the captures and control running sessions; Ctrl-C ends it"
CLOSED = b"\x88\x02\x03\xe8"  # a close frame of a WebSocket (RFC 6455, 5.5.1): normal closure


# The start


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0"])  # noqa: S104 (mcpspy refuses them)
def test_an_address_that_no_browser_can_name_is_refused(host):
    with pytest.raises(UsageError, match=r"--web needs an address that a browser can name.*is not one"):
        web.serve([], host, 0)


@pytest.mark.parametrize(("host", "address"), [("localhost", "127.0.0.1"), ("::1", "::1"), ("127.0.0.2", "127.0.0.2")])
def test_on_this_machine_alone_nobody_is_warned_of(host, address):
    assert web.said(host, address) == [NOTICE]


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


# A page: only its WebSocket


@pytest.fixture
def page(tmp_path, served):
    """A page that shows a capture: its WebSocket, the process that serves it, and the link."""
    process, link = served(capture(tmp_path / "a.jsonl", '> {"jsonrpc":"2.0","id":1,"method":"ping"}'))
    with closing(Page(link)) as opened:
        yield opened, process, link


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
    assert process.stderr.read() == f"mcpspy: {NOTICE}\n"


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
    opened, process, link = page
    opened.until(b"ping")
    for text in ("x", '{"a":1}', "[]", '["stdin",5]', '["resize",{"width":"9"}]', "[" * 110, '["meta"]'):
        with closing(Page(link)) as other:
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
    assert process.stderr.read() == f"mcpspy: {NOTICE}\n"


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
