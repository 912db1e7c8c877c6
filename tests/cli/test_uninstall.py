import os

from tests.cli.conftest import CONFIGURATION as TEXT
from tests.cli.test_install import one_line


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


def test_one_server_is_undone_alone(cursor, mcpspy):
    mcpspy("install", "cursor", "--yes")
    assert mcpspy("uninstall", "cursor", "notes")[0] == 0
    lines = cursor.read_text().splitlines()
    assert lines[4] == TEXT.splitlines()[4]
    assert "wrap" in lines[3]
    assert mcpspy("uninstall", "cursor")[0] == 0
    assert cursor.read_text() == TEXT


def test_what_was_written_since_stays(cursor, mcpspy):
    mcpspy("install", "cursor", "--yes")
    cursor.write_text(cursor.read_text().replace("// mine", "// mine, and new"))
    mcpspy("uninstall", "cursor")
    assert cursor.read_text() == TEXT.replace("// mine", "// mine, and new")


def test_with_dry_run_the_changes_are_printed(cursor, mcpspy):
    mcpspy("install", "cursor", "--yes")
    installed = cursor.read_text()
    status, out, _ = mcpspy("uninstall", "cursor", "notes", "--dry-run")
    assert (status, cursor.read_text()) == (0, installed)
    assert f"+{TEXT.splitlines()[4]}" in out.splitlines()


def test_what_was_wrapped_by_hand_in_another_way_is_one_line(cursor, mcpspy):
    cursor.write_text('{"mcpServers": {"s": {"command": "docker", "args": ["run", "x", "mcpspy", "wrap", "--", "y"]}}}')
    assert "s: line 1, column 22: it was wrapped by hand" in one_line(mcpspy("uninstall", "cursor", "s"), 1)
