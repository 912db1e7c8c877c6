"""The weather server follows the specification, except for two deliberate faults, whatever a client sends."""

import json
import subprocess
import sys

import jsonschema_rs
import pytest

from mcpspy.demo.server import WeatherServer
from tests import limits
from tests.demo.official import validate
from tests.each import each
from tests.limits import LIMIT

STRAY = "Fetching forecast for Oslo…".encode()
WITH_MODEL = {"protocolVersion": "2025-11-25", "capabilities": {"sampling": {}}, "clientInfo": {}}


class Session:
    """A session with a server that neither sleeps nor logs: the calls of both are recorded."""

    def __init__(self):
        self.slept, self.logged = [], []
        self.server = WeatherServer(self.slept.append, self.logged.append)

    def send(self, line):
        """Return the lines that answer a line."""
        return list(self.server.answer(line))

    def ask(self, method, params=None, number=1):
        """Return the messages that answer a request."""
        request = {"jsonrpc": "2.0", "id": number, "method": method} | ({} if params is None else {"params": params})
        return [json.loads(line) for line in self.send(json.dumps(request).encode()) if line != STRAY]

    def call(self, name, arguments, **more):
        return self.ask("tools/call", {"name": name, "arguments": arguments} | more)

    def refusal(self, method, params=None):
        """Return the error that answers a request."""
        [answer] = self.ask(method, params)
        assert answer["id"] == 1
        return answer["error"]


@pytest.fixture
def session():
    return Session()


@pytest.fixture
def tools(session):
    [answer] = session.ask("tools/list")
    return {tool["name"]: tool for tool in answer["result"]["tools"]}


def test_it_negotiates_the_revision_that_it_speaks(session):
    [answer] = session.ask("initialize", WITH_MODEL | {"protocolVersion": "2024-11-05"})
    assert answer["result"]["protocolVersion"] == "2025-11-25"
    assert session.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}') == []


@each("number", [0, -1, 1.5, "1", "", 10**30])
def test_an_id_comes_back_as_it_was(session, number):
    [answer] = session.ask("ping", number=number)
    assert answer == {"jsonrpc": "2.0", "id": number, "result": {}}
    assert type(answer["id"]) is type(number)


def test_a_forecast_has_the_shape_that_its_tool_advertises(session, tools):
    [answer] = session.call("get_forecast", {"city": "Oslo", "days": 2})
    result = answer["result"]
    jsonschema_rs.validator_for(tools["get_forecast"]["outputSchema"]).validate(result["structuredContent"])
    assert len(result["structuredContent"]["days"]) == 2
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_a_forecast_is_announced_by_a_stray_line_on_stdout(session):
    lines = session.send(b'{"id":1,"method":"tools/call","params":{"name":"get_forecast","arguments":{"city":"Oslo"}}}')
    assert lines[0] == STRAY
    assert len(lines) == 2


def test_the_wind_is_watched_with_progress_for_those_who_want_it(session):
    arguments = {"city": "Oslo", "seconds": 2}
    *progress, answer = session.call("watch_wind", arguments, _meta={"progressToken": 7})
    assert sum(session.slept) == 2
    assert [message["params"]["progress"] for message in progress] == [1, 2, 3, 4]
    assert {message["params"]["progressToken"] for message in progress} == {7}
    assert "result" in answer
    assert len(session.call("watch_wind", arguments)) == 1


def test_a_warning_is_sent_unless_the_client_wants_only_worse(session):
    arguments = {"city": "Bergen", "seconds": 0}
    assert [message.get("method") for message in session.call("watch_wind", arguments)] == [
        "notifications/message",
        None,
    ]
    assert session.ask("logging/setLevel", {"level": "error"})[0]["result"] == {}
    assert len(session.call("watch_wind", arguments)) == 1


def test_an_unknown_city_is_an_error_of_the_tool(session):
    [answer] = session.call("get_forecast", {"city": "Atlantis"})
    assert answer["result"]["isError"] is True
    assert "Atlantis" in answer["result"]["content"][0]["text"]
    assert session.logged == ["no such city: Atlantis"]


@each(
    "name, arguments, fault",
    [
        ("get_forecast", {}, "city is missing"),
        ("get_forecast", {"city": 5}, "city must be of type string, not 5"),
        ("get_forecast", {"city": "Oslo", "days": "two"}, 'days must be of type integer, not "two"'),
        ("get_forecast", {"city": "Oslo", "days": True}, "days must be of type integer, not true"),
        ("get_forecast", {"city": "Oslo", "days": 4}, "days must be from 1 to 3, not 4"),
        ("get_forecast", {"city": "Oslo", "town": "Oslo"}, "there is no town"),
        ("get_forecast", ["Oslo"], "they must be an object"),
        ("watch_wind", {"city": "Oslo", "seconds": 1e9}, "seconds must be from 0 to 10"),
        ("watch_wind", {"city": "Oslo", "seconds": float("nan")}, "seconds must be from 0 to 10"),
    ],
)
def test_wrong_arguments_are_a_json_rpc_error_and_break_the_advertised_schema(session, tools, name, arguments, fault):
    error = session.refusal("tools/call", {"name": name, "arguments": arguments})
    assert error["code"] == -32602
    assert fault in error["message"]
    if arguments == arguments:  # noqa: PLR0124 (NaN is not JSON)
        assert not jsonschema_rs.validator_for(tools[name]["inputSchema"]).is_valid(arguments)


