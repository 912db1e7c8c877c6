"""`mcpspy install` and `mcpspy uninstall`: clients' files change, and change back byte for byte."""

import json
import os
import subprocess
import sys

import pytest

from mcpspy.capture.listing import captures
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame
from tests.cli.conftest import CONFIGURATION as TEXT
from tests.cli.conftest import refusal
from tests.relay.harness import LIMIT

DEMO = ["-m", "mcpspy.demo.server"]


def test_all_servers_of_a_client_are_wrapped_and_what_follows_is_said(cursor, mcpspy):
    status, out, err = mcpspy("install", "cursor", "--yes")
    assert (status, err) == (0, "")
    for said in (
        str(cursor),
        "weather                   wrap\n",
        "notes                     wrap; disabled in the client",
        "remote                    route: http://127.0.0.1:6278/remote for https://remote.example",
        "\n3 servers of Cursor now behind mcpspy\n",
        "  1. start 'mcpspy proxy --from cursor', or restart it if it runs: remote servers need it\n",
        "  2. restart the server in Cursor (Settings, MCP)\n  3. use a tool of the server\n",
        "\n  4. look at its traffic: mcpspy\nundo: mcpspy uninstall cursor\n",
    ):
        assert said in out
    text = cursor.read_text()
    assert f'"command": "{sys.executable}", "args": ["-m", "mcpspy", "wrap", "--name", "weather", "--", "npx"' in text
    assert "// mine" in text
    assert "s3cr3t" not in out
    assert mcpspy("install", "cursor", "--yes")[1].endswith("nothing to change\n")
    assert cursor.read_text() == text
    assert mcpspy("uninstall", "cursor")[0] == 0
    assert cursor.read_text() == TEXT


def test_with_dry_run_the_changes_are_printed_and_nothing_is_written(cursor, home, mcpspy):
    status, out, err = mcpspy("install", "cursor", "notes", "remote", "--dry-run")
    assert (status, err) == (0, "")
    assert out.startswith(f"{cursor}\n  notes                     wrap; disabled in the client\n  remote")
    lines = out.splitlines()[3:]
    assert lines[:2] == [f"--- {cursor}", f"+++ {cursor}"]
    assert [line for line in lines if line.startswith("-  ")] == [
        f"-{line}".replace('": "x"', '": "«withheld»"') for line in TEXT.splitlines()[4:6]
    ]
    assert sum(line.startswith("+  ") for line in lines) == 2
    assert "s3cr3t" not in out, "what is beside a change may be a secret"
    assert cursor.read_text() == TEXT
    assert sorted(os.listdir(home)) == [".cursor", "work"]


def test_a_diff_shows_no_secret_and_no_control_character(cursor, home, mcpspy):
    entry = '{"command": "np\x1b[2Jx", "args": ["--token", "s3cr3t", "p\u2028q"], "env": {"DB": "s3cr3t"}}'
    cursor.write_text(f'{{"mcpServers": {{"a": {entry}}}}}\r\n')
    status, out, _ = mcpspy("install", "cursor", "--dry-run")
    *_, _, old, new = out.split("\n")[:-1]
    assert (status, "s3cr3t" in out) == (0, False)
    assert old == (
        '-{"mcpServers": {"a": {"command": "np\\e[2Jx", "args": ["--token", "«withheld»", "p\\u2028q"],'
        ' "env": {"DB": "«withheld»"}}}}'
    )
    assert '"args": ["-m", "mcpspy", "wrap", "--name", "a", "--", "np\\e[2Jx", "--token", "«withheld»"' in new
    assert not (home / ".mcpspy").exists()


@pytest.mark.parametrize("option", ["--dry-run", "--yes"])
def test_a_server_that_cannot_go_through_the_proxy_is_said_and_exit_code_1(cursor, mcpspy, option):
    """CF-11: the exit status is never 0 for a skipped server. The others are wrapped."""
    cursor.write_text('{"mcpServers": {"o": {"url": "https://h/mcp", "auth": {}}, "s": {"command": "x"}}}')
    status, out, _ = mcpspy("install", "cursor", option)
    assert "o                         cannot be changed: line 1, column 22: it logs in with OAuth" in out
    assert (status, "wrap" in cursor.read_text()) == (1, option == "--yes")


