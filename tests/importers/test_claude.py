from mcpspy.importers import text
from tests.importers.files import PING, PONG, brought, imported, told

OLDER = f"""\
2025-06-27T07:58:07.000Z [info] [weather] Initializing server...
2025-06-27T07:58:07.500Z [info] [weather] Server started and connected successfully
2025-06-27T07:58:07.774Z [info] [weather] Message from client: {PING.decode()}
[38956] listening
2025-06-27T07:58:08.067Z [error] [weather] Unexpected token 'i', "time=2025-0"... is not valid JSON
2025-06-27T07:58:08.068Z [info] [weather] Message from server: {PONG.decode()}
"""
NEWER = f"""\
2025-07-28T21:22:03.000Z [kSQL MCP] [info] Using MCP server command: /usr/bin/node with args and path: {{
  metadata: {{
    args: [ 'index.js' ],
    paths: [ [length]: 37 ]
  }}
}} %o
2025-07-28T21:22:03.986Z [kSQL MCP] [info] Message from client: {PING.decode()} {{ metadata: undefined }}
2025-07-28T21:22:03.990Z [notes] [info] Message from client: {PING.decode()} {{ metadata: undefined }}

warming up
2025-07-28T21:22:04.486Z [kSQL MCP] [info] Message from server: {PONG.decode()} {{ metadata: undefined }}
"""


def test_a_log_has_what_was_said_and_what_the_server_wrote_to_stderr(tmp_path):
    account, [capture] = brought(tmp_path, b"\xef\xbb\xbf" + OLDER.partition("\n")[2].encode())
    parser = "Unexpected token 'i', \"time=2025-0\"... is not valid JSON"
    why = f"Claude Desktop could not read a line of the server, which the log does not hold: {parser}"
    assert told(capture) == [
        f"0 client stdin {PING.decode()}",
        "0 server stderr [38956] listening",
        f"293 gap 1 {why}",
        f"294 server stdout {PONG.decode()}",
    ]
    assert capture.header.name == "weather"
    assert capture.header.started == "2025-06-27T07:58:07.774000Z"
    assert (account.read, account.lost) == (5, 0)
    assert "times of stderr" in imported(capture)["approximate"]


def test_several_servers_have_a_capture_each_and_objects_of_the_client_are_not_stderr(tmp_path):
    _, captures = brought(tmp_path, NEWER.replace("\n", "\r\n").encode(), "mcp.log")
    assert [capture.header.name for capture in captures] == ["kSQL MCP", "notes"]
    assert told(captures[0]) == [f"0 client stdin {PING.decode()}", f"500 server stdout {PONG.decode()}"]
    assert told(captures[1]) == [f"0 client stdin {PING.decode()}", "0 server stderr warming up"]


def test_each_start_of_a_server_is_a_capture(tmp_path):
    _, captures = brought(tmp_path, (OLDER * 3).encode())
    assert [len(told(capture)) for capture in captures] == [4, 4, 4]


def test_a_line_without_a_server_is_of_the_one_that_the_file_is_called_after(tmp_path):
    raw = f"2026-01-08T10:19:20.688Z [info] Message from client: {PING.decode()}\n"
    _, [capture] = brought(tmp_path, raw.encode(), "mcp-server-notes.log")
    assert capture.header.name == "mcp-server-notes"


def test_a_message_that_is_not_whole_is_a_gap(tmp_path):
    raw = OLDER + '2025-06-27T07:58:09.774Z [info] [weather] Message from client: {"method":"initialize",...}\n'
    _, [capture] = brought(tmp_path, raw.encode())
    assert told(capture)[-1] == "2000 gap 1 the log has a message of the client only in part"


def test_what_cannot_be_a_line_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "LONGEST", 1000)
    bad = "2025-13-27T07:58:09.774Z [info] [weather] Message from client: {}\n" + "x" * 2000 + "\n"
    account, [capture] = brought(tmp_path, (OLDER + bad + OLDER.partition("\n")[2]).encode())
    assert (account.read, account.lost) == (13, 2)
    assert len(told(capture)) == 8


def test_time_never_goes_back(tmp_path):
    early = f"2025-06-27T07:58:01.000Z [info] [weather] Message from server: {PONG.decode()}\n"
    _, [capture] = brought(tmp_path, (OLDER + early).encode())
    assert told(capture)[-1] == f"294 server stdout {PONG.decode()}"


def test_what_the_client_quotes_of_a_line_is_told_without_secrets(tmp_path):
    """O-02."""
    line = '2025-06-27T07:58:09.000Z [error] [weather] Unexpected token A, "API_KEY=hunter2" is not valid JSON\n'
    _, [capture] = brought(tmp_path, (OLDER + line).encode())
    assert "hunter2" not in told(capture)[-1]
    assert '"API_KEY=«redacted:' in told(capture)[-1]
