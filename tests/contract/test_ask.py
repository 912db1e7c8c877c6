"""Every page that a server declares is requested, whatever the server sends meanwhile, within a time-out."""

import sys
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.contract.ask import ROOM, record_offer
from mcpspy.contract.lock import offers
from mcpspy.errors import CaptureError
from mcpspy.transport import link
from mcpspy.transport.client import PROBE
from mcpspy.transport.http_link import WebLink
from mcpspy.transport.link import Link
from tests.limits import LIMIT
from tests.optional import require_peers
from tests.peers.serving import serving

SERVER = [sys.executable, str(Path(__file__).parent / "asked.py")]
SOON = 0.7  # seconds to wait for an answer that never arrives


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Return a function that records the offer of a server and returns the offer of its last session."""
    monkeypatch.setattr(link, "PATIENCE", 0.3)
    path = tmp_path / "s.jsonl"

    def connect(argv):
        path.unlink(missing_ok=True)
        return Link(argv, "asked", str(path), pytest.fail, ROOM)

    def run(how, start=LIMIT, answer=LIMIT, probe=PROBE):
        record_offer(lambda: connect([*SERVER, how]), start, answer, probe)
        return offers(Capture(str(path)))[-1]

    return run


@pytest.mark.parametrize("how", ["", "noise", "insists", "asks", "templates"])
def test_every_page_is_requested(ask, how):
    offered = ask(how)
    assert offered.name == "asked"
    assert list(offered.whole("tools")) == ["a", "b"]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("dies", "exited with code 1 before it answered initialize; the last line of its stderr: no key"),
        ("refuses", "answered initialize with an error: no \\e[2J client"),
        ("unserved", "answered tools/list with an error: Method not found"),
        ("silent", "declares no capabilities in its answer to initialize"),
        ("circle", "repeats a cursor"),
    ],
)
def test_a_server_that_does_not_list_is_told_with_a_reason(ask, how, words):
    with pytest.raises(CaptureError) as raised:
        ask(how)
    assert words in str(raised.value)
    assert str(raised.value).startswith("the server ")


def test_a_server_that_sends_without_end_is_told(ask, monkeypatch):
    monkeypatch.setattr(link, "room", lambda _: 1 << 20)
    with pytest.raises(
        CaptureError, match=r"the server sent more than a listing can need before it answered tools/list"
    ):
        ask("flood")


def test_nothing_is_waited_for_for_ever(ask, monkeypatch):
    with pytest.raises(CaptureError, match="did not answer initialize within"):
        ask("hangs", start=SOON, probe=0.3)
    with pytest.raises(CaptureError, match="did not answer tools/list within"):
        ask("late", answer=SOON)
    monkeypatch.setattr("mcpspy.transport.client.LISTING", -1.0)
    with pytest.raises(CaptureError, match="did not send all pages of tools/list within"):
        ask("")


def test_a_server_without_a_handshake_is_asked_over_http(tmp_path):
    require_peers("python2")
    path = str(tmp_path / "s.jsonl")

    def connect(url):
        Path(path).unlink(missing_ok=True)
        return WebLink(url, [], "peer", path, ROOM)

    with serving("python2", "http") as url:
        record_offer(lambda: connect(url))
    offered = next(it for it in offers(Capture(path)) if it.name)
    assert offered.told["protocolVersion"] == "2026-07-28"
    assert offered.name == "mcpspy-peer"