@pytest.mark.parametrize("entry", ["{}", '{"command": ["x"]}', '{"transport": {"command": "x"}}', '"x"'])
def test_an_entry_that_nobody_knows_is_refused_and_nothing_is_written(cursor, mcpspy, home, entry):
    """CF-10."""
    text = f'{{"mcpServers": {{"good": {{"command": "x"}}, "bad": {entry}, "a b": {{"command": "x"}}}}}}'
    cursor.write_text(text)
    status, _, err = mcpspy("install", "cursor", "--yes")
    assert (status, cursor.read_text(), (home / ".mcpspy").exists()) == (1, text, False)
    assert err.startswith(f"mcpspy: {cursor}: bad: line 1, column 50: it")
    assert err.endswith("; nothing was changed; to wrap the others: mcpspy install cursor good 'a b'\n")
    assert mcpspy("install", "cursor", "good", "--yes")[0] == 0
    assert mcpspy("uninstall", "cursor")[0] == 0
    assert cursor.read_text() == text


def test_a_command_that_is_shown_for_a_server_whose_name_looks_like_an_option_can_be_typed(cursor, mcpspy):
    """CF-02, CF-11."""
    cursor.write_text('{"mcpServers": {"--help": {"command": "/gone"}, "bad": {}, "a b": {"command": "/gone"}}}')
    assert mcpspy("install", "cursor", "--yes")[2].endswith(": mcpspy install cursor -- --help 'a b'\n")
    assert "advice: mcpspy install cursor -- --help\n" in mcpspy("doctor", "cursor")[1]
    assert mcpspy("install", "cursor", "--yes", "--", "--help", "a b")[0] == 0


def test_a_file_in_the_form_of_another_client_is_refused(cursor, mcpspy):
    """CF-10."""
    cursor.write_text('{"servers": {"s": {"command": "x"}}}')
    err = refusal(mcpspy("install", "cursor", "--yes"), 1)
    assert f"{cursor}: line 1, column 2: found servers under 'servers'; Cursor reads 'mcpServers'" in err


def test_without_a_terminal_it_takes_yes(cursor, mcpspy):
    """CF-11."""
    for names in ([], ["weather"]):
        status, out, err = mcpspy("install", "cursor", *names)
        assert (status, cursor.read_text(), "wrap" in out) == (2, TEXT, True)
        assert "there is no terminal to ask on, so nothing was changed; run it again with --yes" in err


def test_options_may_stand_anywhere(cursor, mcpspy):
    """CF-11."""
    assert mcpspy("install", "cursor", "--dry-run", "notes")[0] == 0
    assert mcpspy("install", "--yes", "cursor", "--scope", "user", "notes")[0] == 0
    assert cursor.read_text().count('"wrap"') == 1


def test_without_a_client_those_on_this_machine_are_listed(cursor, home, mcpspy):
    """A file that cannot be parsed is listed too. A client that only shares another client's file is not listed."""
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("[")
    (home / "work" / ".mcp.json").write_text('{"mcpServers": {"theirs": {"command": "x"}}}')
    status, out, err = mcpspy("install")
    assert (status, err, cursor.read_text()) == (0, "", TEXT)
    assert [line for line in out.splitlines() if ": mcpspy install " in line] == [
        "Cursor: mcpspy install cursor",
        "Claude Code: mcpspy install claude-code",
        "Codex CLI: mcpspy install codex",
    ]
    assert f"  {cursor}\n    weather                   wrap\n" in out
    assert "    theirs                    wrap\n" in out
    assert f"  {home}/.codex/config.toml: line 1, column 2: " in out
    assert out.endswith("\nnothing was changed\n")


