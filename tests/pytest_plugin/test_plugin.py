"""The plugin in a pytest of its own, with captures beside the tests."""

import sys
from pathlib import Path

import pytest

from mcpspy.capture.copies import GZIP
from mcpspy.replay.script import script_of
from tests.cli.test_replay import SESSION
from tests.peers import prepare
from tests.peers.serving import serving
from tests.replay.scripts import SERVER
from tests.replay.webs import served
from tests.timelines import CAPTURES
from tests.transcript import capture

CLIENT = """
import json, subprocess

SERVER = {server!r}

def call(number, city):
    params = {{"name": "get_forecast", "arguments": {{"city": city}}}}
    return {{"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}}

def ask(command, *cities):
    lines = [call(number, city) for number, city in enumerate(cities)]
    said = "".join(json.dumps(line) + "\\n" for line in lines)
    done = subprocess.run(command, input=said, capture_output=True, text=True, timeout=120)
    return [json.loads(line)["result"]["content"][0]["text"] for line in done.stdout.splitlines() if "result" in line]
"""


@pytest.fixture
def suite(tmp_path, monkeypatch, capsys):
    """Run a test file in a pytest with the plugin and return its exit status and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the file is replaced within a second

    def run(body, *options, ci=False):
        source = CLIENT.format(server=list(SERVER)) + body
        (tmp_path / "test_weather.py").write_text(source, encoding="utf-8")
        monkeypatch.delenv("CI", raising=False)
        if ci:
            monkeypatch.setenv("CI", "true")
        sys.modules.pop("test_weather", None)
        status = pytest.main([*OPTIONS, f"--basetemp={tmp_path}/.base", *options, "test_weather.py"])
        told = capsys.readouterr()
        return status, told.out + told.err

    return run


OPTIONS = (
    "-q -p mcpspy.pytest_plugin.plugin --import-mode=importlib --capture=sys --rootdir=. -c /dev/null"
    " -p no:cacheprovider -p no:faulthandler -p no:unraisableexception -p no:threadexception"
).split()
"""Run in this process, and leave its hooks alone."""


def asked(path):
    """Return the cities that a session has requested."""
    turns = script_of(str(path)).turns
    return [turn.params["arguments"]["city"] for turn in turns if turn.method == "tools/call"]


MOCK = """
def test_forecast(mcp_mock):
    assert ask(mcp_mock("weather.jsonl", SERVER), "Oslo") == ["12 °C, light rain"]
"""
MORE = MOCK.replace('"Oslo")', '"Oslo", "Bergen")').replace('rain"]', 'rain", "9 °C, rain"]')


def test_a_capture_serves_a_client_and_what_it_lacks_fails_the_test(suite, tmp_path):
    capture(tmp_path / "weather.jsonl", SESSION)
    code, out = suite(MOCK, ci=True)
    assert code == 0, out
    code, out = suite(MOCK.replace('"Oslo") == ["12 °C, light rain"]', '"Paris") == []'), ci=True)
    assert code == 1
    assert "the client differs from the capture:" in out
    assert 'with "Oslo" at /params/arguments/city instead of "Paris"' in out


def test_a_capture_is_recorded_once_and_never_in_ci_or_without_a_server(suite, tmp_path):
    path = tmp_path / "weather.jsonl"
    for body, ci, told in (
        (MOCK, True, "--mcpspy-record=none records nothing"),
        (MOCK.replace(", SERVER", ""), False, "names no server to record"),
    ):
        code, out = suite(body, ci=ci)
        assert (code, told in out, path.exists()) == (1, True, False)
    assert suite(MOCK)[0] == 0
    assert asked(path) == ["Oslo"]
    code, out = suite(MORE)
    assert (code, "was not recorded" in out) == (1, True)
    assert asked(path) == ["Oslo"]


def test_a_capture_whose_name_says_so_is_compressed(suite, tmp_path):
    path = tmp_path / "weather.jsonl.gz"
    body = MORE.replace("weather.jsonl", "weather.jsonl.gz")
    for options in ((), (), ("--mcpspy-record", "all")):
        assert suite(body, *options)[0] == 0
        assert path.read_bytes().startswith(GZIP)
        assert asked(path) == ["Oslo", "Bergen"]


def test_new_requests_make_a_new_capture_and_old_ones_do_not(suite, tmp_path):
    path = Path(tmp_path / "weather.jsonl")
    assert suite(MORE)[0] == 0
    before = path.read_bytes()
    assert suite(MOCK, "--mcpspy-record", "new")[0] == 0
    assert path.read_bytes() == before
    assert suite(MOCK, "--mcpspy-record", "all")[0] == 0
    assert asked(path) == ["Oslo"]
    assert suite(MORE, "--mcpspy-record", "new")[0] == 0
    assert asked(path) == ["Oslo", "Bergen"]


def test_a_request_that_differs_where_it_may_is_not_new(suite, tmp_path):
    path = Path(tmp_path / "weather.jsonl")
    assert suite(MOCK)[0] == 0
    before = path.read_bytes()
    (tmp_path / "weather.replay.toml").write_text("[is]\n'/params/arguments/city' = 'any'\n")
    assert suite(MORE, "--mcpspy-record", "new")[0] == 0
    assert path.read_bytes() == before


OVER_HTTP = """
import http.client
from urllib.parse import urlsplit

