import pytest

from mcpspy.capture.records import End
from mcpspy.importers import text
from tests.importers.files import PONG, brought, imported, told

PING = b'{"jsonrpc":"2.0","id":1,"method":"initialize"}'

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
    assert told(capture) == [
        f"0 client stdin {PING.decode()}",
        "0 server stderr [38956] listening",
        "293 server stdout time=2025-0",
        "293 gap 1 the log has only the beginning of this line",
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
    assert [len(told(capture)) for capture in captures] == [5, 5, 5]


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
    assert len(told(capture)) == 10


def test_time_never_goes_back(tmp_path):
    early = f"2025-06-27T07:58:01.000Z [info] [weather] Message from server: {PONG.decode()}\n"
    _, [capture] = brought(tmp_path, (OLDER + early).encode())
    assert told(capture)[-1] == f"294 server stdout {PONG.decode()}"


def test_what_the_client_quotes_of_a_line_is_told_without_secrets(tmp_path):
    """O-02."""
    line = '2025-06-27T07:58:09.000Z [error] [weather] Unexpected token A, "API_KEY=hunter2" is not valid JSON\n'
    _, [capture] = brought(tmp_path, (OLDER + line).encode())
    assert "hunter2" not in told(capture)[-1]
    assert "server stdout API_KEY=«redacted:" in told(capture)[-1]


def server_log(*texts, level="error"):
    """Return a log of Claude Desktop with lines of one millisecond each."""
    return "".join(f"2025-06-27T07:58:07.{n:03}Z [weather] [{level}] {it}\n" for n, it in enumerate(texts)).encode()


def end(capture):
    """Return the reason in the last record."""
    last = list(capture.records())[-1]
    assert isinstance(last, End)
    return last.why


UNREAD = "gap 1 Claude Desktop could not read a line of the server, which the log does not hold"


@pytest.mark.parametrize(
    ("quoted", "expected"),
    [
        ("""Unexpected token 'h', "hello" is not valid JSON""", ["stdout hello"]),
        ("""Unexpected token '"', ""a" b" is not valid JSON""", ['stdout "a" b']),
        ("""Unexpected token 'H', "HowToCook 启动成功" is not valid JSON""", ["stdout HowToCook 启动成功"]),
        ("""Unexpected token 'd', ..."tarting [d"... is not valid JSON""", ["stdout tarting [d", "middle"]),
        ("""Unexpected token 'd', ..."server up" is not valid JSON""", ["stdout server up", "end"]),
        ('"undefined" is not valid JSON', ["stdout undefined"]),
        ("No number after minus sign in JSON at position 3", [UNREAD]),
        ("Unexpected end of JSON input", [UNREAD]),
    ],
)
@pytest.mark.parametrize(
    "after",
    [
        "",
        ' {"context":"connection","stack":"SyntaxError: \\"x\\" is not valid JSON\\n    at JSON.parse"}',
        " { metadata: undefined }",
    ],
)
def test_what_is_quoted_of_a_line_that_is_not_json_is_a_frame(tmp_path, quoted, expected, after):
    _, [capture] = brought(tmp_path, server_log(quoted + after))
    first, *rest = told(capture)
    assert first.removeprefix("0 server ").startswith(f"0 {expected[0]}" if expected == [UNREAD] else expected[0])
    assert rest == [f"0 gap 1 the log has only the {part} of this line" for part in expected[1:]]


IN = "Error in MCP connection to server notes"
OF_2024 = f"""\
2024-12-20T22:10:19.000Z [info] Attempting to connect to MCP server notes...
2024-12-20T22:10:19.010Z [info] Connected to MCP server notes!
2024-12-20T22:10:19.020Z [error] {IN}: SyntaxError: Unexpected token '>', "> tsc && s"... is not valid JSON
    at JSON.parse (<anonymous>)
    at Socket.emit (node:events:519:28)
the server itself
    at home
2024-12-20T22:10:20.000Z [info] Attempting to connect to MCP server notes...
2024-12-20T22:10:20.020Z [error] {IN}: Error: spawn notes ENOENT
    at ChildProcess._handle.onexit (node:internal/child_process:285:19)
"""


def test_the_log_of_2024_names_servers_in_its_text_and_has_stack_traces(tmp_path):
    _, captures = brought(tmp_path, OF_2024.encode(), "mcp.log")
    assert [(capture.header.name, told(capture), end(capture)) for capture in captures] == [
        (
            "notes",
            [
                "0 server stdout > tsc && s",
                "0 gap 1 the log has only the beginning of this line",
                "0 server stderr the server itself",
                "0 server stderr     at home",
            ],
            None,
        ),
        ("notes", [], "spawn notes ENOENT"),
    ]


CLOSED = "Server transport closed unexpectedly, this is likely due to the process exiting early. If you are developing"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (['spawn a-b ENOENT {"context":"connection","stack":"Error: spawn a-b ENOENT"}', CLOSED], "spawn a-b ENOENT"),
        (["spawn EINVAL { metadata: { context: 'connection' } }"], "spawn EINVAL"),
        (["spawn /opt/My App/run EACCES", "Server disconnected."], "spawn /opt/My App/run EACCES"),
        (["Server started and connected successfully", CLOSED], CLOSED.partition(".")[0]),
        ([f"Message from client: {PING.decode()}", CLOSED], CLOSED.partition(".")[0]),
        ([f"Message from client: {PING.decode()}", f"Message from server: {PONG.decode()}", CLOSED], None),
    ],
)
def test_a_failed_start_is_a_capture_with_its_reason(tmp_path, lines, why):
    _, [capture] = brought(tmp_path, server_log("Initializing server...", *lines))
    assert end(capture) == why
    assert capture.header.name == "weather"


def test_the_program_that_starts_servers_reports_its_failure_without_a_time(tmp_path):
    started = server_log("Initializing server... { metadata: undefined }", "Server started and connected successfully")
    log = started + b"Failed to spawn process: No such file or directory\n" + server_log(CLOSED)
    _, [capture] = brought(tmp_path, log)
    assert (told(capture), end(capture)) == ([], "Failed to spawn process: No such file or directory")


@pytest.mark.parametrize(
    ("first", "complete"),
    [
        (PONG.decode(), False),
        ('{"jsonrpc":"2.0","id":1,"method":"tools/list"}', False),
        ("[]", False),
        (PING.decode(), True),
        ('{"jsonrpc":"2.0","id":1,"method":"server/discover"}', True),
        ('{"id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}', True),
    ],
)
def test_a_log_that_begins_within_a_session_says_so(tmp_path, first, complete):
    """A rotated file; a session of 2026-07-28 has no handshake."""
    _, [capture] = brought(
        tmp_path, server_log(f"Message from client: {first}", f"Message from server: {PONG.decode()}")
    )
    gap = [] if complete else ["0 gap 1 the log does not have the beginning of this session"]
    assert told(capture) == [*gap, f"0 client stdin {first}", f"1 server stdout {PONG.decode()}"]