def test_a_wrap_by_what_is_gone_is_said(cursor, mcpspy):
    cursor.write_text('{"mcpServers": {"s": {"command": "/gone/mcpspy", "args": ["wrap", "--", "npx"]}}}')
    assert (
        "wrapped already by /gone/mcpspy, which no longer exists: uninstall it by name, then install it again"
        in mcpspy("install", "cursor", "--yes")[1]
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["crusor"], "there is no client 'crusor'; did you mean 'cursor'?"),
        (["cursor", "wether"], "has no server 'wether' in"),
        (["cursor", "wether"], "; did you mean 'weather'?"),
        (["cursor", "xyz"], "; its servers are notes, remote, weather"),
        (["cursor", "weather", "wether"], "has no server 'wether'"),
        (["cursor", "--scope", "projekt"], "there is no scope 'projekt'; the scopes are user, project, local"),
        (["cursor", "--scope", "project"], "Cursor has no configuration here; looked for "),
        (["windsurf", "--scope", "project"], "Windsurf has no project scope, only user"),
        (["zed"], "Zed has no configuration here; looked for "),
    ],
)
def test_a_wrong_name_is_one_line_and_changes_nothing(cursor, mcpspy, arguments, said):
    for command in ("install", "uninstall"):
        assert said in refusal(mcpspy(command, *arguments))
        assert cursor.read_text() == TEXT


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{\n  "mcpServers": {\n    "a": {"command": "x"\n  }\n}', "line 5, column 2: expected ',' or '}'"),
        ('{"mcpServers": [{"command": "x"}]}', "line 1, column 16: mcpServers is a list, not an object"),
        ("[]", "line 1, column 1: the whole is a list, not an object"),
        ("", "line 1, column 1: expected a value, got the end of the file"),
        (b"{\n\xff}", "line 2: not UTF-8"),
        (None, "Is a directory"),
    ],
)
def test_a_broken_configuration_is_one_line_that_says_where_and_why(cursor, home, mcpspy, content, said):
    cursor.unlink()
    if content is None:
        cursor.mkdir()
    else:
        cursor.write_bytes(content if isinstance(content, bytes) else content.encode())
    for command in ("install", "uninstall"):
        line = refusal(mcpspy(command, "cursor", *["--yes"][: command == "install"]), 1 if "an object" in said else 2)
        assert str(cursor) in line
        assert said in line
    assert content is None or cursor.read_bytes() == (content if isinstance(content, bytes) else content.encode())
    assert not (home / ".mcpspy").exists()


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("command", [["install", "--yes"], ["uninstall"]], ids=["install", "uninstall"])
def test_a_kill_between_the_backup_and_the_replacement_loses_nothing(cursor, mcpspy, command):
    source = (
        f"import os, signal, sys\nsys.argv = ['mcpspy', *{command!r}, 'cursor']\nreplaced = os.replace\n"
        "def replace(source, target):\n"
        f"    os.kill(os.getpid(), signal.SIGKILL) if target == {str(cursor)!r} else replaced(source, target)\n"
        "os.replace = replace\nfrom mcpspy.cli import main\nmain()\n"
    )
    if command == ["uninstall"]:
        assert mcpspy("install", "cursor", "--yes")[0] == 0
    before = cursor.read_text()
    killed = subprocess.run([sys.executable, "-c", source], stdin=subprocess.DEVNULL, check=False, timeout=LIMIT)
    assert (killed.returncode, cursor.read_text()) == (-9, before)
    for again in (["uninstall"], ["install", "--yes"], ["uninstall"]):
        assert mcpspy(*again, "cursor")[0] == 0
    assert cursor.read_text() == TEXT
    assert os.listdir(cursor.parent) == ["mcp.json"]


def test_nothing_is_said_to_be_changed_when_the_change_fails(cursor, mcpspy, monkeypatch):
    """The second of two files cannot be replaced. The message names the failure and the file that was changed."""
    second = cursor.parents[1] / "work" / ".cursor" / "mcp.json"
    second.parent.mkdir()
    second.write_text(TEXT)
    replaced = os.replace

    def replace(source, target):
        if target == str(second):
            raise OSError(28, "No space left on device")
        replaced(source, target)

    monkeypatch.setattr(os, "replace", replace)
    status, out, err = mcpspy("install", "cursor", "weather", "--yes")
    assert (status, "now behind mcpspy" in out) == (2, False)
    assert err == f"mcpspy: cannot change {second}: No space left on device; changed before that: {cursor}\n"
    assert second.read_text() == TEXT
    assert os.listdir(second.parent) == ["mcp.json"]


