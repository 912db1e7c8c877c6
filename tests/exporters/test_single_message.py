"""Exports are executed: curl sends the request to a server, a shell splits the words, Python makes the call."""

import contextlib
import http.server
import json
import os
import shlex
import subprocess
import sys
import threading
import types

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mcpspy.capture.records import Frame, Header, Open
from mcpspy.errors import UsageError
from mcpspy.exporters import single_message
from tests.limits import LIMIT
from tests.optional import require, require_peers
from tests.peers import prepare
from tests.peers.serving import run as run_peer
from tests.peers.serving import serving
from tests.test_text import unsafe
from tests.transcript import OPENS, rows

STDIO = Header("9f2c", "2026-11-20T19:15:00.123456Z", "mcpspy 0.1.0", "stdio", "weather", ("uv", "run", "server.py"))
CALL = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 2, "b": 3}}}
HEADERS = [
    ["host", "127.0.0.1:1"],
    ["Content-Type", "application/json"],
    ["Content-Length", "7"],
    ["X-Mine", "a 'b' $c"],
]

EVIL = st.text(
    st.characters(exclude_categories=["Cs"])
    | st.sampled_from("'\"\\`$;&|<>(){}[]*?!#~=%@- \n\r\t\0\x1b\x7f\x9b\u202e\u2028\u2800'\"\\`$"),
    max_size=30,
)


def web(url="http://127.0.0.1:3000/mcp"):
    return Header("9f2c", STDIO.started, STDIO.tool, "http", "weather", url=url)


def row(message, sender="client", raw=None):
    """Return the only row of a message."""
    frame = Frame(7, 1 if sender == "client" else 2, 0, raw if raw is not None else json.dumps(message).encode())
    (found,) = rows([*OPENS, frame])
    return found


def opened(headers=HEADERS, target="/mcp", **more):
    head = {"method": "POST", "target": target, "version": "1.1", "headers": headers}
    return Open(6, 6, 0, "client", "request", "body", head=head, **more)


# curl


@pytest.fixture
def server():
    """A server on loopback that keeps the requests it receives: its URL, and the list of requests."""
    require("curl")
    asked = []

    class Remember(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.command, self.path, self.headers, body))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *arguments):
            pass

    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Remember)
    thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_port}", asked
    serving.shutdown()
    thread.join(LIMIT)
    serving.server_close()


def shell(command, **options):
    """Run a command in a POSIX shell and return its output; curl must print no error."""
    run = subprocess.run(["sh"], input=command.encode(), capture_output=True, timeout=LIMIT, check=True, **options)
    assert run.stderr == b"" or "curl:" not in run.stderr.decode(errors="replace"), run.stderr
    return run.stdout


def words(command):
    """Return the arguments that a shell passes to `curl`."""
    found = shell(f"curl() {{ for word; do printf '%s\\0' \"$word\"; done; }}\n{command}")
    return found.decode().split("\0")[:-1]


def test_curl_asks_what_was_asked(server):
    url, asked = server
    sent = {"target": "/rest[1]?a={b,c}", "headers": [["x-mine", "other; rm -rf /"]]}
    command = single_message.curl(web(f"{url}/mcp"), row(CALL), opened(sent=sent, by="host"))
    answer = shell(command, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "NO_PROXY": "*"})
    assert answer.endswith(b"{}")
    ((method, path, headers, body),) = asked
    assert (method, path, json.loads(body)) == ("POST", "/rest[1]?a={b,c}", CALL)
    assert headers["X-Mine"] == "other; rm -rf /", "what was forwarded, not what came"
    assert headers["Host"] == url.removeprefix("http://")
    assert headers["Content-Type"] == "application/json"
    assert int(headers["Content-Length"]) == len(body)


def test_curl_takes_no_text_for_the_name_of_a_file(server):
    """`--data @FILE` and `--header @FILE` would send files of the user."""
    url, asked = server
    found = row(None, raw=b"@/etc/passwd")
    shell(single_message.curl(web(url), found, opened([["@/etc/passwd", "x"], ["x", "@/etc/passwd"]])))
    ((_, _, headers, body),) = asked
    assert body == b"@/etc/passwd"
    assert headers["x"] == "@/etc/passwd"
    assert "@/etc/passwd" not in headers


