"""Mistakes in an entry that need no start of the server."""

import os
import re
import socket

import pytest

from mcpspy.clients import checks, mistakes
from mcpspy.clients.check import NOTE, PROBLEM
from mcpspy.clients.checks import of_config, of_names
from mcpspy.clients.mistakes import Start, of_entry, of_start
from mcpspy.clients.places import Found, Machine
from mcpspy.clients.servers import Server
from mcpspy.clients.table import BY_ID
from tests.clients.configurations import machine
from tests.each import each

NOWHERE = Machine("/no/home", "linux", {}, "/no/home")


def start(words, client="cursor", cwd="/", here=NOWHERE, **fields):
    found = Found(BY_ID[client], BY_ID[client].places[0], os.path.abspath(__file__))
    return Start(Server(found, "s", "s", words=words, **fields), words, fields.get("environ", {}), cwd, here)


@each(
    "words, wrong, right",
    [
        ("docker run -i img", "", ""),
        ("docker run --rm -i img -t -d", "", ""),
        ("docker run --interactive img", "", ""),
        ("docker run -ie A=1 img", "", ""),
        ("docker run --name x -e A -i img", "", ""),
        ("docker compose run -i img", "", ""),
        ("docker exec -i c server", "", ""),
        ("npx run", "", ""),
        ("docker run img", "without -i", "run -i img"),
        ("docker run img -i", "without -i", "run -i img -i"),
        ("docker run --interactive=false img", "without -i", "run -i img"),
        ("docker run -e -i img", "without -i", "run -i -e -i img"),
        ("docker run --env -i img", "without -i", "run -i --env -i img"),
        ("docker run -- img -i", "without -i", "run -i -- img -i"),
        ("docker run", "without -i", "run -i"),
        ("docker run -e", "without -i", "run -i -e"),
        ("/usr/bin/docker run -it img", "-t needs a terminal", "run -i img"),
        ("podman run -i --tty --rm img", "-t needs a terminal", "run -i --rm img"),
        ("docker run -dit --rm img", "-d leaves", "run -i --rm img"),
        ("docker run -itp 80:80 img", "-t needs a terminal", "run -i -p 80:80 img"),
        ("docker -H x run -id img", "-d leaves", "-H x run -i img"),
        ("nerdctl run --detach=true -i img", "-d leaves", "run -i img"),
    ],
)
def test_a_container_needs_its_stdin(words, wrong, right):
    """U-03."""
    made = list(of_start(start(words.split())))
    assert bool(made) == bool(wrong), made
    if wrong:
        assert any(wrong in check.text for check in made)
        assert re.findall(r'"([^"]*)"', made[0].fix.partition(": ")[2]) == right.split()


def test_a_secret_in_a_command_is_not_shown():
    for check in of_start(start(["docker", "run", "-e", "API_KEY=s3cr3t", "img"])):
        assert "s3cr3t" not in check.fix
    for check in of_entry(start(["x", "--token s3cr3t", "'--token=s3cr3t'"])):
        assert "s3cr3t" not in check.text + check.fix


def test_a_port_that_a_container_publishes_may_be_in_use(monkeypatch):
    monkeypatch.setattr(mistakes, "holder", lambda _: None)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for words in (["-p", f"{port}:80"], [f"--publish=127.0.0.1:{port}:80"]):
            [check] = of_entry(start(["docker", "run", "-i", *words, "img"]))
            assert check.text.startswith(f"port {port} is in use by a process that cannot be seen, so the container")
    assert not list(of_entry(start(["docker", "run", "-i", "-p", f"{port}:80", "img"])))
    assert not list(of_entry(start(["server", "-p", f"{port}:80"])))


@each(
    "words",
    [
        ["sh", "-c", "echo ${HOME} 'a b'"],
        ["node", "-e", "console.log('a')"],
        ["bash", "-lc", "exec server ${HOME}"],
        ["cmd", "/c", "npx", "-y", "'a b'"],
        ["python", "-c", "import x"],
        ["npx", "-y", "pkg@1", "--name=a b", "--x"],
        ["x", "it's", "a 'b' c", "$5", "{}", "--", "- x"],
        ["x", "https://h/a.js", "a=b.py"],
    ],
)
def test_what_may_be_meant_is_no_mistake(tmp_path, words):
    assert not list(of_entry(start(words, here=machine(tmp_path))))


def test_a_tilde_in_an_argument_is_noted(tmp_path):
    """Some servers replace it themselves; VS Code does so before the server is started."""
    [check] = of_entry(start(["x", "~/notes", "a~", "~x"], here=machine(tmp_path)))
    assert (check.level, check.text) == (NOTE, "argument 1: Cursor does not replace '~', so the server gets ~/notes")
    assert check.fix == f'if the server does not replace it either, write "{tmp_path}/home/notes"'


