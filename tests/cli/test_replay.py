"""The command line of `mcpspy replay`. The reports on seven possible changes of a server are stored texts."""

import json
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests import limits
from tests.cli.conftest import refusal
from tests.relay.harness import LIMIT, python, running, until
from tests.replay.scripts import INITIALIZE, INITIALIZED, SERVER, call, result
from tests.replay.test_run import CLOCK
from tests.rules.gate_sessions import Stdio, save
from tests.transcript import capture

GOLDENS = Path(__file__).parent.parent / "replay" / "goldens"
TOOLS = (
    '{"jsonrpc":"2.0","id":2,"result":{"tools":['
    '{"name":"get_forecast","description":"The weather of a city","inputSchema":{"type":"object",'
    '"properties":{"city":{"type":"string"}},"required":["city"]},"annotations":{"readOnlyHint":true}},'
    '{"name":"report","description":"Take an observation","inputSchema":{"type":"object"}}]}}'
)
OSLO, BERGEN = '{"city":"Oslo"}', '{"city":"Bergen"}'
SESSION = f"""
    > {INITIALIZE}
    < {INITIALIZED}
    > {{"jsonrpc":"2.0","method":"notifications/initialized"}}
    > {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
    < {TOOLS}
    > {call(3, "get_forecast", OSLO)}
    < {result(3, "12 °C, light rain")}
    > {call(4, "report", '{"city":"Oslo","sky":"blue"}')}
    < {result(4, "thank you")}
    > {call(5, "get_forecast", BERGEN)}
    < {result(5, "9 °C, rain")}
"""