@given(name=EVIL, value=EVIL, key=EVIL, target=EVIL)
@settings(max_examples=60, deadline=None)
def test_no_text_leaves_its_word(name, value, key, target):
    """A shell receives a command of fixed form, whatever the names of tools, arguments, headers and targets are."""
    message = {"id": 1, "method": "tools/call", "params": {"name": name, "arguments": {key: value}}}
    found = row(message, raw=json.dumps(message, ensure_ascii=False).encode())
    channel = opened([[name, value], ["x-mine", value]], f"/{target}")
    try:
        command = single_message.curl(web(), found, channel)
    except UsageError:  # the target is invalid
        channel = opened([[name, value], ["x-mine", value]])
        command = single_message.curl(web(), found, channel)
    assert not unsafe(command.replace("\n", ""))
    got = words(command)
    assert got[:3] == ["--globoff", "--path-as-is", "--no-buffer"]
    assert got[4:6] == ["--request", "POST"]
    assert got[6] == "--url"
    assert got[7].startswith("http://127.0.0.1:3000/")
    assert all(option == "--header" for option in got[8:-2:2])
    assert got[-2] == "--data-raw"
    assert json.loads(got[-1]) == message
    assume(" \\\n" not in "".join(got))
    assert shlex.split(command.replace(" \\\n", " ")) == ["curl", *got]


def test_what_was_redacted_stays_so_and_is_named():
    mark = "«redacted:4b1374d6»"
    headers = [["Authorization", f"Bearer {mark}"], ["X-Api-Key", mark], ["accept", "*/*"]]
    command = single_message.curl(web(), row(CALL), opened(headers, f"/mcp?token={mark}"))
    first, *_ = command.split("\n")
    assert first == "# Fill in what was redacted in the capture: Authorization, X-Api-Key, the URL"
    assert f"Authorization: Bearer {mark}" in words(command)
    assert "#" not in single_message.curl(web(), row(CALL), opened())
    for form in (b"code=%s" % mark.encode(), "«withheld: 1234 bytes»".encode()):
        login = single_message.curl(web(), row(None, raw=form), opened())
        assert login.startswith("# Fill in what was redacted in the capture: the body\n")


def test_headers_of_the_hop_are_left_to_curl():
    headers = [["Host", "a"], ["Connection", "close"], ["Transfer-Encoding", "chunked"]]
    headers += [["Accept-Encoding", "br"], ["Content-Encoding", "gzip"]]  # the body is recorded without its coding
    assert "--header" not in words(single_message.curl(web(), row(CALL), opened(headers)))


def test_a_dropped_header_is_not_sent_and_an_empty_one_is():
    sent = {"headers": [["X-Gone", None]]}
    got = words(
        single_message.curl(web(), row(CALL), opened([["X-Gone", "a"], ["X-Empty", ""]], sent=sent, by="encoding"))
    )
    assert got.count("--header") == 1
    assert "X-Empty;" in got


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"opened": None}, "came over http, not in an HTTP request"),
        ({"header": web("file:///etc/passwd")}, "not a URL that a command line can request"),
        ({"opened": opened(target="/a b")}, "not a URL that a command line can request"),
        ({"row": row(CALL, raw=b"\xff\xfe")}, "is not text"),
        ({"row": row(CALL, raw=b'{"id":1,"method":"' + b"x" * 200_000 + b'"}')}, "too large for a command line"),
        ({"row": row(CALL, "server")}, "sent by the server"),
    ],
)
def test_what_no_command_line_can_send_says_so(change, why):
    asked = {"header": web(), "row": row(CALL), "opened": opened()} | change
    with pytest.raises(UsageError, match=why):
        single_message.curl(**asked)


def test_a_target_with_an_origin_is_asked_for_at_the_upstream():
    assert "http://127.0.0.1:3000/a?b=c" in words(
        single_message.curl(web(), row(CALL), opened(target="http://x.test/a?b=c"))
    )


# Python


def played(program):
    """Run a program with a stub in place of the SDK; return the calls with their arguments."""
    calls = []

    class Client:
        def __init__(self, server):
            calls.append(("server", server))

        async def __aenter__(self):
            return self

        async def __aexit__(self, *arguments):
            pass

        def __getattr__(self, name):
            async def call(*arguments, **options):
                calls.append((name, *arguments, *([options] if options else [])))

            return calls.append((name,)) if name == "server_info" else call

    def kept(name):
        return lambda *arguments, **options: (name, *arguments, *([options] if options else []))

    stubs = {
        "mcp": {"Client": Client, "StdioServerParameters": kept("stdio")},
        "mcp.client": {},
        "mcp.client.sse": {"sse_client": kept("sse")},
        "mcp.client.streamable_http": {"streamable_http_client": kept("http")},
        "httpx2": {"AsyncClient": kept("client")},
    }
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(None):
        for name, members in stubs.items():
            module = types.ModuleType(name)
            vars(module).update(members)
            patch.setitem(sys.modules, name, module)
        exec(compile(program, "program", "exec"), {})  # noqa: S102 (the program is under test)
    return calls


