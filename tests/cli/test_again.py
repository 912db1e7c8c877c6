"""`mcpspy replay --only`: a request is sent again, and a capture that is not trusted starts nothing."""

import io
import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.secrets.redactor import Redactor
from tests.cli.conftest import refusal
from tests.cli.test_replay import BERGEN, OSLO, SESSION
from tests.replay.scripts import SERVER, call, result
from tests.transcript import begin, capture, finish

ROW = 10
"""The row of the call about Oslo."""
READ = "the file weather.jsonl that is read here; give another one"
STARTED = "import pathlib, sys; pathlib.Path({!r}).touch(); sys.stdin.read()"
"""A server that leaves a trace and says nothing."""


@pytest.fixture
def spy(tmp_path, monkeypatch, mcpspy):
    """Run the command line in a directory with a capture whose command answers as recorded."""
    monkeypatch.setattr("mcpspy.replay.run.LEAST", 0.5)
    monkeypatch.setattr("mcpspy.replay.run.START", 20)
    monkeypatch.setattr("mcpspy.replay.run.GRACE", 0.2)
    monkeypatch.setattr("mcpspy.transport.link.PATIENCE", 0.5)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    capture("weather.jsonl", SESSION, argv=[*SERVER, "none"], cwd=str(tmp_path), env=["PATH", "CITY_TOKEN"])
    return mcpspy


def again(spy, *options, rows=str(ROW), path="weather.jsonl"):
    return spy("replay", path, "--only", rows, *options)


def new_capture(home):
    (path,) = (home / ".mcpspy" / "captures").iterdir()
    return path


def lines_of(path):
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def changed_header(path, change):
    """Change the header of a capture with a function of its fields."""
    head, _, rest = Path(path).read_bytes().partition(b"\n")
    fields = json.loads(head)
    change(fields)
    Path(path).write_bytes(json.dumps(fields, separators=(",", ":")).encode() + b"\n" + rest)


def test_the_recorded_command_is_started_after_its_description(spy, home, tmp_path):
    code, out, err = again(spy, "--yes")
    path = new_capture(home)
    title, now, *rest = out.splitlines()
    assert (code, title) == (0, f"#{ROW} tools/call get_forecast")
    assert now.startswith("  now       answered after ")
    assert now.endswith(", as recorded")
    assert rest == ["    text: 12 °C, light rain", f"recorded in {path}"]
    assert err.splitlines() == [
        f"starts       {shlex.join([*SERVER, 'none'])}",
        f"in           {tmp_path}",
        "without      CITY_TOKEN, which it had when it was recorded",
        "sends first  #5 initialize, #7 notifications/initialized and #8 tools/list",
        f"then         #{ROW} {call(3, 'get_forecast', OSLO)}",
    ]


def test_the_new_capture_names_its_origin_and_has_a_proof_of_its_own(spy, home):
    again(spy, "--yes", rows=f"{ROW},#14")
    path = new_capture(home)
    assert lines_of(path)[0]["again"] == {
        "id": Capture("weather.jsonl").header.id,
        "file": "weather.jsonl",
        "rows": [10, 14],
    }
    sent = [json.loads(it["raw"]) for it in lines_of(path)[1:] if it.get("ch") == 1 and "raw" in it]
    assert [it.get("params", {}).get("arguments") for it in sent[-2:]] == [{"city": "Oslo"}, {"city": "Bergen"}]
    assert len(sent) == 5
    code, out, _ = spy("replay", path, "--only", "8", "--yes")
    assert (code, out.splitlines()[0]) == (0, "#8 tools/list")


def test_answers_are_shown_beside_the_recorded_ones_with_their_differences(spy):
    code, out, err = again(spy, "--", *SERVER, "error")
    assert (code, err) == (1, "")
    title, recorded, before, now, *rest = out.splitlines()
    assert (title, before) == (f"#{ROW} tools/call get_forecast", "    text: 12 °C, light rain")
    assert recorded.startswith("  recorded  answered after ")
    assert now.startswith("  now       error -32603 after ")
    assert rest[:-1] == [
        "    code: -32603",
        "    message: no such station",
        "  differences",
        "    (the whole message)",
        '      recorded  {"result":{"content":[{"type":"text","text":"12 °C, light rain"}]}}',
        '      observed  {"error":{"code":-32603,"message":"no such station"}}',
    ]