def post(url, message):
    there = urlsplit(url)
    connection = http.client.HTTPConnection(there.hostname, there.port, timeout=120)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", there.path, json.dumps(message), headers)
    text = connection.getresponse().read().decode()
    connection.close()
    return json.loads(text)

def forecasts(url, *cities):
    found = [post(url, call(number, city)) for number, city in enumerate(cities)]
    return [it["result"]["content"][0]["text"] for it in found if "result" in it]
"""
MOCK_URL = """
def test_forecast(mcp_mock_url):
    assert forecasts(mcp_mock_url("weather.jsonl", {url!r}), {cities}) == [{texts}]
"""


def over_http(url, *cities):
    """Return the source of a test with a client over HTTP that requests these cities."""
    known = {"Oslo": "12 °C, light rain", "Bergen": "9 °C, rain"}
    texts = ", ".join(repr(known[city]) for city in cities if city in known)
    return OVER_HTTP + MOCK_URL.format(url=url, cities=", ".join(map(repr, cities)), texts=texts)


def test_a_capture_serves_a_client_over_http_and_what_it_lacks_fails_the_test(suite, tmp_path):
    capture(tmp_path / "weather.jsonl", SESSION)
    code, out = suite(over_http("", "Oslo", "Bergen"), ci=True)
    assert code == 0, out
    code, out = suite(over_http("", "Paris"), ci=True)
    assert code == 1
    assert 'with "Oslo" at /params/arguments/city instead of "Paris"' in out
    code, out = suite(over_http("", "Oslo").replace("weather.jsonl", "none.jsonl"), ci=True)
    assert (code, "--mcpspy-record=none records nothing" in out) == (1, True)


@pytest.mark.field
def test_a_capture_is_recorded_once_over_http(suite, tmp_path):
    with served(capture(tmp_path / "server.jsonl", SESSION)) as server:
        code, out = suite(over_http(server.url, "Oslo"))
        assert code == 0, out
        assert asked(tmp_path / "weather.jsonl") == ["Oslo"]
        assert suite(over_http(server.url, "Oslo", "Bergen"))[0] == 1
        assert suite(over_http(server.url, "Oslo", "Bergen"), "--mcpspy-record", "new")[0] == 0
    assert asked(tmp_path / "weather.jsonl") == ["Oslo", "Bergen"]
    assert suite(over_http("", "Oslo", "Bergen"), ci=True)[0] == 0


ALL_USED = """
def test_stdio(mcp_mock):
    command = mcp_mock("weather.jsonl", SERVER, "--all-used", "--is", "/params/arguments/city=any")
    ask(command, {cities})

def test_http(mcp_mock_url):
    forecasts(mcp_mock_url("weather.jsonl", "", "--all-used", "--is", "/params/arguments/city=any"), {cities})

def test_nothing(mcp_mock):
    mcp_mock("weather.jsonl", SERVER, "--all-used")
"""


def test_options_of_a_mock_can_be_given_and_what_is_unused_fails_the_test(suite, tmp_path):
    calls = [it for it in SESSION.splitlines() if '"id":2' not in it and '"id":4' not in it]
    capture(tmp_path / "weather.jsonl", "\n".join(calls))
    source = OVER_HTTP + ALL_USED
    code, out = suite(source.replace("{cities}", "'Paris', 'Rome'"), ci=True)
    assert (code, "3 passed, 1 error" in out) == (1, True), out
    assert "no client started the server of" in out
    code, out = suite(source.replace("{cities}", "'Paris'"), ci=True)
    assert "tools/call get_forecast (#10) was recorded, but not requested" in out
    assert "3 passed, 3 errors" in out


REPLAY = """
def test_server(mcp_replay):
    report = mcp_replay("weather.jsonl", [*SERVER, "none"])
    assert report["totals"]["same"] == 5