@pytest.mark.parametrize(
    ("method", "params", "call"),
    [
        ("tools/call", {"name": "add", "arguments": {"a": 1.5, "b": [None, True]}},
         ("call_tool", "add", {"a": 1.5, "b": [None, True]})),
        ("tools/call", {"name": "now"}, ("call_tool", "now")),
        ("tools/list", None, ("list_tools",)),
        ("tools/list", {"cursor": "x"}, ("list_tools", {"cursor": "x"})),
        ("prompts/get", {"name": "p", "arguments": {"q": "r"}}, ("get_prompt", "p", {"q": "r"})),
        ("prompts/list", {}, ("list_prompts",)),
        ("resources/read", {"uri": "file:///a"}, ("read_resource", "file:///a")),
        ("resources/list", {}, ("list_resources",)),
        ("resources/templates/list", {}, ("list_resource_templates",)),
        ("resources/subscribe", {"uri": "u"}, ("subscribe_resource", "u")),
        ("resources/unsubscribe", {"uri": "u"}, ("unsubscribe_resource", "u")),
        ("logging/setLevel", {"level": "info"}, ("set_logging_level", "info")),
        ("ping", None, ("send_ping",)),
        ("initialize", {"protocolVersion": "2025-06-18"}, ("server_info",)),
        ("server/discover", {}, ("server_info",)),
    ],
)  # fmt: skip
def test_each_request_is_a_call_of_the_sdk(method, params, call):
    message = {"id": 1, "method": method} | ({} if params is None else {"params": params})
    server, made = played(single_message.python(STDIO, row(message), None))
    assert server == ("server", ("stdio", {"command": "uv", "args": ["run", "server.py"]}))
    assert made == call


VALUE = st.recursive(
    EVIL | st.floats(allow_nan=False) | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner) | st.dictionaries(EVIL, inner),
    max_leaves=5,
)


@given(name=EVIL, value=VALUE)
@settings(max_examples=100, deadline=None)
def test_no_text_leaves_its_literal(name, value):
    message = {"id": 1, "method": "tools/call", "params": {"name": name, "arguments": {"x": value}}}
    header = Header("1", STDIO.started, "t", "stdio", name, (name, "'''", name), cwd=name)
    program = single_message.python(header, row(message), None)
    assert all(line.isprintable() for line in program.split("\n"))
    (_, (_, options)), made = played(program)
    assert (options["command"], options["args"]) == (name, ["'''", name])
    assert made == ("call_tool", name, {"x": value})


def test_over_http_the_sdk_gets_the_url_and_the_headers_that_it_cannot_know():
    mark = "«redacted:4b1374d6»"
    headers = [*HEADERS, ["Authorization", f"Bearer {mark}"], ["mcp-session-id", "s"]]
    program = single_message.python(web(), row(CALL), opened(headers))
    assert "# Fill in what was redacted in the capture: Authorization\n" in program
    client = ("client", {"headers": {"X-Mine": "a 'b' $c", "Authorization": f"Bearer {mark}"}})
    assert played(program)[0] == ("server", ("http", "http://127.0.0.1:3000/mcp", {"http_client": client}))


def test_over_http_without_such_headers_the_url_is_enough():
    assert played(single_message.python(web(), row(CALL), opened(HEADERS[:3])))[0] == (
        "server",
        "http://127.0.0.1:3000/mcp",
    )


def test_over_http_with_sse_the_url_is_that_of_the_stream():
    program = single_message.python(
        web("http://127.0.0.1:1/sse"), row(CALL), opened(HEADERS[:3], "/messages/?session_id=1")
    )
    assert played(program)[0] == ("server", ("sse", "http://127.0.0.1:1/sse"))


def test_a_redacted_word_of_the_command_is_named():
    header = Header("1", STDIO.started, "t", "stdio", "n", ("npx", "--token", "«redacted:4b1374d6»"))
    assert "redacted in the capture: the command\n" in single_message.python(header, row(CALL), None)


def test_numbers_that_python_has_no_literal_for():
    raw = b'{"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1e999,-1e999,NaN]}}}'
    (_, arguments) = played(single_message.python(STDIO, row(None, raw=raw), None))[1][1:]
    assert str(arguments["x"]) == "[inf, -inf, nan]"