def test_half_a_surrogate_pair_comes_back(cursor, mcpspy):
    remote = '{"url": "https:\\/\\/h/\\udc00", "headers": {"A": "b"}}'
    text = '{"mcpServers": {"\\ud800": ' + remote + ', "b": {"command": "\\ud800"}}}'
    cursor.write_text(text)
    assert mcpspy("install", "cursor", "--yes")[0] == 0
    assert json.loads(cursor.read_text())["mcpServers"]["\ud800"]["url"] == "http://127.0.0.1:6278/server/\udc00"
    assert mcpspy("status")[0] == 0
    assert mcpspy("uninstall", "cursor")[0] == 0
    assert cursor.read_text() == text


def test_a_read_only_configuration_is_one_line(cursor, mcpspy):
    cursor.chmod(0o444)
    status, _, err = mcpspy("install", "cursor", "--yes")
    assert (status, err) == (2, f"mcpspy: cannot change {cursor}: it is read-only\n")
    assert cursor.read_text() == TEXT


@pytest.mark.parametrize(("answer", "changed"), [("y", True), ("Yes ", True), ("", False), ("n", False)])
def test_on_a_terminal_all_servers_are_asked_about(cursor, mcpspy, monkeypatch, answer, changed):
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    asked = []
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or answer)
    status, out, _ = mcpspy("install", "cursor")
    assert (status, asked, cursor.read_text() != TEXT) == (0, ["Change it? [y/N] "], changed)
    assert ("nothing was changed" in out, "now behind mcpspy" in out) == (not changed, changed)
    assert mcpspy("install", "cursor", "notes")[0] == 0
    assert mcpspy("install", "cursor", "--yes")[0] == 0
    assert len(asked) == 1, "who names a server has decided"


def test_the_end_of_the_input_is_a_no(cursor, mcpspy, monkeypatch):
    def end(_):
        raise EOFError

    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", end)
    assert mcpspy("install", "cursor")[1].endswith("\n\nnothing was changed\n")
    assert cursor.read_text() == TEXT


def test_both_scopes_are_changed_unless_one_is_chosen(cursor, home, mcpspy):
    project = home / "work" / ".cursor" / "mcp.json"
    project.parent.mkdir()
    project.write_text(TEXT)
    status, out, _ = mcpspy("install", "cursor", "weather", "--scope", "project", "--yes")
    assert (status, cursor.read_text(), project.read_text() != TEXT) == (0, TEXT, True)
    assert f"{project} belongs to the project: do not commit the change" in out
    assert mcpspy("install", "cursor", "weather", "--yes")[0] == 0
    assert cursor.read_text() != TEXT
    assert mcpspy("uninstall", "cursor")[0] == 0
    assert (cursor.read_text(), project.read_text()) == (TEXT, TEXT)


def test_another_client_with_the_same_file_is_said(cursor, home, mcpspy):
    link = home / ".codeium" / "windsurf" / "mcp_config.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(cursor)
    assert (
        "of Cursor (and of Windsurf, which read the same file) now behind mcpspy"
        in mcpspy("install", "cursor", "weather", "--yes")[1]
    )


def test_routes_are_stable_and_readable_for_the_proxy(cursor, home, mcpspy):
    from mcpspy.clients.routes import routes_of

    mcpspy("install", "cursor", "remote", "--yes")
    first = cursor.read_text()
    assert routes_of("cursor") == [("remote", "https://remote.example")]
    mcpspy("uninstall", "cursor")
    mcpspy("install", "cursor", "remote", "--yes")
    assert cursor.read_text() == first
    assert routes_of("zed") == []


def test_a_capture_directory_of_this_shell_only_is_noted(cursor, mcpspy, monkeypatch, tmp_path):
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path))
    assert (
        "a client that does not have it records to ~/.mcpspy/captures"
        in mcpspy("install", "cursor", "weather", "--yes")[1]
    )