"""


def test_a_capture_tests_a_server(suite, tmp_path):
    path = capture(tmp_path / "weather.jsonl", SESSION)
    code, out = suite(REPLAY)
    assert code == 0, out
    code, out = suite(REPLAY.replace('"none"', '"result"'))
    assert code == 1
    for told in ("✗ #10 tools/call get_forecast: changed", "/result/content/0/text", "light rain", "sun"):
        assert told in out
    assert "5 comparisons: 4 same, 1 changed" in out
    before = Path(path).read_bytes()
    assert suite(REPLAY.replace('"none"', '"result"'), "--mcpspy-record", "all")[0] == 1, "4 are the same"
    assert Path(path).read_bytes() != before


def test_a_server_that_cannot_be_started_or_reached_fails_the_test(suite, tmp_path):
    code, out = suite(over_http("weather", "Oslo"))
    assert (code, "is not a URL, such as" in out) == (1, True)
    capture(tmp_path / "weather.jsonl", SESSION)
    code, out = suite(REPLAY.replace('[*SERVER, "none"]', '["/nowhere"]'))
    assert (code, "cannot start '/nowhere': not found" in out) == (1, True)


def test_a_capture_of_this_project_tests_its_server_and_its_client(suite):
    capture, field = str(CAPTURES / "field-stdio.jsonl"), prepare.HERE + "/field"
    body = f"""
def test_server(mcp_replay):
    assert mcp_replay({capture!r}, ["python3", "{field}/server.py"])["totals"]["same"] == 17

def test_client(mcp_mock):
    client = ["python3", "{field}/client.py", "--", *mcp_mock({capture!r})]
    assert subprocess.run(client, timeout=120).returncode == 0
"""
    code, out = suite(body.replace("python3", sys.executable), ci=True)
    assert code == 0, out


def test_a_capture_of_this_project_tests_its_server_and_its_client_over_http(suite):
    path, client = str(CAPTURES / "field-sse.jsonl"), list(map(str, prepare.mem0("URL")))
    with serving("mem0", "sse") as url:
        body = f"""
def test_server(mcp_replay):
    assert mcp_replay({path!r}, {url!r})["totals"]["same"] >= 3

def test_client(mcp_mock_url):
    url = mcp_mock_url({path!r})
    client = [url if word == "URL" else word for word in {client!r}]
    assert subprocess.run(client, timeout=120).returncode == 0
"""
        code, out = suite(body, ci=True)
    assert code == 0, out


FAULTS = """
from pathlib import Path

GATES = '''
[[gate]]
name = "no rain"
when = "from:client name:get_forecast"
answer = { error = { code = -1, message = "no rain" } }
times = 1
'''

def test_faults(mcp_faults):
    server = mcp_faults(SERVER, GATES)
    assert ask(server, "Oslo", "Bergen") == ["9 °C, rain"]
    assert '"by":"gate no rain"' in server.capture.read_text(encoding="utf-8")
    Path(__file__).with_name("gates.toml").write_text(GATES.replace("times = 1", ""))
    other = mcp_faults(SERVER, Path("gates.toml"))
    assert ask(other, "Oslo", "Bergen") == []
    assert other.capture != server.capture
"""


def test_a_client_is_tested_with_a_faulty_server_and_a_mistake_in_gates_has_its_line(suite):
    code, out = suite(FAULTS, ci=True)
    assert code == 0, out
    code, out = suite(FAULTS.replace("answer =", "anser ="), ci=True)
    assert code == 1
    assert "mcpspy-gates-1.toml:5:1: a gate has no key \"anser\"; did you mean 'answer'?" in out


EXPECTING = """
def test_a_session(mcp_session):
    assert ask(mcp_session(SERVER), "Oslo", "Bergen")
    mcp_session.expect(tool="get_forecast", times=2, arguments={arguments})
    mcp_session.expect(no_errors=True, max_duration="60s")
    assert len(mcp_session.captures) == 1
"""


def test_a_session_passes_as_expected_and_fails_with_what_was_seen(suite):
    status, out = suite(EXPECTING.replace("{arguments}", "None").replace(", arguments=None", ""))
    assert status == 0, out
    status, out = suite(EXPECTING.replace("{arguments}", '{"city": "Oslo"}'))
    assert status == 1, out
    assert 'expected that get_forecast with /city "Oslo" is called 2 times; there was 1 call; ' in out
    assert 'has /city "Bergen"' in out


def test_a_mistake_and_a_session_that_nobody_started_are_told(suite):
    status, out = suite("def test_a(mcp_session):\n    mcp_session.expect(tool='a')\n")
    assert status == 1
    assert "no session was recorded: start the command that mcp_session(command) returns" in out
