import os
import shutil
import socket
import sys

import pytest

from mcpspy.clients import checks
from mcpspy.clients.checks import FINE, NOTE, PROBLEM, expanded, of_answer, of_captures, of_config, of_server
from mcpspy.clients.probe import Answer
from mcpspy.clients.servers import Server
from mcpspy.clients.table import BY_ID, Found
from tests.clients.configurations import machine

CURSOR = Found(BY_ID["cursor"], BY_ID["cursor"].places[0], "mcp.json")
DEMO = [sys.executable, "-m", "mcpspy.demo.server"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "work").mkdir(parents=True)
    return machine(tmp_path, environ={"HOME": str(tmp_path / "home"), "PATH": os.defpath})


def server(words, **fields):
    return Server(CURSOR, "s", "s", words=words, **fields)


def levels(made):
    return [one.level for one in made]


def test_a_good_server_is_found_started_and_answers(here):
    not_wrapped, found, answered = of_server(server(DEMO), here)
    assert levels([not_wrapped, found, answered]) == [NOTE, FINE, FINE]
    assert not_wrapped.fix == "'mcpspy install cursor s'"
    assert f", python {sys.version.split()[0]}" in found.text
    assert answered.text.startswith("initialize was answered after ")
    assert "weather" in answered.text


def test_the_launcher_of_a_wrapped_server_is_tried(here):
    one = server(DEMO, launcher=[sys.executable, "-m", "mcpspy"])
    assert "wrapped by mcpspy" in next(of_server(one, here)).text


@pytest.mark.parametrize(
    ("launcher", "said"), [("/gone/mcpspy", "which is gone"), ("/bin/false", "which does not run")]
)
def test_a_stale_launcher_is_a_problem_with_a_fix(here, launcher, said):
    check = next(of_server(server(DEMO, launcher=[launcher]), here))
    assert check.level == PROBLEM
    assert said in check.text
    assert check.fix == "'mcpspy uninstall cursor s', then install it again"


@pytest.mark.parametrize(
    ("command", "fix"),
    [
        ("no-such-server", "install it, or write its absolute path"),
        ("/no/such/server", "correct the command"),
        ("npx -y server", "put its arguments into args, word by word"),
    ],
)
def test_a_command_that_is_not_there_is_a_problem_with_a_fix(here, command, fix):
    *_, check = of_server(server([command]), here)
    assert (check.level, check.fix) == (PROBLEM, fix)


def test_a_command_that_a_desktop_program_may_not_find_is_noted(here, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "my-server").symlink_to(shutil.which("true"))
    here.environ["PATH"] = f"{tmp_path / 'bin'}:{os.defpath}"
    made = list(of_server(server(["my-server"]), here))
    assert any("perhaps not on that of programs started from the desktop" in one.text for one in made)
    assert str(tmp_path / "bin" / "my-server") in " ".join(one.fix for one in made)


def test_what_only_the_client_knows_is_not_started(here):
    *_, check = of_server(server(["echo", "${input:key}"], environ={"A": "${other}"}), here)
    assert check.level == NOTE
    assert "${input:key}, ${other}" in check.text


def test_a_broken_entry_is_a_problem(here):
    assert levels(of_server(server([], problem="its command is empty"), here)) == [PROBLEM]


def test_a_remote_server_is_said_to_be_one(here):
    assert levels(of_server(server([], url="https://h/mcp"), here)) == [NOTE]


def test_a_route_without_an_origin_is_a_problem(here):
    assert levels(of_server(server([], route="x"), here)) == [PROBLEM]


def test_a_routed_server_needs_a_proxy(here, monkeypatch):
    one = server([], url="https://h/mcp", route="s")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        monkeypatch.setattr(checks, "PORT", listener.getsockname()[1])
        [check] = of_server(one, here)
        assert (check.level, check.fix) == (PROBLEM, "start 'mcpspy proxy --from cursor'")
        listener.listen()
        monkeypatch.setattr(checks, "holder", lambda _: ["/x/other", "--token", "secret"])
        [check] = of_server(one, here)
        assert check.level == NOTE
        assert "/x/other --token «redacted:" in check.text
        monkeypatch.setattr(checks, "holder", lambda _: ["python3", "/x/mcpspy", "proxy"])
        assert levels(of_server(one, here)) == [FINE]


@pytest.mark.parametrize(
    ("answer", "level", "said"),
    [
        (Answer("initialize", {"serverInfo": {"name": "n", "version": "2"}, "protocolVersion": "2025-06-18"}, 0.2),
         FINE, "initialize was answered after 0.2 s, n 2, 2025-06-18"),
        (Answer("server/discover", {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n", "version": "2"}},
                                    "supportedVersions": ["2026-07-28", "x"]}, 1), FINE, ", n 2, 2026-07-28, x"),
        (Answer("initialize", {"serverInfo": 3, "_meta": 4}), FINE, "initialize was answered"),
        (Answer(exit=3, seconds=0.5, stderr=["no key"]), PROBLEM, "status 3, without an answer\n    stderr: no key"),
        (Answer(exit=-11), PROBLEM, "signal 11"),
        (Answer(error="bad"), PROBLEM, "it refused to begin: bad"),
        (Answer(seconds=10), PROBLEM, "it said nothing for 10 s"),
    ],
)  # fmt: skip
def test_an_answer_is_judged(answer, level, said):
    [check] = of_answer(answer)
    assert check.level == level
    assert said in check.text
    assert bool(check.fix) == (level == PROBLEM)


def test_a_slow_answer_and_noise_are_said():
    assert levels(of_answer(Answer("initialize", {}, 7.0))) == [FINE, NOTE]
    *_, check = of_answer(Answer("initialize", {}, 0.1, noise=["Listening"]))
    assert (check.level, "'Listening'" in check.text) == (PROBLEM, True)


def test_strict_json_is_seen_with_the_clients_eyes(tmp_path):
    desktop, path = BY_ID["claude-desktop"], tmp_path / "c.json"
    path.write_text('{"mcpServers": {},}')
    [check] = of_config(Found(desktop, desktop.places[0], str(path)))
    assert (check.level, "would ignore" in check.text) == (PROBLEM, True)
    assert not list(of_config(Found(BY_ID["cursor"], BY_ID["cursor"].places[0], str(path))))


def test_whether_captures_can_be_written_is_tried(here, tmp_path):
    [check] = of_captures(here)
    assert (check.level, os.listdir(tmp_path / "home" / ".mcpspy" / "captures")) == (FINE, [])
    shutil.rmtree(tmp_path / "home" / ".mcpspy")
    (tmp_path / "home" / ".mcpspy").write_text("")
    here.environ["MCPSPY_CAPTURE_DIR"] = "/elsewhere"
    assert levels(of_captures(here)) == [PROBLEM, NOTE]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a ${env:B} ${B}", "a b b"),
        ("${C:-d}", "d"),
        ("${userHome}${/}x", "HOME/x"),
        ("${workspaceFolder}", "CWD"),
        ("${input:x}", None),
        ("${env:C}", None),
        ("$B {B}", "$B {B}"),
    ],
)
def test_variables_that_every_client_knows_are_replaced(tmp_path, text, value):
    here = machine(tmp_path, environ={"B": "b"})
    assert expanded(text, here) == (value and value.replace("HOME", here.home).replace("CWD", here.cwd))