def test_an_installed_server_run_as_cursor_runs_it_is_captured_where_ls_looks(cursor, home, mcpspy):
    """It runs with the argv of the file, the six variables that SDK clients pass, and `/` as working directory."""
    entry = {"command": sys.executable, "args": DEMO, "env": {"CITY": "Oslo"}}
    cursor.write_text(json.dumps({"mcpServers": {"my weather": entry}}))
    assert mcpspy("install", "cursor", "--yes")[0] == 0
    installed = json.loads(cursor.read_text())["mcpServers"]["my weather"]
    passed = {name: os.environ[name] for name in "HOME LOGNAME PATH SHELL TERM USER".split() if name in os.environ}
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
    }
    run = subprocess.run(
        [installed["command"], *installed["args"]],
        input=json.dumps(request).encode() + b"\n",
        capture_output=True,
        check=False,
        cwd="/",
        env=passed | installed["env"],
        timeout=LIMIT,
    )
    assert (run.returncode, run.stderr) == (0, b"weather: ready, with 3 cities\n")
    assert json.loads(run.stdout)["result"]["serverInfo"]["name"] == "weather"

    [listed] = captures(str(home / ".mcpspy" / "captures"))
    capture = Capture(listed.capture.path)
    assert capture.header.name == "my weather"
    frames = [record for record in capture.records() if isinstance(record, Frame)]
    assert [frame.raw for frame in frames if frame.ch == 1] == [json.dumps(request).encode()]
    assert [frame.raw for frame in frames if frame.ch == 2] == [run.stdout.rstrip(b"\n")]
    status, out, _ = mcpspy("ls")
    assert (status, "my weather" in out, "1 exchange" in out) == (0, True, True)


def test_the_server_for_agents_comes_and_goes_byte_for_byte(cursor, mcpspy, home):
    status, out, err = mcpspy("install", "cursor", "--agent", "--yes")
    assert (status, err) == (0, "")
    assert f"mcpspy                    add: {sys.executable} -m mcpspy mcp" in out
    assert out.endswith("undo: mcpspy uninstall cursor --agent\n")
    text = cursor.read_text()
    assert f'"mcpspy": {{"command": "{sys.executable}", "args": ["-m", "mcpspy", "mcp"]}}' in text
    assert mcpspy("install", "cursor", "--agent", "--yes")[1].endswith("nothing to change\n")
    assert '"state":"for agents"' in mcpspy("status", "--json")[1]
    assert mcpspy("uninstall", "cursor", "--agent")[0] == 0
    assert cursor.read_text() == TEXT
    assert os.listdir(home / ".mcpspy" / "install") == []


def test_the_server_for_agents_is_not_wrapped_and_stays_with_the_others(cursor, mcpspy):
    mcpspy("install", "cursor", "--agent", "--yes")
    alone = cursor.read_text()
    out = mcpspy("install", "cursor", "--yes")[1]
    assert "mcpspy                    mcpspy itself, for agents" in out
    out = mcpspy("uninstall", "cursor")[1]
    assert "mcpspy itself; --agent removes it" in out
    assert cursor.read_text() == alone
    mcpspy("install", "cursor", "--yes")
    mcpspy("uninstall", "cursor", "--agent")
    assert '"wrap"' in cursor.read_text()
    assert "for agents" not in mcpspy("status")[1]
    mcpspy("uninstall", "cursor")
    assert cursor.read_text() == TEXT


def test_the_server_for_agents_takes_no_servers(cursor, mcpspy):
    assert "--agent takes no servers" in refusal(mcpspy("install", "cursor", "weather", "--agent"))
    assert "--agent takes no servers" in refusal(mcpspy("uninstall", "cursor", "weather", "--agent"))
    out = mcpspy("install", "cursor", "--agent", "--dry-run")[1]
    assert any(line.startswith("+") and '"mcpspy"' in line for line in out.splitlines())
    assert cursor.read_text() == TEXT


def test_what_was_not_installed_is_not_uninstalled(cursor, mcpspy, home):
    status, out, err = mcpspy("uninstall", "cursor")
    assert (status, err) == (0, "")
    assert "weather                   not wrapped" in out
    assert "remote                    not routed" in out
    assert out.endswith("nothing to change\n")
    assert cursor.read_text() == TEXT
    assert not (home / ".mcpspy").exists()


