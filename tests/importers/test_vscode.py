"""Logs of VS Code. The lines are of issues in public trackers, with other names."""

import json
from pathlib import Path

import pytest

from mcpspy.capture.records import End
from mcpspy.errors import CaptureError
from mcpspy.importers import text
from tests.importers.files import PING, PONG, brought, imported, told
from tests.zones import zone

HELLO = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'
WELCOME = '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}'
STARTED = """\
2026-07-24 02:03:14.031 [info] Starting server weather
2026-07-24 02:03:14.031 [info] Connection state: Starting
2026-07-24 02:03:14.031 [info] Starting server from LocalProcess extension host
2026-07-24 02:03:14.032 [debug] Server command line: /home/me/weather/server --port 1
2026-07-24 02:03:14.088 [info] Connection state: Starting
2026-07-24 02:03:14.089 [info] Connection state: Running
"""
SESSION = f"""\
2026-07-24 02:03:14.089 [debug] [editor -> server] {HELLO}
2026-07-24 02:03:14.095 [warning] [server stderr] listening
2026-07-24 02:03:14.151 [debug] [server -> editor] {WELCOME}
2026-07-24 02:03:14.200 [warning] Failed to parse message: "warming \\"up\\"\\n"
2026-07-24 02:03:14.201 [info] Discovered 3 tools
2026-07-24 02:03:15.000 [debug] [editor -> server] {PING.decode()}
2026-07-24 02:03:15.002 [debug] [server -> editor] {PONG.decode()}
2026-07-24 02:03:16.000 [info] Connection state: Error Process exited with code 3
2026-07-24 02:03:16.001 [error] Error: Canceled
    at Object.x (file:///usr/share/code/y.js:1:2)
2026-07-24 02:03:16.002 [warning] [server stderr] Traceback
"""
TOLD = [
    f"58 client stdin {HELLO}",
    "64 server stderr listening",
    f"120 server stdout {WELCOME}",
    '169 server stdout warming "up"',
    f"969 client stdin {PING.decode()}",
    f"971 server stdout {PONG.decode()}",
    "1971 server stderr Traceback",
]


def log(folder, text, name="mcpServer.mcp.config.usrlocal.weather.log"):
    """Import this log; return the account and the captures."""
    return brought(folder, text.encode(), name)


def end(capture):
    """Return exit code and reason of the last record."""
    last = list(capture.records())[-1]
    assert isinstance(last, End)
    return last.code, last.why


def test_a_log_has_the_messages_the_lines_of_the_server_and_its_exit_code(tmp_path):
    with zone("Europe/Oslo"):
        account, [capture] = log(tmp_path, STARTED + SESSION)
    assert told(capture) == TOLD
    assert end(capture) == (3, None)
    assert (capture.header.name, capture.header.transport) == ("weather", "stdio")
    assert capture.header.started == "2026-07-24T00:03:14.031000Z", "the time of a log is local"
    assert (account.read, account.lost) == (17, 0)
    assert imported(capture) == {
        "from": "a log of VS Code", "approximate": ["time zone", "bytes"], "missing": ["heads", "argv"]
    }  # fmt: skip


def test_each_start_is_a_capture_and_line_feeds_may_be_those_of_windows(tmp_path):
    _, captures = log(tmp_path, (STARTED + SESSION).replace("\n", "\r\n") * 3)
    assert [told(capture) for capture in captures] == [TOLD] * 3


def test_the_first_version_had_other_words(tmp_path):
    """microsoft/vscode#244377."""
    session = SESSION.replace("editor -> server", "Client Says").replace("server -> editor", "Server Says")
    _, [capture] = log(tmp_path, STARTED + session.replace("[debug] [", "[info] ["))
    assert told(capture) == TOLD


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("Error spawn weather ENOENT", (None, "spawn weather ENOENT")),
        ("Error Process exited with code 127", (127, None)),
        ("Error Process exited with code null", (None, "Process exited with code null")),
        ("Error Failed to read https://h/?token=hunter2", (None, "Failed to read https://h/?token=")),
    ],
)
def test_a_failed_start_is_a_capture_with_its_reason(tmp_path, state, expected):
    started = "".join(STARTED.splitlines(keepends=True)[:3])
    _, [capture] = log(tmp_path, f"{started}2026-07-24 02:03:14.040 [info] Connection state: {state}\n")
    code, why = end(capture)
    assert (code, why and why.partition("«")[0]) == expected
    assert told(capture) == []


def test_a_connection_that_breaks_later_is_no_failed_start(tmp_path):
    session = SESSION.replace("Process exited with code 3", "connect ECONNREFUSED")
    _, [capture] = log(tmp_path, STARTED + session)
    assert end(capture) == (None, None)


