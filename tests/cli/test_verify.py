"""The command line of `mcpspy verify`."""

import json
import signal
import time
from functools import partial

import pytest

from tests import limits
from tests.contract.verify import PYTHON, SERVER, WRAPPER
from tests.contract.verify.conftest import alive
from tests.contract.verify.web import proxied, serving
from tests.peers import warm
from tests.transcript import capture


@pytest.fixture
def verify(tmp_path, monkeypatch, run):
    """Run the command with few starts and pings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mcpspy.contract.verify.proof.STARTS", 1)
    monkeypatch.setattr("mcpspy.contract.verify.proof.PINGS", 2)
    return partial(run, "verify")


SMALL = ["--", *PYTHON, SERVER]


def test_a_session_through_wrap_is_the_same(verify):
    code, out, err = verify(*SMALL)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].endswith(": bare and through mcpspy wrap, 6 messages")
    assert lines[-1] == "transparent: neither the client nor the server can see mcpspy wrap"
    assert [line.split("  ")[1] for line in lines if " equal " in line] == [
        "client to server", "server to client", "stderr", "answers", "environment", "start", "closing stdin",
        "odd lines", "SIGTERM", "SIGINT", "delay",
    ]  # fmt: skip


def test_another_wrapper_and_json(verify):
    wrapper = " ".join([*PYTHON, WRAPPER, "variable"])
    code, out, err = verify("--through", wrapper, "--json", "--call", 'find={"text":"a"}', *SMALL)
    assert (code, err) == (1, "")
    found = json.loads(out)
    assert found["verdict"] == "different"
    assert found["messages"][-2:] == ["tools/call look", "tools/call find"]
    assert [it["differences"] for it in found["checks"] if not it["equal"]] == [
        ["PLANTED is set through it, and not bare"]
    ]


def test_the_session_of_a_capture(verify):
    capture(
        "a.jsonl",
        """
        = 2025-11-25
        > {"jsonrpc":"2.0","id":7,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":7,"result":{"tools":[]}}
        > {"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"write","arguments":{"a":1}}}
        < {"jsonrpc":"2.0","id":"x","result":{"content":[]}}
        """,
    )
    code, out, _ = verify("--capture", "a.jsonl", "--call", "write", "--json", *SMALL)
    assert code == 0
    assert json.loads(out)["messages"][-2:] == ["tools/list", "tools/call write"]


def test_a_url_with_a_proxy_of_ones_own(verify):
    with serving() as url, proxied(url, "header") as through:
        code, out, _ = verify("--url", url, "--through", through, "--header", "X-Key: 1")
    assert code == 1
    assert "the header via is absent bare, 1.1 planted through" in out
    assert out.endswith("differs in responses\n")


OBJECT = """--call 'a': the arguments must be a JSON object, such as a='{"city":"Oslo"}'"""
HAS_THEM = "--call 'a' takes no arguments with --capture, which has them"
ENDED = "the server ended before it answered initialize; it exited with status 4; stderr: no such table"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "give the server's command after '--', or --url URL"),
        (["--url", "http://127.0.0.1:1/", "--", "x"], "give the server's command after '--', or --url URL"),
        (["--url", "ftp://x"], "'ftp://x' is not a URL of a server, such as http://127.0.0.1:8000/mcp"),
        (["--url", "http://127.0.0.1:1/mcp"], "http://127.0.0.1:1/mcp cannot be reached: connection refused"),
        (["--header", "a: b", "--", "x"], "--header belongs to --url: a command has no HTTP headers"),
        (["--timeout", "soon", "--", "x"], "--timeout takes seconds, such as 30, not 'soon'"),
        (["--through", "'", *SMALL], "--through cannot be read as a command line: No closing quotation"),
        (["--through", " ", *SMALL], "--through needs a command, such as 'mcpspy wrap --'"),
        (["--call", "a=[]", *SMALL], OBJECT),
        (["--capture", "a.jsonl", "--call", "a={}", *SMALL], HAS_THEM),
        (["--capture", "a.jsonl", *SMALL], "cannot read a.jsonl: no such file"),
        (["--", "/etc/passwd"], "cannot start '/etc/passwd': Permission denied"),
        ([*SMALL, "exits"], ENDED),
        (["--timeout", "0.1", *SMALL, "hangs"], "no answer to initialize within 0.1 s"),
        (["--call", "wirte", *SMALL], "--call: there is no tool 'wirte'; did you mean 'write'?"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_line(verify, arguments, sentence):
    assert verify(*arguments) == (2, "", f"mcpspy: {sentence}\n")


def test_a_command_that_is_not_there(verify):
    code, _, err = verify("--", "no-such-command")
    assert code == 2
    assert err.startswith("mcpspy: cannot start 'no-such-command': not found on PATH")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything(tmp_path, number):
    note = tmp_path / "pids"
    with warm.start("verify", *SMALL, "stubborn", f"daemon={note}") as process:
        given_up = time.monotonic() + limits.LIMIT
        while not (note.exists() and note.read_text().endswith("\n")):
            assert time.monotonic() < given_up
            time.sleep(0.01)
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "")
    assert not any(alive(int(pid)) for pid in note.read_text().split())