@pytest.mark.parametrize(
    ("message", "sender", "why"),
    [
        (
            {"id": 1, "method": "tools/call", "params": {"name": 5}},
            "client",
            "the params of #7 are not those of tools/call",
        ),
        ({"id": 1, "method": "tools/call", "params": []}, "client", "are not those of"),
        ({"id": 1, "method": "tasks/\x1b"}, "client", r"no call for tasks/\\e"),
        ({"method": "notifications/initialized"}, "client", "not a request of a client"),
        ({"id": 1, "method": "roots/list"}, "server", "not a request of a client"),
        (
            CALL | {"params": {"name": "a", "arguments": json.loads("[" * 300 + "]" * 300)}},
            "client",
            "cannot be written",
        ),
    ],
)
def test_what_is_no_call_of_the_sdk_says_so(message, sender, why):
    with pytest.raises(UsageError, match=why):
        single_message.python(STDIO, row(message, sender), None)


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
def test_the_real_sdk_runs_the_program(transport, tmp_path):
    require_peers("python1", "python2")
    with contextlib.ExitStack() as stack:
        if transport == "stdio":
            header = Header("1", STDIO.started, "t", "stdio", "n", tuple(prepare.server("python1")), cwd=str(tmp_path))
            channel = None
        else:
            url = stack.enter_context(serving("python1", transport))
            header = web(url)
            headers = [["X-Mine", "a"]] if transport == "http" else []
            channel = opened(headers, "/mcp" if transport == "http" else "/messages/?session_id=1")
        program = tmp_path / "program.py"
        program.write_text(single_message.python(header, row(CALL), channel), encoding="utf-8")
        run = run_peer([prepare.python("python2"), str(program)])
    assert run.returncode == 0, run.stderr
    assert '{"sum":5}' in run.stdout


# JSON


def test_a_message_is_copied_as_it_was_written_and_on_one_line():
    assert single_message.as_json(row(None, raw=b'{"id":1.10,\r\n "method":"x"}\r')) == '{"id":1.10,   "method":"x"} '


def test_what_is_not_seen_is_escaped_so_that_it_says_the_same():
    raw = '{"method":"a\u202e\x7f\U000e0041\u2028b","日本":"é"}'
    text = single_message.as_json(row(None, raw=raw.encode()))
    assert text.isprintable()
    assert "日本" in text
    assert json.loads(text) == json.loads(raw)


def test_what_is_no_json_is_escaped_as_text():
    assert single_message.as_json(row(None, raw=b"\x1b[201~rm -rf /\r")) == "\\e[201~rm -rf /\\r"


def test_what_is_not_all_there_is_not_copied():
    found = row(CALL)
    found.size += 1
    for make in (
        single_message.as_json,
        lambda it: single_message.python(STDIO, it, None),
        lambda it: single_message.curl(web(), it, opened()),
    ):
        with pytest.raises(UsageError, match="too large"):
            make(found)


# Files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_frame_is_saved_byte_for_byte_for_its_owner_alone(folder):
    raw = bytes(range(256)) + b"\r\n"
    single_message.save([raw], "frame-7.json")
    assert (folder / "frame-7.json").read_bytes() == raw
    assert os.name == "nt" or (folder / "frame-7.json").stat().st_mode & 0o777 == 0o600


def test_nothing_is_overwritten_and_a_free_name_is_told(folder):
    for name in ("a.json", "a-2.json"):
        single_message.save([b"first"], name)
    (folder / "link").symlink_to(folder / "nowhere")
    with pytest.raises(UsageError, match=r"the file exists, a-3\.json is free: 'a\.json'"):
        single_message.save([b"second"], "a.json")
    with pytest.raises(UsageError, match="the file exists, link-2 is free"):
        single_message.save([b"second"], "link")
    assert (folder / "a.json").read_bytes() == b"first"
    assert not (folder / "nowhere").exists()


@pytest.mark.parametrize("name", ["", " ", ".", "..", "../a", "/etc/a", "a/b", "a\0b", "x" * 300])
def test_a_name_that_is_none_is_refused(name, folder):
    with pytest.raises(UsageError):
        single_message.save([b""], name)
    assert list(folder.iterdir()) == []


def test_the_reason_stands_before_a_long_name(folder):
    with pytest.raises(UsageError, match=r"^cannot be created, [^']+: 'xxx"):
        single_message.save([b""], "x" * 300)


@pytest.mark.skipif(os.name == "nt", reason="needs a limit for the size of files")
def test_what_cannot_be_written_whole_is_no_file_and_says_why(folder):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, hard))
    try:
        with pytest.raises(UsageError, match=r"^cannot be written, File too large: 'a\.json'"):
            single_message.save([b"123456789"], "a.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(folder.iterdir()) == []