def test_a_call_that_failed_and_works_now_says_so(spy):
    text = SESSION.replace(
        result(3, "12 °C, light rain"), '{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no"}}'
    )
    capture("failed.jsonl", text)
    code, out, _ = again(spy, "--", *SERVER, "none", path="failed.jsonl")
    assert code == 1
    assert "  recorded  error -1 after " in out
    assert "; in the capture it failed\n" in out


def test_a_server_that_ends_is_told_with_its_stderr(spy):
    server = [sys.executable, "-c", "import sys; print('no \x1b[2Jkey', file=sys.stderr); sys.exit(3)"]
    code, out, _ = again(spy, "--", *server)
    assert code == 1
    assert "  now       no answer: not sent: the server exited with code 3\n" in out
    assert "  stderr    no \\e[2Jkey\n" in out


def test_programs_get_the_exchange_and_the_path_of_the_new_capture(spy, home):
    code, out, _ = again(spy, "--yes", "--format", "json")
    report = json.loads(out)
    assert (code, report["capture"], report["stderr"]) == (0, str(new_capture(home)), [])
    (exchange,) = report["exchanges"]
    assert (exchange["request"], exchange["outcome"]) == (ROW, "same")
    assert '"city":"Oslo"' in lines_of(report["capture"])[exchange["observed"] - 1]["raw"]


def test_the_settings_beside_the_capture_allow_differences(spy):
    Path("weather.replay.toml").write_text('ignore = ["tools/call get_forecast /result"]\n')
    assert again(spy, "--", *SERVER, "result")[0] == 0


def test_the_request_can_be_edited_by_standard_input_and_in_the_editor(spy, monkeypatch, tmp_path):
    bergen = call(3, "get_forecast", BERGEN)
    monkeypatch.setattr("sys.stdin", io.StringIO(bergen.replace(",", ",\n")))
    code, out, err = again(spy, "--edit", "--yes")
    assert (code, "9 °C, rain" in out) == (1, True)
    assert err.splitlines()[-1] == f"then         #{ROW} {bergen}"

    editor = tmp_path / "editor.py"
    editor.write_text(
        "import sys, pathlib\np = pathlib.Path(sys.argv[1])\np.write_text(p.read_text().replace('Oslo', 'Bergen'))\n"
    )
    monkeypatch.setenv("EDITOR", f"{sys.executable} {editor}")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    monkeypatch.setattr("builtins.input", lambda _: "y")
    assert "9 °C, rain" in again(spy, "--edit")[1]


