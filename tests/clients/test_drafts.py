"""Plans over files that are installed, changed by other programs, and uninstalled."""

import dataclasses
import json
import os
import shutil

import pytest

from mcpspy.clients import drafts
from mcpspy.clients.apply import load, recall
from mcpspy.clients.drafts import installs, uninstalls, write
from mcpspy.clients.formats import JSON, read
from mcpspy.clients.places import find
from mcpspy.clients.plan import UNDO
from mcpspy.clients.table import BY_ID
from mcpspy.clients.tree import plain
from mcpspy.errors import ConfigError
from tests.clients.configurations import FIXTURES, LAUNCHER, fixture, machine, put

TEXT = """{
  "mcpServers": {
    "a": {"command": "x"},
    "b": {"command": "y", "args": [ /* none */ ]},
  }
}
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def cursor(home):
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    return path


def install(client, here, names=(), routes=None):
    made, needed = installs(find(BY_ID[client], here), here, names, LAUNCHER, routes or {})
    write(made)
    return needed


def uninstall(client, here, names=(), routes=None):
    made = uninstalls(find(BY_ID[client], here), here, names, routes or {})
    write(made)
    return [step.server for draft in made for step in draft.steps if step.action == UNDO]


def kept(home):
    return os.listdir(home / ".mcpspy" / "install")


@pytest.mark.parametrize("name", FIXTURES)
def test_install_then_uninstall_restores_the_bytes_of_every_fixture(name, tmp_path, home, monkeypatch):
    path, here = put(name, tmp_path)
    client = name.split(".")[0]
    routes = install(client, here)
    once = path.read_bytes()
    assert once != fixture(name)
    monkeypatch.setattr("tests.clients.test_drafts.LAUNCHER", ["/another/mcpspy"])
    assert install(client, here, routes=routes) == routes
    assert path.read_bytes() == once
    assert uninstall(client, here, routes=routes)
    assert path.read_bytes() == fixture(name)
    assert kept(home) == []


def written_by(text):
    """Return a JSON configuration as a client writes it after `mcp add`: the old content and one more server."""
    value = plain(read(text, JSON))
    value.setdefault("mcp" if "mcp" in value else "mcpServers", {})["theirs"] = {"command": "z"}
    return value


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in FIXTURES
        if name.split(".")[0] in ("cline", "copilot", "opencode", "qwen", "mcporter") and "win32" not in name
    ],
)
def test_what_a_client_wrote_between_install_and_uninstall_stays(name, tmp_path, home):
    """CF-10: each of these clients rewrites its file, indented by two spaces and without comments."""
    path, here = put(name, tmp_path)
    client = name.split(".")[0]
    routes = install(client, here)
    path.write_text(json.dumps(written_by(path.read_text()), indent=2))
    uninstall(client, here, routes=routes)
    assert path.read_text() == json.dumps(written_by(fixture(name).decode()), indent=2)
    assert kept(home) == []


def test_one_by_one_is_as_all_at_once(cursor, tmp_path, home):
    here = machine(tmp_path)
    install("cursor", here, ["b"])
    install("cursor", here, ["a"])
    assert uninstall("cursor", here, ["b"]) == ["b"]
    assert kept(home)
    assert uninstall("cursor", here, ["a"]) == ["a"]
    assert cursor.read_text() == TEXT
    assert kept(home) == []


def test_a_change_by_others_stays(cursor, tmp_path, home):
    here = machine(tmp_path)
    install("cursor", here)
    cursor.write_text(cursor.read_text().replace('    "b"', '    // theirs\n    "c": {"command": "z"},\n    "b"'))
    install("cursor", here, ["c"])
    assert uninstall("cursor", here) == ["a", "c", "b"]
    assert cursor.read_text() == TEXT.replace('    "b"', '    // theirs\n    "c": {"command": "z"},\n    "b"')
    assert kept(home) == []


def test_what_others_undid_is_not_brought_back(cursor, tmp_path):
    here = machine(tmp_path)
    install("cursor", here)
    cursor.write_text('{"mcpServers": {"new": {"command": "n"}}}')
    assert uninstall("cursor", here) == []
    assert cursor.read_text() == '{"mcpServers": {"new": {"command": "n"}}}'
    install("cursor", here)
    uninstall("cursor", here)
    assert cursor.read_text() == '{"mcpServers": {"new": {"command": "n"}}}'


def test_after_a_kill_between_backup_and_replacement_all_goes_on(cursor, tmp_path, home, monkeypatch):
    here = machine(tmp_path)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(drafts, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            install("cursor", here)
    assert cursor.read_text() == TEXT
    assert uninstall("cursor", here) == []
    cursor.write_text(TEXT + "\n")
    install("cursor", here)
    assert uninstall("cursor", here) == ["a", "b"]
    assert cursor.read_text() == TEXT + "\n"


@pytest.fixture
def projects(home):
    """Claude Code's file with servers of projects A and B, and machines that work in A, B and C."""
    here = {name: machine(home.parent, cwd=str(home / name)) for name in "ABC"}
    servers = {here[name].cwd: {"mcpServers": {f"s{name}": {"command": "x"}}} for name in "AB"}
    home.mkdir(exist_ok=True)
    path = home / ".claude.json"
    path.write_text(json.dumps({"projects": servers}, indent=2))
    return path, here