def test_only_the_command_line_of_a_shell_may_have_its_variables(tmp_path):
    [check] = of_entry(start(["sh", "-c", "echo ${A} $1", "${B}"], here=machine(tmp_path)))
    assert check.text.startswith("argument 3: Cursor does not replace ${B}")


@each("value, fix", [(1, "1"), (True, "true"), (None, ""), ([], "")])
def test_claude_code_takes_only_strings_as_variables(value, fix):
    """Claude Code 2.1.330 skips the server: "expected string, received number"."""
    [check] = of_start(start(["x"], "claude-code", members={"env": {"A": value, "B": "s"}}))
    assert check.fix == f'write "A": "{fix}" into its "env"'
    assert not list(of_start(start(["x"], "vscode", members={"env": {"A": value}})))


def test_with_another_debugger_any_command_may_be_used():
    for dev in ({"debug": {"type": "other"}}, {"debug": True}, {"watch": "**"}, 3, None):
        assert not list(of_start(start(["npx"], "vscode", members={"dev": dev})))
    assert not list(of_start(start(["npx"], "cursor", members={"dev": {"debug": {"type": "node"}}})))
    [check] = of_start(start(["uv", "run"], "vscode", members={"dev": {"debug": {"type": "debugpy"}}}))
    assert "only if python is the command, not uv" in check.text


@pytest.mark.parametrize("command", ["/usr/bin/node", "node22", "/venv/bin/python3.11"])
def test_the_port_of_the_debugger_may_be_in_use(monkeypatch, command):
    kind = "node" if "node" in command else "debugpy"
    one = start([command], "vscode", members={"dev": {"debug": {"type": kind}}})
    for used in (False, True):
        monkeypatch.setattr(mistakes, "listening", lambda _, used=used: used)
        assert [check.text.startswith("port 9230, which VS Code uses") for check in of_start(one)] == [True] * used


@each(
    "client, text, said",
    [
        ("cursor", '{"mcpServers": {"a": {}, "b": {}, "a": {}}}', "'a' is there twice"),
        ("cursor", '{"mcpServers": {"a": {"env": {}, "command": "x", "env": {}}}}', "'a' has 'env' twice"),
        ("cursor", '{"a": 1, "a": 2, "mcpServers": {}}', ""),
        ("vscode", '{"servers": {"a": {}, "a": {}}}', "'a' is there twice"),
        ("continue", "mcpServers:\n- name: a\n- name: b\n- name: a\n", "'a' is there twice"),
        ("continue", "mcpServers:\n- name: a\n- 3\n- name: [a]\n", ""),
        ("codex", "[mcp_servers.a]\n", ""),
    ],
)
def test_a_name_that_is_there_twice_is_a_problem(tmp_path, client, text, said):
    place = BY_ID[client].places[0]
    path = tmp_path / f"{client}.json"
    path.write_text(text)
    made = [check for check in of_config(Found(BY_ID[client], place, str(path)), machine(tmp_path)) if said]
    assert [check.level for check in made] == [PROBLEM] * bool(said)
    assert all(said in check.text for check in made)


def test_a_name_in_another_scope_is_noted():
    user, project = (Found(BY_ID["cursor"], place, f"/{place.scope}") for place in BY_ID["cursor"].places)
    other = Found(BY_ID["windsurf"], BY_ID["windsurf"].places[0], "/other")
    chosen = [(place, [Server(place, name, name) for name in "ab"]) for place in (user, other)]
    chosen.append((project, [Server(project, "a", "a"), Server(project, "c", "c")]))
    [check] = of_names(chosen, user)
    assert (check.level, check.text) == (NOTE, "'a' is in /project too, and Cursor starts only one of the two")
    [check] = of_names(chosen, project)
    assert check.text.startswith("'a' is in /user too")
    assert not list(of_names(chosen, other))


def test_what_a_client_s_path_has_is_not_what_the_shell_has(tmp_path, monkeypatch):
    """U-03: Claude Desktop starts another `node` than this shell."""
    for folder in ("desktop", "shell"):
        (tmp_path / folder).mkdir()
        program = tmp_path / folder / "tool"
        program.write_text("#!/bin/sh\nexit 3\n")
        program.chmod(0o700)
    monkeypatch.setattr(checks.desktop, "desktop_path", lambda _: f"{tmp_path}/desktop")
    here = machine(tmp_path, environ={"PATH": f"{tmp_path}/shell:/usr/bin:/bin", "HOME": str(tmp_path)})
    found = Found(BY_ID["claude-desktop"], BY_ID["claude-desktop"].places[0], os.path.abspath(__file__))
    made = list(checks.of_server(Server(found, "s", "s", words=["tool"]), here, named=False))
    assert made[1].text == f"tool is {tmp_path}/desktop/tool"
    assert made[2] == (
        NOTE, f"this shell starts another one: {tmp_path}/shell/tool",
        f'if Claude Desktop is to start that, write "command": "{tmp_path}/shell/tool"',
    )  # fmt: skip
