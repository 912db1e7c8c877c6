import json
import os
import subprocess
import sys

import pytest

from tests.cli.conftest import refusal
from tests.importers.files import PING, brought, dumps, entry, fixture, flow, har
from tests.limits import LIMIT


@pytest.fixture
def weather(tmp_path):
    path = tmp_path / "weather.mitm"
    path.write_bytes(fixture("weather.mitm"))
    return str(path)


def test_it_prints_where_the_captures_lie_and_the_other_commands_read_them(home, mcpspy, weather):
    status, out, err = mcpspy("import", weather)
    assert (status, err) == (0, "")
    [path] = out.splitlines()
    assert os.path.dirname(path) == str(home / ".mcpspy" / "captures")
    status, out, err = mcpspy("show", "--json", path)
    rows = [json.loads(line) for line in out.splitlines()]
    call = next(row for row in rows if row.get("method") == "tools/call")
    assert (status, call["status"], call["revision"], call["session"]) == (0, "ok", "2025-06-18", "0f3c")
    assert mcpspy("check", path)[0] == 0
    assert mcpspy("diff", path, path)[0] == 0
    assert [json.loads(line)["exchanges"] for line in mcpspy("ls", "--json")[1].splitlines()] == [3]


def test_the_captures_go_where_the_user_says(tmp_path, mcpspy, weather):
    status, out, err = mcpspy("import", weather, "--capture-dir", str(tmp_path / "mine"))
    assert (status, err) == (0, "")
    [path] = out.splitlines()
    assert os.path.dirname(path) == str(tmp_path / "mine")
    (tmp_path / "file").write_text("")
    status, out, err = mcpspy("import", "--capture-dir", str(tmp_path / "file"), weather)
    assert (status, out, err) == (2, "", f"mcpspy: cannot write a capture to {tmp_path}/file: File exists\n")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("weather.mitm", "imported from a flow file of mitmproxy · approximate: times of events"),
        ("weather.har", "imported from a HAR · approximate: times of events, bytes"),
        ("mcp.log", "imported from a log of Claude Desktop · approximate: times of stderr, bytes · missing: argv"),
    ],
)
def test_a_timeline_says_what_it_was_imported_from_and_what_is_not_as_it_was(tmp_path, mcpspy, name, line):
    log = b'2025-06-27T07:58:07.000Z [info] [weather] Message from client: {"jsonrpc":"2.0","method":"x"}\n'
    (tmp_path / name).write_bytes(log if name == "mcp.log" else fixture(name))
    [path] = mcpspy("import", str(tmp_path / name))[1].splitlines()
    assert mcpspy("show", path)[1].splitlines()[2] == line


def test_an_imported_capture_is_a_mock_server(home, mcpspy, weather):
    [path] = mcpspy("import", weather)[1].splitlines()
    script = "import sys; from mcpspy.cli import main; sys.argv = ['mcpspy', 'mock', sys.argv[1]]; sys.exit(main())"
    command = [sys.executable, "-c", script, path]
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "sample", "version": "1"}}
    asked = [
        {"jsonrpc": "2.0", "id": 10, "method": "initialize", "params": first},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 11, "method": "tools/list"},
    ]
    lines = "".join(json.dumps(message) + "\n" for message in asked)
    run = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=LIMIT, check=False)
    answers = {answer["id"]: answer for answer in map(json.loads, run.stdout.splitlines())}
    assert answers[11]["result"]["tools"][0]["name"] == "forecast"


def test_what_is_damaged_is_counted_and_the_rest_imported(tmp_path, mcpspy):
    (tmp_path / "a.har").write_bytes(har(entry(), {}, entry()))
    status, out, err = mcpspy("import", str(tmp_path / "a.har"))
    assert (status, len(out.splitlines())) == (0, 1)
    assert err == f"mcpspy: {tmp_path}/a.har has 3 requests, 1 of them damaged and left out\n"


def test_a_torn_file_is_an_error_after_what_stood_before(tmp_path, mcpspy):
    (tmp_path / "a.mitm").write_bytes(dumps(flow()) + dumps(flow())[:-9])
    status, out, err = mcpspy("import", str(tmp_path / "a.mitm"))
    assert (status, len(out.splitlines())) == (2, 1)
    why = "it ends inside flow 2: 9 bytes are missing; everything before that is imported"
    assert err == f"mcpspy: {tmp_path}/a.mitm cannot be read to its end: {why}\n"


def test_a_file_without_mcp_says_so(tmp_path, mcpspy):
    (tmp_path / "a.har").write_bytes(har(entry(b"", b"")))
    status, out, err = mcpspy("import", str(tmp_path / "a.har"))
    assert (status, out, err) == (2, "", f"mcpspy: nothing in {tmp_path}/a.har (1 request) is MCP\n")


def test_another_file_is_one_line(tmp_path, mcpspy):
    (tmp_path / "a.txt").write_text("hello")
    assert "has no format that can be imported" in refusal(mcpspy("import", str(tmp_path / "a.txt")))


@pytest.mark.skipif(sys.platform != "linux", reason="an address space is limited there")
def test_a_large_file_takes_little_memory(tmp_path):
    """It imports 60 MB of flows in an address space of 250 MB, most of which the interpreter needs."""
    path = tmp_path / "large.mitm"
    answer = b'{"jsonrpc":"2.0","x":"' + b"y" * 1_000_000 + b'"}'
    with open(path, "wb") as file:
        file.writelines(dumps(flow(PING, answer, at=1773741600.0 + number)) for number in range(60))
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (250_000_000,) * 2)\n"
        "from mcpspy.importers.forms import bring\n"
        f"account = bring({str(path)!r}, {{'MCPSPY_CAPTURE_DIR': {str(tmp_path / 'captures')!r}}})\n"
        "print(account.read, account.lost, len(account.paths), account.fault)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (run.stdout.strip(), run.stderr) == ("60 0 1", "")
    assert os.path.getsize(tmp_path / "captures" / os.listdir(tmp_path / "captures")[0]) > 60_000_000


def test_it_imports_no_mitmproxy(tmp_path):
    """I-01."""
    script = "import sys; import mcpspy.importers.forms; print('mitmproxy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert run.stdout == "False\n"
    assert brought(tmp_path, fixture("weather.mitm"))[1]