def test_a_log_at_a_higher_level_says_that_it_has_no_messages(tmp_path):
    stopped = "2026-07-24 02:03:20.000 [info] Connection state: Stopped\n"
    _, [capture] = log(tmp_path, f"{STARTED}2026-07-24 02:03:14.900 [info] Discovered 3 tools\n{stopped}")
    assert told(capture) == ["5969 gap 1 the log has no messages: VS Code logs them at the level Debug or Trace"]


def test_a_log_that_begins_within_a_session_says_so(tmp_path):
    """A rotated file, or a level that was changed later; without a start, the name is that of the file."""
    _, [capture] = log(tmp_path, "".join(SESSION.splitlines(keepends=True)[5:]))
    assert told(capture)[0] == "0 gap 1 the log does not have the beginning of this session"
    assert told(capture)[1] == f"0 client stdin {PING.decode()}"
    assert capture.header.name == "mcpServer.mcp.config.usrlocal.weather"
    assert end(capture) == (3, None)


def test_what_is_damaged_is_a_gap_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "LONGEST", 1000)
    damage = f"""\
2026-07-24 02:03:17.000 [debug] [editor -> server] {{"jsonrpc":"2.0","id":1,"met
2026-07-24 02:03:17.001 [debug] [server -> editor] {PONG.decode()}2026-07-24 02:03:17.001 [debug] [edi
2026-17-24 02:03:17.002 [debug] [server -> editor] {PONG.decode()}
{"x" * 2000}
2026-07-24 02:03:17.003 [warning] Failed to parse message: "half
2026-07-24 02:03:17.004 [debug] [editor -> server] {"[" * 300}
"""
    account, [capture] = log(tmp_path, STARTED + SESSION + damage)
    assert told(capture)[7:] == [
        "2969 gap 1 the log has a message of the client only in part",
        f"2970 server stdout {PONG.decode()}",
        "2970 gap 1 the log has more on the line of a message, which cannot be read",
        "2970 gap 1 the log has a line with an impossible time",
        "2970 gap 1 the log has a line that is too long to be read",
        "2972 gap 1 the log has a line of the server only in part",
        "2973 gap 1 the log has a message of the client only in part",
    ]
    assert account.lost == 3


@pytest.mark.parametrize("cut", range(0, len(STARTED + SESSION), 97))
def test_a_log_that_is_cut_anywhere_has_what_precedes_the_cut(tmp_path, cut):
    whole = STARTED + SESSION
    if not whole[:cut].startswith(STARTED.partition("\n")[0]):
        return
    _, [capture] = log(tmp_path, whole[:cut])
    complete = [line for line in told(capture) if " gap " not in line]
    assert [json.dumps(line) for line in complete[:-1]] == [json.dumps(line) for line in TOLD[: len(complete)][:-1]]


def test_a_line_of_the_server_is_safe_whatever_it_holds(tmp_path):
    line = '2026-07-24 02:03:14.200 [warning] Failed to parse message: "\\ud800\\u001b[2J"\n'
    _, [capture] = log(tmp_path, STARTED + line)
    assert told(capture)[0] == "169 server stdout ?\x1b[2J"


def test_what_vs_code_really_wrote_is_read(tmp_path):
    """The output of a server in VS Code 1.139.1, as code-server, with the level Trace."""
    content = (Path(__file__).parent / "fixtures" / "vscode.log").read_bytes()
    account, [capture] = brought(tmp_path, content)
    lines = told(capture)
    assert [line.partition(" ")[2].partition("{")[0] for line in lines] == [
        "client stdin ",
        "server stdout starting up",
        "server stderr listening on nothing",
        "server stdout ",
        "client stdin ",
        "client stdin ",
        "server stdout ",
    ]
    assert json.loads(lines[0].partition("stdin ")[2])["params"]["clientInfo"]["version"] == "1.139.1"
    assert (capture.header.name, end(capture), account.lost) == ("plain", (3, None), 0)


CURSOR = """\
2025-04-24 16:16:51.823 [info] ster: Starting new stdio process with command: npx -y --package notes
2025-04-24 16:16:54.058 [info] ster: Client closed for command
2025-04-24 16:16:54.062 [error] etch: No server info found
"""


def test_a_log_of_cursor_has_no_messages_and_the_error_says_what_to_do(tmp_path):
    with pytest.raises(
        CaptureError, match="is a log of Cursor, which has no messages; to record them, run 'mcpspy inst"
    ):
        log(tmp_path, CURSOR)