def wrapped_in(path):
    text = json.loads(path.read_text())["projects"].values()
    return [entry["command"] == LAUNCHER[0] for one in text for entry in one["mcpServers"].values()]


def test_a_project_is_undone_alone_though_another_shares_the_file(projects):
    path, here = projects
    before = path.read_text()
    install("claude-code", here["A"])
    assert uninstall("claude-code", here["C"]) == []
    assert wrapped_in(path) == [True, False]
    install("claude-code", here["B"])
    assert uninstall("claude-code", here["B"], ["sB"]) == ["sB"]
    assert wrapped_in(path) == [True, False]
    assert uninstall("claude-code", here["A"]) == ["sA"]
    assert path.read_text() == before


def test_a_project_is_undone_alone_after_the_client_wrote_its_file_anew(projects, home):
    path, here = projects
    install("claude-code", here["A"])
    path.write_text(json.dumps(json.loads(path.read_text())))
    install("claude-code", here["B"])
    assert uninstall("claude-code", here["A"]) == ["sA"]
    assert wrapped_in(path) == [False, True]
    assert uninstall("claude-code", here["B"]) == ["sB"]
    assert wrapped_in(path) == [False, False]
    assert "\n" not in path.read_text(), "what the client wrote stays as it wrote it"
    assert kept(home) == []


def test_a_wrap_made_by_hand_before_is_there_again(cursor, tmp_path, home):
    by_hand = TEXT.replace('"x"', '"mcpspy", "args": ["wrap", "--check", "-o", "f", "--", "x"]')
    cursor.write_text(by_hand)
    install("cursor", machine(tmp_path))
    assert cursor.read_text() != by_hand
    for undone in (["b"], []):
        assert uninstall("cursor", machine(tmp_path)) == undone
        assert cursor.read_text() == by_hand
    assert kept(home) == []


def test_what_the_edits_alone_would_not_bring_back_is_remembered(home, tmp_path):
    """A command in a multi-line TOML string moves into the arguments. Edits alone would restore it in other quotes."""
    path, text = home / ".codex" / "config.toml", '[mcp_servers.a]\ncommand = """\nx"""\n'
    path.parent.mkdir(parents=True)
    for kept_memory in (True, False):
        path.write_text(text)
        install("codex", machine(tmp_path))
        if not kept_memory:
            shutil.rmtree(home / ".mcpspy")
        uninstall("codex", machine(tmp_path))
        assert (path.read_text() == text) is kept_memory


def test_the_way_back_is_kept_before_the_file_is_replaced(cursor, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(drafts, "replace", lambda config, content: seen.append((recall(config), content)))
    install("cursor", machine(tmp_path))
    [(memory, content)] = seen
    assert memory.original.decode() == TEXT
    assert memory.unchanged(dataclasses.replace(load(str(cursor)), raw=content))


def test_what_is_remembered_is_forgotten_when_others_have_undone_it(cursor, tmp_path, home):
    here = machine(tmp_path)
    install("cursor", here)
    assert kept(home)
    cursor.write_text(TEXT)
    assert uninstall("cursor", here) == []
    assert kept(home) == []


def test_a_file_with_two_places_is_written_once(tmp_path, monkeypatch):
    _, here = put("claude-code.user.linux.json", tmp_path)
    made, _ = installs(find(BY_ID["claude-code"], here), here, (), LAUNCHER, {})
    assert [[step.server for step in draft.steps] for draft in made] == [["docs", "shell", "local-db"]]


def test_a_scope_alone_is_undone_alone(tmp_path):
    path, here = put("claude-code.user.linux.json", tmp_path)
    install("claude-code", here)
    local = find(BY_ID["claude-code"], here, "local")
    write(uninstalls(local, here, (), {}))
    text = path.read_text()
    assert '"local-db": {"type": "stdio", "command": "npx", "args": ["-y"' in text
    assert text.count(LAUNCHER[0]) == 1


def test_a_shared_file_is_undone_through_the_other_client(cursor, tmp_path, home):
    here = machine(tmp_path)
    link = home / ".codeium" / "windsurf" / "mcp_config.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(cursor)
    install("cursor", here)
    assert uninstall("windsurf", here) == ["a", "b"]
    assert cursor.read_text() == TEXT
    assert link.is_symlink()


def test_nothing_is_written_unless_all_can_be(cursor, tmp_path, home):
    here = machine(tmp_path)
    project = home / "work" / ".cursor" / "mcp.json"
    project.parent.mkdir(parents=True)
    project.write_text(TEXT)
    project.chmod(0o444)
    with pytest.raises(ConfigError, match="read-only"):
        install("cursor", here)
    assert (cursor.read_text(), project.read_text()) == (TEXT, TEXT)


def test_a_broken_file_of_another_scope_does_not_matter(cursor, tmp_path, home):
    here = machine(tmp_path)
    (home / "work" / ".cursor" / "mcp.json").mkdir(parents=True)
    made, _ = installs(find(BY_ID["cursor"], here, "user"), here, (), LAUNCHER, {})
    write(made)
    assert LAUNCHER[0] in cursor.read_text()


def test_an_error_names_the_file(cursor, tmp_path):
    cursor.write_text('{"mcpServers": {\n "a" }}')
    with pytest.raises(ConfigError, match=rf"^{cursor}: line 2, column 6: expected ':'"):
        install("cursor", machine(tmp_path))
