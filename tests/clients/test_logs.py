"""What clients' own logs say about a failed start."""

import os

from mcpspy.clients.check import NOTE
from mcpspy.clients.logs import last_error, newest, of_log
from mcpspy.clients.places import Found
from mcpspy.clients.servers import Server
from mcpspy.clients.table import BY_ID
from tests.clients.configurations import machine
from tests.each import each

DESKTOP = """\
2026-11-01T10:00:00.000Z [s] [info] Initializing server... { metadata: undefined }
2026-11-01T10:00:00.100Z [s] [error] spawn npx ENOENT { metadata: { context: 'connection' } }
2026-11-01T10:00:00.200Z [s] [error] Server disconnected. For troubleshooting guidance, please visit our documentation
"""
CODE = """\
2026-11-01 10:00:00.000 [info] Starting server s
2026-11-01 10:00:00.000 [info] Connection state: Starting
2026-11-01 10:00:00.500 [warning] [server stderr] no such module
2026-11-01 10:00:00.600 [info] Connection state: Error Process exited with code 1
2026-11-01 10:00:00.600 [error] Server exited before responding to `initialize` request.
"""
CLAUDE = """\
{"debug":"Starting connection with timeout of 30000ms","timestamp":"2026-11-01T10:00:00Z"}
{"error":"Server stderr: no key sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","timestamp":"2026-11-01T10:00:01Z"}
not json
{"error"
"""


@each(
    "text, error",
    [
        (DESKTOP, "2026-11-01T10:00:00.100Z [s] [error] spawn npx ENOENT { metadata: { context: 'connection' } }"),
        (DESKTOP + "2026-11-01T10:01:00.000Z [s] [info] Initializing server...\n", ""),
        (DESKTOP + "x [s] [info] Message from server: {}\n", ""),
        (CODE, "2026-11-01 10:00:00.600 [info] Connection state: Error Process exited with code 1"),
        (CODE + "2026-11-01 10:00:01.000 [info] Connection state: Running\n", ""),
        (CODE + "2026-11-01 10:00:01.000 [info] Discovered 3 tools\n", ""),
        (CLAUDE, "error: Server stderr: no key «withheld»"),
        ('{"debug":"Successfully connected"}\n{"debug":"x"}\n', ""),
        ("2026 [error] --token s3cr3t\n", "2026 [error] --token «withheld»"),
        ("x\n" * 100_000 + "[error] late\n", "[error] late"),
        ("[error] " + "x" * 1000 + "\n", "[error] " + "x" * 292),
        ("", ""),
    ],
)
def test_the_reason_is_the_first_error_of_the_last_start(tmp_path, text, error):
    path = tmp_path / "log"
    path.write_text(text)
    assert last_error(str(path)) == error


def planted(tmp_path, client, path, name="s"):
    """Return a server, and its log at `path` below the home."""
    config, log = tmp_path / "config.json", tmp_path / "home" / path
    log.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("")
    log.write_text(DESKTOP)
    os.utime(config, (1000, 1000))
    return Server(Found(BY_ID[client], BY_ID[client].places[0], str(config)), name, name), log


@each(
    "client, path",
    [
        ("claude-desktop", ".config/Claude/logs/mcp-server-s.log"),
        ("claude-code", ".cache/claude-cli-nodejs/-home-me/mcp-logs-s/2026-11-01T10.jsonl"),
        ("cursor", ".config/Cursor/logs/20261101T1/window1/exthost/anysphere.cursor-mcp/MCP user-s.log"),
        ("cursor", ".config/Cursor/logs/20261101T1/mcp-server-user-s.log"),
        ("vscode", ".config/Code - Insiders/logs/20261101T1/window2/mcpServer.mcp.config.usrlocal.s.log"),
    ],
)
def test_each_client_has_its_logs_in_its_own_place(tmp_path, client, path):
    home = tmp_path / path.replace("/", "-")
    server, log = planted(home, client, path)
    here = machine(home)
    assert newest(server, here) == str(log)
    [check] = of_log(server, here)
    assert (check.level, check.fix) == (NOTE, f"the rest is in {log}")
    assert check.text.startswith(f"{BY_ID[client].name}'s log of its last start: 2026-11-01T10:00:00.100Z [s] [error]")
    os.utime(log, (500, 500))
    assert not list(of_log(server, here)), "the configuration has been changed since"


def test_the_newest_of_several_logs_counts(tmp_path):
    folder = ".config/Code/logs/{}/window1/mcpServer.mcp.config.usrlocal.s.log"
    for number in (3, 1, 2):
        server, log = planted(tmp_path, "vscode", folder.format(number))
        os.utime(log, (2000 + number, 2000 + number))
    assert newest(server, machine(tmp_path)).split("/logs/")[1].startswith("3/")


@each("name", ["../s", "..", "/etc/x", "a\\b", "a\0b", "", ".s", "[s]", "*"])
def test_the_name_of_a_server_leads_to_no_other_file(tmp_path, name):
    """Anybody may have written the configuration of a project."""
    server, _ = planted(tmp_path, "vscode", ".config/Code/logs/1/window1/mcpServer.mcp.config.usrlocal.s.log", name)
    assert newest(server, machine(tmp_path)) == ""