def test_the_bytes_come_back_and_nothing_is_left(cursor, mcpspy, home):
    cursor.chmod(0o600)
    mcpspy("install", "cursor", "--yes")
    status, out, err = mcpspy("uninstall", "cursor")
    assert (status, err) == (0, "")
    assert "weather                   undo\n" in out
    assert out.endswith("\n3 servers of Cursor now without mcpspy\nnow: restart the server in Cursor (Settings, MCP)\n")
    assert cursor.read_text() == TEXT
    assert os.listdir(home / ".mcpspy" / "install") == []
    assert os.listdir(cursor.parent) == ["mcp.json"]


def test_with_dry_run_the_changes_are_printed(cursor, mcpspy):
    mcpspy("install", "cursor", "--yes")
    installed = cursor.read_text()
    status, out, _ = mcpspy("uninstall", "cursor", "notes", "--dry-run")
    assert (status, cursor.read_text()) == (0, installed)
    assert f"+{TEXT.splitlines()[4]}" in out.splitlines()


def test_what_was_wrapped_by_hand_in_another_way_is_one_line(cursor, mcpspy):
    cursor.write_text('{"mcpServers": {"s": {"command": "docker", "args": ["run", "x", "mcpspy", "wrap", "--", "y"]}}}')
    assert "s: line 1, column 22: it was wrapped by hand" in refusal(mcpspy("uninstall", "cursor", "s"), 1)


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("cursor", "agent.json", '{"mcpServers": {"s": {"command": "x"}, "r": {"url": "https://h/mcp"}}}'),
        ("vscode", "work.json", '{ // mine\n  "servers": {"s": {"command": "x"}, "r": {"url": "https://h/mcp"}}\n}\n'),
        ("vscode", ".mcp.json", '{"mcpServers": {"s": {"command": "x"}, "r": {"url": "https://h/mcp"}}}'),
        ("codex", "x.toml", '[mcp_servers.s]\ncommand = "x"\n[mcp_servers.r]\nurl = "https://h/mcp"\n'),
        ("continue", "x.yml", "mcpServers:\n- name: s\n  command: x\n- name: r\n  url: https://h/mcp\n"),
    ],
)
def test_a_file_of_any_name_is_changed_in_the_format_of_the_client(home, mcpspy, client, name, text):
    """V-03."""
    path = home / "some where" / name
    path.parent.mkdir()
    path.write_text(text)
    status, out, err = mcpspy("install", client, "--config", path, "--yes")
    assert (status, err, out.startswith(f"{path}\n")) == (0, "", True)
    assert f"\nundo: mcpspy uninstall {client} --config '{path}'\n" in out
    assert "wrap" in path.read_text()
    assert "http://127.0.0.1:6278/r/mcp" in path.read_text()
    assert mcpspy("uninstall", client, "--config", path)[0] == 0
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--config", "x.json"], "--config needs the client whose format the file has"),
        (["cursor", "--config", "x.json", "--scope", "user"], "give one of them"),
        (["cursor", "--config", "no.json"], "cannot read no.json: No such file"),
        (["cursor", "--config", "x.toml"], "Cursor has no configurations in TOML, so it cannot read x.toml"),
        (["codex", "--config", "bad.toml"], "bad.toml: line 1, column 2: "),
    ],
)
def test_a_wrong_file_is_one_line(home, mcpspy, arguments, said):
    (home / "work" / "bad.toml").write_text("[")
    assert said in refusal(mcpspy("install", *arguments, "--yes"))


def test_all_files_of_vs_code_are_wrapped_and_restored(home, mcpspy):
    """V-03: products, profiles, servers for remote windows, code-server."""
    text = '{"servers": {"s": {"command": "x"}, "d": {"command": "node", "dev": {"debug": {"type": "node"}}}}}'
    places = [".config/Code/User", ".config/Code - Insiders/User", ".config/VSCodium/User/profiles/a"]
    places += [".vscode-server/data/User", ".local/share/code-server/User", "work/.vscode"]
    for place in places:
        (home / place).mkdir(parents=True)
        (home / place / "mcp.json").write_text(text)
    status, out, _ = mcpspy("install", "vscode", "--yes")
    assert (status, out.count("cannot be changed: "), out.count("only if node is the command")) == (1, 6, 6)
    assert all('"wrap"' in (home / place / "mcp.json").read_text() for place in places)
    assert mcpspy("uninstall", "vscode")[0] == 0
    assert [(home / place / "mcp.json").read_text() for place in places] == [text] * 6