def test_advice_is_asked_of_the_clients_model_and_others_are_served_meanwhile(session):
    session.ask("initialize", WITH_MODEL)
    [question] = session.call("what_to_wear", {"city": "Oslo"})
    assert question["method"] == "sampling/createMessage"
    assert session.ask("ping", number=2) == [{"jsonrpc": "2.0", "id": 2, "result": {}}]
    response = {"jsonrpc": "2.0", "id": question["id"], "result": {"content": {"type": "text", "text": "A coat."}}}
    [line] = session.send(json.dumps(response).encode())
    assert json.loads(line)["id"] == 1
    assert json.loads(line)["result"]["content"][0]["text"] == "A coat."
    assert session.send(json.dumps(response).encode()) == [], "a response to no request"


@each("outcome", [{"error": {"code": -1, "message": "no"}}, {"result": 5}, {"result": {}}, {}])
def test_no_advice_is_an_error_of_the_tool(session, outcome):
    session.ask("initialize", WITH_MODEL)
    [question] = session.call("what_to_wear", {"city": "Oslo"})
    [line] = session.send(json.dumps({"id": question["id"]} | outcome).encode())
    assert json.loads(line)["result"]["isError"] is True


def test_a_client_without_a_model_is_not_asked(session):
    [answer] = session.call("what_to_wear", {"city": "Oslo"})
    assert answer["result"]["isError"] is True


@each(
    "method, params, code",
    [
        ("completion/complete", {}, -32601),
        ("server/discover", None, -32601),
        ("tools/call", {"name": "get_tide"}, -32602),
        ("tools/call", {"name": ["get_forecast"]}, -32602),
        ("tools/call", {}, -32602),
        ("ping", [], -32602),
        ("logging/setLevel", {"level": "loud"}, -32602),
        ("prompts/get", {"name": "packing_list"}, -32602),
        ("resources/read", {"uri": "weather://moon"}, -32002),
        ({"a": 1}, None, -32600),
    ],
)
def test_what_it_cannot_do_is_refused_by_the_right_code(session, method, params, code):
    assert session.refusal(method, params)["code"] == code


@each(
    "line, code",
    [
        (b"hello", -32700),
        (b"\xff", -32700),
        (b"", -32700),
        (b"[" * 100_000, -32700),
        (b"5", -32600),
        (b"{}", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    ],
)
def test_a_line_that_is_no_message_is_answered_by_an_error(session, line, code):
    [answer] = session.send(line)
    assert json.loads(answer)["error"]["code"] == code


@each("line", [b'{"id":9,"result":{}}', b'{"id":[],"result":{}}', b'{"method":"no/such"}'])
def test_what_needs_no_answer_gets_none(session, line):
    assert session.send(line) == []


def test_a_string_that_is_no_unicode_is_answered(session):
    [line] = session.send(rb'{"id":"\ud800","method":"ping"}')
    assert json.loads(line)["id"] == "?"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("initialize", WITH_MODEL),
        ("ping", None),
        ("tools/list", {}),
        ("resources/list", None),
        ("resources/templates/list", None),
        ("resources/read", {"uri": "weather://cities"}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "packing_list", "arguments": {"city": "Oslo"}}),
        ("logging/setLevel", {"level": "debug"}),
        ("tools/call", {"name": "get_forecast", "arguments": {"city": "Oslo"}}),
        ("tools/call", {"name": "get_forecast", "arguments": {"city": "Atlantis"}}),
        ("tools/call", {"name": "get_forecast", "arguments": {}}),
        ("tools/call", {"name": "what_to_wear", "arguments": {"city": "Oslo"}}),
        (
            "tools/call",
            {
                "name": "watch_wind",
                "arguments": {"city": "Bergen", "seconds": 1},
                "_meta": {"progressToken": "p"},
            },
        ),
        ("no/such", None),
    ],
)
@pytest.mark.parametrize("model", [{}, {"sampling": {}}])
def test_what_it_says_is_as_the_official_schema_says(session, method, params, model):
    session.ask("initialize", {"capabilities": model})
    answers = session.ask(method, params)
    assert answers
    for answer in answers:
        validate(answer, method)


# The process, by hand.


def test_by_hand_it_answers_line_by_line_until_its_input_ends():
    command = [sys.executable, "-m", "mcpspy.demo.server"]
    pipe = subprocess.PIPE
    with limits.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as server:
        for line, code in ((b'{"jsonrpc":"2.0","id":1,"method":"ping"}', None), (b"hello", -32700)):
            server.stdin.write(line + b"\n")
            server.stdin.flush()
            assert json.loads(server.stdout.readline()).get("error", {}).get("code") == code
        assert server.poll() is None
        out, err = server.communicate(b'{"jsonrpc":"2.0","id":2,"method":"x"}')
    assert json.loads(out)["error"]["code"] == -32601
    assert (err, server.returncode) == (b"weather: ready, with 3 cities\n", 0)


def test_it_ends_quietly_when_nobody_reads_its_answers():
    command = [sys.executable, "-m", "mcpspy.demo.server"]
    pipe = subprocess.PIPE
    with limits.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as server:
        server.stdout.close()
        server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        server.stdin.flush()
        assert server.wait(30) == 0
        assert server.stderr.read().splitlines()[1:] == [b"weather: the client does not listen any more"]


def test_it_imports_nothing_but_the_standard_library_and_little_of_that():
    """A person waits for its start."""
    program = "import sys, mcpspy.demo.client; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=LIMIT)
    found = set(run.stdout.split())
    assert not {"asyncio", "orjson", "textual", "mcp", "jsonschema", "jsonschema_rs"} & found
    ours = {name for name in found if name.startswith("mcpspy")}
    assert ours == {"mcpspy", "mcpspy.demo", "mcpspy.demo.server", "mcpspy.demo.client"}