@pytest.fixture
def mcpspy(tmp_path, monkeypatch, run):
    """Run the command line in a directory with a capture."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mcpspy.replay.run.LEAST", 0.5)
    monkeypatch.setattr("mcpspy.replay.run.GRACE", 0.2)
    monkeypatch.setattr("mcpspy.transport.link.PATIENCE", 0.5)
    monkeypatch.setattr("mcpspy.cli.replay.APART", 0)
    capture("weather.jsonl", SESSION)
    return run


def replayed(mcpspy, change, *options):
    return mcpspy("replay", "weather.jsonl", *options, "--", *SERVER, change)


def test_a_server_that_has_not_changed_is_the_same(mcpspy):
    code, out, err = replayed(mcpspy, "none")
    assert (code, out, err) == (0, "weather.jsonl: 5 comparisons: 5 same\n", "")


CHANGES = ["description", "removed", "result", "error", "hang", "crash", "extra", "garbage"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_told_with_method_name_pointer_and_both_values(mcpspy, change):
    code, out, err = replayed(mcpspy, change)
    assert (code, err) == (1, "")
    assert out == (GOLDENS / f"{change}.txt").read_text(encoding="utf-8")


def test_every_stored_text_is_of_a_change():
    assert {path.stem for path in GOLDENS.iterdir()} == set(CHANGES)


def test_junit_goes_to_a_file_and_the_totals_to_stderr(mcpspy):
    code, out, err = replayed(mcpspy, "crash", "--format", "junit", "--output", "report.xml")
    assert (code, out) == (1, "")
    assert err == "weather.jsonl: 5 comparisons: 2 same, 3 missing\n"
    suites = ET.parse("report.xml").getroot()  # noqa: S314 (our own)
    assert (suites.get("tests"), suites.get("failures")) == ("5", "3")


@pytest.mark.parametrize(
    ("change", "ignored"),
    [
        ("result", "/result/content/*/text"),
        ("description", "tools/list /result/tools/*/description"),
        ("extra", "notifications/tools/list_changed"),
    ],
)
def test_what_is_ignored_is_the_same(mcpspy, change, ignored):
    assert replayed(mcpspy, change, "--ignore", ignored)[0] == 0


def test_of_a_shape_other_words_are_the_same(mcpspy):
    assert replayed(mcpspy, "result", "--shape")[0] == 0
    assert replayed(mcpspy, "removed", "--shape")[0] == 1


def test_settings_beside_the_capture_need_no_options(mcpspy):
    Path("weather.replay.toml").write_text('ignore = ["tools/call get_forecast /result"]\n')
    assert replayed(mcpspy, "result")[0] == 0


def test_read_only_leaves_out_what_may_write_and_says_so(mcpspy):
    code, out, _ = replayed(mcpspy, "none", "--read-only")
    assert code == 0
    assert out.splitlines() == [
        "- #12 tools/call report: skipped (the tool has no readOnlyHint)",
        "weather.jsonl: 5 comparisons: 4 same, 1 skipped",
    ]


def test_a_new_session_is_accepted(mcpspy):
    code, _, err = replayed(mcpspy, "result", "--update")
    assert (code, err) == (0, "mcpspy: weather.jsonl now holds the new session\n")
    assert replayed(mcpspy, "result")[0] == 0
    assert replayed(mcpspy, "none")[0] == 1


def test_a_new_session_is_accepted_in_the_place_of_the_old_one(mcpspy):
    """A symbolic link stays a link, the permissions stay the same, and no other file is left in the directory."""
    Path("weather.jsonl").rename("kept.jsonl")
    Path("kept.jsonl").chmod(0o644)
    Path("weather.jsonl").symlink_to("kept.jsonl")
    assert replayed(mcpspy, "result", "--update")[0] == 0
    assert (Path("weather.jsonl").is_symlink(), Path("kept.jsonl").stat().st_mode & 0o777) == (True, 0o644)
    assert sorted(it.name for it in Path().iterdir()) == ["kept.jsonl", "weather.jsonl"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_replay_and_the_server(mcpspy, number):
    """The server hangs and ignores signals. It has its own process group, so Ctrl-C in a terminal does not reach it."""
    del mcpspy
    source = (
        f"import os, signal; signal.signal({int(number)}, signal.SIG_IGN); open('pid', 'w').write(str(os.getpid()))"
    )
    hang = [*python(f"{source}; os.rename('pid', 'started'); import sys; sys.stdin.read()")]
    argv = [sys.executable, "-m", "mcpspy", "replay", "weather.jsonl", "--update", "--", *hang]
    before = Path("weather.jsonl").read_bytes()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with limits.Popen(argv, start_new_session=True, **pipes) as process:
        until(lambda: Path("started").exists(), "the start of the server")
        os.killpg(process.pid, number)
        assert process.communicate(timeout=LIMIT) == (b"", b"")
    assert process.returncode == 130
    assert not running(int(Path("started").read_text()))
    assert Path("weather.jsonl").read_bytes() == before


def test_a_session_without_answers_is_not_accepted(mcpspy):
    before = Path("weather.jsonl").read_text()
    code, _, err = replayed(mcpspy, "crash", "--update")
    assert (code, err) == (1, "mcpspy: weather.jsonl was not changed: the new session lacks answers\n")
    assert Path("weather.jsonl").read_text() == before


def test_the_new_session_is_kept_where_that_is_wanted(mcpspy):
    assert replayed(mcpspy, "none", "-o", "new.jsonl")[0] == 0
    assert mcpspy("diff", "weather.jsonl", "new.jsonl")[0] == 0
    assert mcpspy("replay", "new.jsonl", "--", *SERVER)[0] == 0, "it is a capture like any other"


def test_what_is_volatile_is_learned(mcpspy):
    lines = f"> {call(1, 'now')}\n< {result(1, 'then')}".replace("}]", '},{"type":"text","text":"fixed"}]')
    capture("clock.jsonl", lines)
    command = ("--", *python(CLOCK))
    code, out, err = mcpspy("replay", "clock.jsonl", "--learn", "2", *command)
    proposed = "[is]\n'tools/call now /result/content/0/text' = 'any'\n"
    assert (code, out) == (0, "clock.jsonl: 1 comparison: 1 same\n")
    assert err == f"mcpspy: the runs differed; --update would put this into clock.replay.toml:\n{proposed}"
    assert mcpspy("replay", "clock.jsonl", *command)[0] == 1
    assert mcpspy("replay", "clock.jsonl", "--learn", "2", "--update", *command)[0] == 0
    assert Path("clock.replay.toml").read_text() == proposed
    assert mcpspy("replay", "clock.jsonl", *command)[0] == 0


@pytest.mark.parametrize("options", [[], ["--format", "json"]])
def test_differences_that_look_volatile_come_with_advice_that_keeps_the_capture(mcpspy, options):
    """R-15."""
    lines = f"> {call(1, 'now')}\n< {result(1, '1764000000123456789')}"
    capture("clock.jsonl", lines.replace("}]", '},{"type":"text","text":"fixed"}]'))
    before, command = Path("clock.jsonl").read_bytes(), ("--", *python(CLOCK))
    code, _, err = mcpspy("replay", "clock.jsonl", *options, *command)
    assert code == 1
    assert err.startswith("mcpspy: differences that look new in each run (a time, an id, a random value): 1 of 1. ")
    assert "'--learn 3 --update'" in err
    assert "clock.replay.toml; the capture was not changed" in err
    pattern = "tools/call now /result/content/0/text"
    assert err.endswith(f"--is '{pattern}=integer'\n")
    assert mcpspy("replay", "clock.jsonl", "--is", f"{pattern}=integer", *command)[::2] == (0, "")
    assert mcpspy("replay", "clock.jsonl", "--ignore", pattern, *command)[::2] == (0, "")
    assert mcpspy("replay", "clock.jsonl", "--learn", "3", "--update", *command)[0] == 0
    assert mcpspy("replay", "clock.jsonl", *command)[::2] == (0, "")
    assert Path("clock.jsonl").read_bytes() == before


def test_runs_that_are_alike_teach_nothing(mcpspy):
    code, _, err = replayed(mcpspy, "result", "--learn", "2")
    assert (code, err) == (1, "mcpspy: the runs did not differ: there is nothing to allow\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["weather.jsonl"], "replay needs a server: mcpspy replay CAPTURE -- COMMAND [ARG...], or --url URL"),
        (["weather.jsonl", "--url", "http://127.0.0.1:9/", "--", "true"], "replay needs a server"),
        (
            ["weather.jsonl", "--url", "http://127.0.0.1:9/mcp"],
            "http://127.0.0.1:9/mcp cannot be reached: connection refused",
        ),
        (["weather.jsonl", "--url", "weather"], "'weather' is not a URL of a server"),
        (["weather.jsonl", "--url", "http://127.0.0.1:9/", "--header", "x"], "--header takes 'Name: value', not 'x'"),
        (["weather.jsonl", "--header", "a: b", "--", "true"], "--header belongs to --url"),
        (["none.jsonl", "--", "true"], "cannot read none.jsonl: No such file or directory"),
        (["weather.jsonl", "--", "/none"], "cannot start '/none': not found"),
        (["weather.jsonl", "--learn", "1", "--", "true"], "--learn compares runs with each other: it needs 2 or more"),
        (["weather.jsonl", "--ignore", "result/x", "--", "true"], "a JSON Pointer begins with a slash: '/result/x'"),
        (["weather.jsonl", "--read-only", "--update", "--", "true"], "give one of them"),
        (["weather.jsonl", "-o", "./weather.jsonl", "--", "true"], "--update accepts the new session"),
        (["weather.jsonl", "-o", "none/new.jsonl", "--", "cat"], "cannot write a capture to none/new.jsonl"),
        (["empty.jsonl", "--", "true"], "empty.jsonl has no message of a client: there is nothing to replay"),
        (["cut.jsonl", "--", "true"], "cut.jsonl is truncated in mid-session: initialize (#5) has no answer"),
        (["torn.jsonl", "--", "true"], "torn.jsonl is truncated in mid-session (a damaged line): record it again"),
    ],
)
def test_a_mistake_is_one_line_and_exit_status_2(mcpspy, arguments, sentence):
    lines = Path("weather.jsonl").read_text().splitlines(keepends=True)
    Path("empty.jsonl").write_text("".join([*lines[:4], lines[-1]]))
    Path("cut.jsonl").write_text("".join(lines[:5]))
    Path("torn.jsonl").write_text("".join(lines[:9])[:-20])
    assert sentence in refusal(mcpspy("replay", *arguments))


def test_the_servers_own_options_are_left_to_it(mcpspy):
    code, out, _ = mcpspy("replay", "weather.jsonl", "--", *SERVER, "none", "--ignore", "--shape")
    assert (code, out) == (0, "weather.jsonl: 5 comparisons: 5 same\n")


def test_what_a_gate_did_is_not_replayed_unless_that_is_wanted(mcpspy, tmp_path):
    """In the capture, a gate changed one request, so that it asked for Bergen, and dropped the report."""
    wire = Stdio()
    for line in map(str.strip, SESSION.split("\n")):
        if line.startswith("> ") and '"id":3' in line:
            wire.client(line[2:].encode(), sent=line[2:].replace("Oslo", "Bergen").encode())
        elif line.startswith("> ") and '"id":4' in line:
            wire.client(line[2:].encode(), sent=None)
        elif line.startswith("< ") and '"id":3' in line:
            wire.server(result(3, "9 °C, rain").encode())
        elif line and '"id":4' not in line:
            (wire.client if line[0] == ">" else wire.server)(line[2:].encode())
    save(wire, tmp_path / "gated.jsonl")
    status, out, _ = mcpspy("replay", "gated.jsonl", "--format", "json", "--", *SERVER)
    assert (status, [it["outcome"] for it in json.loads(out)["exchanges"]]) == (0, ["same"] * 5)
    status, out, _ = mcpspy("replay", "gated.jsonl", "--as-forwarded", "--format", "json", "--", *SERVER)
    found = json.loads(out)["exchanges"]
    assert (status, [it["outcome"] for it in found]) == (0, ["same"] * 4)
    assert "report" not in [it["name"] for it in found]