class Terminal(io.StringIO):
    """A stdin that is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2), ("", 2)])
def test_a_person_is_asked(spy, monkeypatch, answer, code, home):
    monkeypatch.setattr("sys.stdin", Terminal())
    questions = []
    monkeypatch.setattr("builtins.input", lambda text: questions.append(text) or answer)
    status, _, err = again(spy)
    assert (status, questions) == (code, ["Send it? [y/N] "])
    assert (home / ".mcpspy" / "captures").exists() == (code == 0)
    assert err.splitlines()[-1] == "mcpspy: nothing was sent" or code == 0


def test_the_question_says_that_a_long_request_is_not_shown_in_full(spy, monkeypatch):
    long = '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_forecast","arguments":{"city":"%s"}}}'
    monkeypatch.setattr("sys.stdin", io.StringIO(long % ("Oslo" * 500)))
    _, _, err = again(spy, "--edit")
    (line,) = (line for line in err.splitlines() if line.startswith("then"))
    assert re.match(r"then         #10, whose 2,\d{3} characters are not all shown: \{.*Oslo.*…$", line)


def test_without_a_terminal_nothing_is_sent_without_yes(spy, home):
    code, out, err = again(spy)
    assert (code, out, err.splitlines()[-1]) == (2, "", "mcpspy: nothing was sent: it needs an answer, or --yes")
    assert not (home / ".mcpspy" / "captures").exists()


# What is not trusted


@pytest.fixture
def trace(tmp_path, spy):
    """A capture whose command leaves a trace when it is started."""
    trace = tmp_path / "trace"
    argv = [sys.executable, "-c", STARTED.format(str(trace))]
    capture("evil.jsonl", SESSION, argv=argv, cwd=str(tmp_path))
    return trace


def nothing_starts(spy, trace, path, why):
    for options in (["--yes"], ["--yes", "--edit"], []):
        code, out, err = again(spy, *options, path=path)
        assert (code, out) == (2, "")
        assert why in err
        assert "add '-- COMMAND' or --url URL" in err
    assert not trace.exists()


def test_the_trace_is_left_if_the_command_is_started(spy, trace, monkeypatch):
    monkeypatch.setattr("mcpspy.replay.run.START", 0.5)
    again(spy, "--yes", path="evil.jsonl")
    assert trace.exists()


FORGED = {
    "another command": lambda fields: fields.update(argv=["sh", "-c", "true"]),
    "another directory": lambda fields: fields.update(cwd="/"),
    "another name": lambda fields: fields.update(name="other"),
    "no proof, as of an older mcpspy": lambda fields: fields.pop("proof"),
    "a made up proof": lambda fields: fields.update(proof="0" * 32),
    "a proof that is no text": lambda fields: fields.update(proof=7),
    "a proof in another place": lambda fields: fields.update(z=fields.pop("proof")),
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_header_starts_nothing(spy, trace, forged):
    changed_header("evil.jsonl", FORGED[forged])
    nothing_starts(spy, trace, "evil.jsonl", "no relay of yours wrote the header of evil.jsonl as it is")


def test_a_capture_of_another_user_starts_nothing(spy, trace, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    nothing_starts(spy, trace, "evil.jsonl", "no relay of yours")


def test_a_scrubbed_a_cut_and_an_imported_capture_start_nothing(spy, trace):
    assert spy("scrub", "evil.jsonl", "--yes", "-o", "scrubbed.jsonl")[0] == 0
    assert spy("cut", "evil.jsonl", "--filter", "method:tools/call", "-o", "cut.jsonl")[0] == 0
    assert spy("share", "evil.jsonl", "--raw", "--yes", "-o", "shared.html")[0] == 0
    _, imported, _ = spy("import", "shared.html", "--capture-dir", "imported")
    for path in ("scrubbed.jsonl", "cut.jsonl"):
        nothing_starts(spy, trace, path, f"no relay of yours wrote the header of {path} as it is")
    nothing_starts(spy, trace, imported.strip(), "no relay of yours")


def test_a_capture_with_a_typed_command_is_sent_to_that(spy, trace):
    changed_header("evil.jsonl", lambda fields: fields.pop("proof"))
    assert again(spy, "--", *SERVER, "none", path="evil.jsonl")[0] == 0
    assert not trace.exists()


# Secrets


SECRET = "--token=abcdefghij0123456789"


@pytest.fixture
def secretive(home, spy, tmp_path):
    """A capture whose command has a secret, and a configuration of Cursor with it; returns a file of the server's."""
    told = tmp_path / "told"
    script = tmp_path / "server.py"
    told_to = f"open({str(told)!r}, 'w').write(sys.argv[1] + os.environ.get('CITY_TOKEN', ''))"
    script.write_text(f"import os, sys\n{told_to}\nsys.stdin.read()\n")
    words = [sys.executable, str(script), SECRET]
    capture("secret.jsonl", SESSION, argv=Redactor().argv(words), cwd=str(tmp_path), name="weather", env=["CITY_TOKEN"])
    assert "abcdef" not in Path("secret.jsonl").read_text()
    entry = {"command": words[0], "args": words[1:], "env": {"CITY_TOKEN": "s3cr3t"}}
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"weather": entry}}))
    return told


def test_secrets_come_from_the_configuration_of_the_client(spy, secretive, monkeypatch, home):
    monkeypatch.setattr("mcpspy.replay.run.START", 0.5)
    _, _, err = again(spy, "--yes", path="secret.jsonl")
    assert secretive.read_text() == f"{SECRET}s3cr3t"
    assert "s3cr3t" not in err
    assert "abcdef" not in err + new_capture(home).read_text()
    assert "with         CITY_TOKEN of the client's configuration" in err


def test_the_configuration_of_a_project_is_not_read(spy, secretive, home):
    os.rename(home / ".cursor", home / "work" / ".cursor")
    code, _, err = again(spy, "--yes", path="secret.jsonl")
    assert (code, secretive.exists()) == (2, False)
    assert err == "mcpspy: the command has a redacted value (--token=…): add '-- COMMAND'\n"


def test_secrets_are_asked_for_in_a_terminal(spy, secretive, home, monkeypatch):
    (home / ".cursor" / "mcp.json").unlink()
    monkeypatch.setattr("mcpspy.replay.run.START", 0.5)
    monkeypatch.setattr("sys.stdin", Terminal())
    asked = []
    monkeypatch.setattr("mcpspy.cli.again.getpass", lambda text: asked.append(text) or "typed")
    _, _, err = again(spy, "--yes", path="secret.jsonl")
    assert (asked, secretive.read_text()) == (["the redacted value in --token=…: "], "--token=typed")
    assert "typed" not in err


# Bad input


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--only", "x"], "--only takes the numbers of rows, such as 7 or 7,9, not 'x'"),
        (["--only", "7"], "#7 is neither a request of the client nor the answer to one; the nearest is #8, tools/list"),
        (["--only", "8,14", "--edit"], "--edit changes one request: give one number to --only"),
        (["--only", "8", "--learn", "2"], "--learn belongs to a replay of the whole capture, not to --only"),
        (["--only", "8", "--update"], "--update belongs to a replay of the whole capture, not to --only"),
        (["--only", "8", "--read-only"], "--read-only belongs to a replay of the whole capture, not to --only"),
        (
            ["--only", "8", "-o", "./weather.jsonl"],
            "-o ./weather.jsonl is the file weather.jsonl that is read here; give another one",
        ),
        (["--only", "8", "--header", "a: b", "--", "true"], "--header belongs to --url: a command has no HTTP headers"),
        (["--yes", "--", "true"], "--yes belongs to --only"),
        (["--edit", "--", "true"], "--edit belongs to --only"),
        (["--only", "8", "--edit", "--yes"], "the text is not a request: a JSON object with jsonrpc, id and method"),
    ],
)
def test_bad_input_is_one_line(spy, options, why):
    code, out, err = spy("replay", "weather.jsonl", *options)
    assert (code, out, err) == (2, "", f"mcpspy: {why}\n")


@pytest.mark.parametrize(
    ("options", "text", "why"),
    [
        (["--is", "result=date"], "", "begins with a slash"),
        (["--matches", "/result=(?=x)"], "", "not a regular expression without look-around"),
        ([], 'ignor = ["/result"]', "did you mean 'ignore'?"),
        ([], '[within]\n"/result" = "far"', "not a distance"),
    ],
)
def test_a_mistake_in_what_may_change_is_told_before_anything_is_sent(spy, home, options, text, why):
    Path("weather.replay.toml").write_text(text)
    assert why in refusal(again(spy, "--yes", *options))
    assert not (home / ".mcpspy" / "captures").exists()


def test_a_capture_that_is_being_recorded_is_refused(spy):
    writer = begin("live.jsonl", argv=[*SERVER, "none"])
    try:
        assert "is still being recorded" in refusal(spy("replay", "live.jsonl", "--only", "5", "--yes"))
    finally:
        finish(writer)
