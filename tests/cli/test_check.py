"""`mcpspy check`: exit status, formats, expectations, and one line for every mistake."""

import gc
import json
import os
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from mcpspy.cli.commands import COMMANDS
from mcpspy.report.findings import FORMATS, FindingsFormat
from mcpspy.rules import FORMER, RULES
from tests.capture.test_parts import written
from tests.cli.conftest import refusal
from tests.each import each
from tests.peers import warm
from tests.report.captures import FAULTY, faulty, fine
from tests.transcript import begin, capture, finish, record

ROOT = Path(__file__).parent.parent.parent


def waiver(path, *, rule="tools/arguments", capture="*", **fields):
    path.write_text(
        "[[waiver]]\n"
        + "".join(f"{key} = {value}\n" for key, value in fields.items())
        + f'rule = "{rule}"\ncapture = "{capture}"\nreason = "known"\n'
    )
    return path


# The captures of this repository


def test_the_golden_captures_hold_nothing_but_what_is_waived_for_a_reason(check, monkeypatch):
    """CI runs this command: a finding of a new rule, or a stale waiver, makes it fail."""
    monkeypatch.chdir(ROOT)
    status, out, err = check("captures", "--waivers", "captures/waivers.toml", "--fail-on", "warning")
    assert (status, err) == (0, ""), out
    assert out.splitlines()[-2].startswith("0 errors, 0 warnings, ")
    assert out.endswith("see 'mcpspy why captures'\n")


# The exit status


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], 1),
        (["--fail-on", "never"], 0),
        (["--ignore", "tools/arguments", "--ignore", "schema/invalid"], 0),
        (["--ignore", "tools/arguments", "--ignore", "schema/invalid", "--fail-on", "warning"], 1),
        (["--ignore", "tools/*", "--ignore", "schema/*", "--fail-on", "warning"], 0),
        (["--ignore", "tools/*", "--ignore", "schema/*", "--fail-on", "info"], 1),
        (["--ignore", "*", "--fail-on", "info"], 0),
    ],
)
def test_the_status_is_1_from_the_threshold_on(tmp_path, check, options, expected):
    status, _, err = check(faulty(tmp_path / "a"), *options)
    assert (status, err) == (expected, "")


@pytest.fixture
def broken(monkeypatch):
    """A rule that raises an exception at each request."""

    def raises(message, history):
        raise KeyError("oh")

    monkeypatch.setitem(RULES, "tools/arguments", replace(RULES["tools/arguments"], check=raises))
    monkeypatch.setattr("mcpspy.rules.judge.LISTS", {})


@pytest.mark.parametrize("options", [[], ["--fail-on", "never"], ["--ignore", "*"], ["--follow"]])
def test_the_status_is_2_where_a_rule_failed(tmp_path, check, broken, options):
    """A-12: the findings of other rules are still reported."""
    status, out, err = check(faulty(tmp_path / "a"), *options)
    assert status == 2
    assert err.startswith("mcpspy: a bug in the rule tools/arguments at #10 (KeyError: 'oh')")
    assert ("schema/invalid" in out) == ("*" not in options)


def test_a_rule_that_failed_in_another_process_counts_too(tmp_path, check, broken, monkeypatch):
    """A-12."""
    monkeypatch.setattr("mcpspy.cli.check.SMALL", 0)
    monkeypatch.setattr("mcpspy.cli.check.cores", lambda: 2)
    fine(tmp_path / "a.jsonl")
    faulty(tmp_path / "b.jsonl")
    assert check(tmp_path, "--fail-on", "never")[0] == 2


def test_without_a_capture_it_is_the_newest_which_stderr_names(tmp_path, check, monkeypatch):
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path))
    path = faulty(tmp_path / "a.jsonl")
    for options in ([], ["--format", "json"], ["--follow"]):
        status, expected, _ = check(path, *options)
        assert check(*options) == (status, expected, f"mcpspy: newest capture: {path}\n")


def test_a_capture_without_a_fault_is_fine(tmp_path, check):
    assert check(fine(tmp_path / "a"), "--fail-on", "info")[0] == 0


def test_a_directory_stands_for_its_captures_by_name(tmp_path, check):
    for name in ("b.jsonl", "a.jsonl", "c.txt"):
        faulty(tmp_path / name)
    fine(tmp_path / "other")
    _, out, _ = check(tmp_path, tmp_path / "other", "--format", "json")
    found = [os.path.basename(capture["path"]) for capture in json.loads(out)["captures"]]
    assert found == ["a.jsonl", "b.jsonl", "other"]


def test_another_revision_is_another_report(tmp_path, check):
    _, out, _ = check(faulty(tmp_path / "a"), "--as", "2026-07-28", "--format", "json")
    (capture,) = json.loads(out)["captures"]
    assert capture["revisions"] == ["2026-07-28"]
    assert "lifecycle/meta-missing" in {finding["rule"] for finding in capture["findings"]}


# Output


def test_the_report_can_go_to_a_file(tmp_path, check):
    for form in ("text", "json", "junit", "sarif", "github"):
        path = tmp_path / f"report.{form}"
        status, out, _ = check(faulty(tmp_path / "a"), "--format", form, "--output", path)
        assert (status, out) == (1, "")
        assert path.read_text(encoding="utf-8") == check(tmp_path / "a", "--format", form)[1]


def test_colours_are_for_terminals(tmp_path, check, monkeypatch):
    path = faulty(tmp_path / "a")
    assert "\x1b" not in check(path)[1]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[31m" in check(path)[1]
    check(path, "--output", tmp_path / "report")
    assert "\x1b" not in (tmp_path / "report").read_text(encoding="utf-8")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in check(path)[1]


def test_a_format_of_the_table_is_a_choice(tmp_path, check, monkeypatch):
    """To add a format, add its entry in the table, and its name to the option."""
    trial = FindingsFormat(lambda captures, _: (f"{it.path}: {len(it.findings)}\n" for it in captures))
    monkeypatch.setitem(FORMATS, "trial", trial)
    option = COMMANDS["check"].named_options["--format"]
    monkeypatch.setattr(option, "choices", (*option.choices, "trial"))
    path = faulty(tmp_path / "a")
    assert check(path, "--format", "trial") == (1, f"{path}: 4\n", "")
    assert "it takes text, json, junit, sarif, github, trial" in check(path, "--format", "x")[2]


# Several captures at once


@each("form", ["text", "json"])
def test_the_report_is_the_same_however_many_processes_there_are(check, monkeypatch, form):
    """It has the order of the captures, and is equal byte for byte."""
    reports = []
    monkeypatch.setattr("mcpspy.cli.check.SMALL", 0)
    for processes in (1, 3):
        monkeypatch.setattr("mcpspy.cli.check.cores", lambda count=processes: count)
        reports.append(check(ROOT / "captures", "--format", form))
    assert reports[0] == reports[1]
    assert len(reports[0][1]) > 10_000


def test_a_capture_that_cannot_be_read_stops_several_processes_too(tmp_path, check, monkeypatch):
    monkeypatch.setattr("mcpspy.cli.check.SMALL", 0)
    monkeypatch.setattr("mcpspy.cli.check.cores", lambda: 2)
    for name in ("a", "c", "d", "e"):
        faulty(tmp_path / f"{name}.jsonl")
    (tmp_path / "b.jsonl").write_bytes(b"")
    assert "b.jsonl is empty" in refusal(check(*(tmp_path / f"{name}.jsonl" for name in "abcde")))


# Waivers


def test_what_is_waived_does_not_fail(tmp_path, check):
    path = faulty(tmp_path / "a")
    accepted = waiver(tmp_path / "waivers.toml")
    status, out, err = check(path, "--waivers", accepted, "--ignore", "schema/invalid")
    assert (status, err) == (0, "")
    assert "1 waived" in out


def test_a_stale_waiver_fails_and_is_named(tmp_path, check):
    stale = waiver(tmp_path / "waivers.toml", rule="jsonrpc/batch")
    status, _, err = check(fine(tmp_path / "a"), "--waivers", stale, "--fail-on", "never")
    assert status == 1
    assert err == "mcpspy: the waiver is stale, no finding matches it: jsonrpc/batch in * (known)\n"


def test_an_expired_waiver_is_named_and_waives_nothing(tmp_path, check):
    expired = waiver(tmp_path / "waivers.toml", expires="2020-01-31")
    status, _, err = check(faulty(tmp_path / "a"), "--waivers", expired, "--ignore", "schema/invalid")
    assert status == 1
    assert err == "mcpspy: the waiver has expired on 2020-01-31: tools/arguments in * (known)\n"


def test_a_waiver_of_a_rule_that_is_ignored_is_not_stale(tmp_path, check):
    accepted = waiver(tmp_path / "waivers.toml")
    status, out, err = check(faulty(tmp_path / "a"), "--waivers", accepted, "--ignore", "*")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "0 errors, 0 warnings, 0 info, 1 waived in 9 frames of 1 capture"


# Mistakes: one line and exit code 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["CAPTURE", "--as", "2025-11-26"],
            "no revision '2025-11-26'; did you mean '2025-11-25'?",
        ),
        (["CAPTURE", "--format", "jnit"], "--format cannot be 'jnit'; did you mean 'junit'?"),
        (["CAPTURE", "--format", "x"], "--format cannot be 'x'; it takes text, json, junit, sarif, github"),
        (["CAPTURE", "--fail-on", "warn"], "--fail-on cannot be 'warn'; did you mean 'warning'?"),
        (
            ["CAPTURE", "--client", "claude"],
            "there is no client 'claude'; did you mean 'claude-code'?",
        ),
        (
            ["CAPTURE", "--client", "all", "--client", "x"],
            "there is no client 'x'; the clients are anthropic-api, bedrock-api",
        ),
        (["CAPTURE", "--ignore", "tool/args"], "there is no rule 'tool/args'; did you mean 'tools/arguments'"),
        (["CAPTURE", "--ignore", "tool/*"], "there is no rule 'tool/*'"),
        (["CAPTURE", "--waivers", "none.toml"], "cannot read none.toml: No such file"),
        (["CAPTURE", "--output", "no/such/file"], "cannot write no/such/file: No such file"),
        (["CAPTURE", "--follow", "--format", "json"], "--follow prints text"),
        (["CAPTURE", "CAPTURE", "--follow"], "--follow takes one capture"),
        (["a.json"], "cannot read a.json: no such file; did you mean a.jsonl?"),
        (["no/such"], "cannot read no/such: no such file"),
        (["empty"], "there is no capture (*.jsonl) in empty"),
        (["text.jsonl"], "text.jsonl is not a capture: its first line is not a capture header"),
        ([], "no captures in "),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, check, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.jsonl").write_text("hello\n")
    faulty(tmp_path / "a.jsonl")
    assert words in refusal(check(*("a.jsonl" if word == "CAPTURE" else word for word in arguments)))


NO_CAPTURES = {"empty.jsonl": b"", "log.jsonl": b'{"level":"info"}\n', "text.jsonl": b"hello\n"}


def test_what_is_no_capture_in_a_directory_is_skipped_and_named(tmp_path, check):
    """R-13: other programs write JSON Lines files too."""
    for name, content in NO_CAPTURES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.jsonl").mkdir()
    faulty(tmp_path / "a.jsonl")
    status, out, err = check(tmp_path, "--format", "json")
    assert [os.path.basename(capture["path"]) for capture in json.loads(out)["captures"]] == ["a.jsonl"]
    assert status == 1
    names = sorted([*NO_CAPTURES, "folder.jsonl"])
    assert [line.split()[:3] for line in err.splitlines()] == [
        ["mcpspy:", "skipped:", str(tmp_path / name)] for name in names
    ]


def test_what_cannot_be_read_or_is_named_and_no_capture_is_an_error(tmp_path, check):
    """R-13: readers would mistake half a report for the whole one."""
    for name, content in NO_CAPTURES.items():
        (tmp_path / name).write_bytes(content)
    status, out, err = check(tmp_path)
    assert (status, out) == (2, "")
    assert err.splitlines()[-1] == f"mcpspy: there is no capture (*.jsonl) in {tmp_path}"
    good, log, newer = faulty(tmp_path / "a.jsonl"), tmp_path / "log.jsonl", tmp_path / "newer.jsonl"
    newer.write_bytes(b'{"mcpspy":99,"tool":"mcpspy 9.0"}\n')
    assert f"{log} is not a capture: its first line is not a capture header" in refusal(check(good, log))
    status, out, err = check(tmp_path)
    assert (status, out) == (2, "")
    assert "newer.jsonl has format 99" in err


def test_a_capture_of_several_files_in_a_directory_is_checked_once(tmp_path, check):
    """A-04."""
    written(tmp_path / "a.jsonl")
    assert len(list(tmp_path.glob("*.jsonl"))) > 1
    _, out, err = check(tmp_path, "--format", "json")
    assert ([os.path.basename(capture["path"]) for capture in json.loads(out)["captures"]], err) == (["a.jsonl"], "")


# A live capture


def test_findings_in_a_live_capture_come_as_they_are_made(tmp_path):
    writer = begin(tmp_path / "a")
    with warm.start("check", "--follow", tmp_path / "a") as following:
        record(writer, FAULTY)
        lines = [following.stdout.readline() for _ in range(4)]
        assert following.poll() is None
        finish(writer)
        rest, err = following.communicate()
    assert (following.returncode, rest, err) == (1, "", "")
    assert lines[0].startswith("✗ #10 client: arguments of echo violate its inputSchema")
    assert [line.rpartition("[")[2].strip("]\n") for line in lines] == [
        "tools/arguments",
        "schema/invalid",
        "schema/unknown-method",
        "jsonrpc/extra-member",
    ]


OPEN = """
    = 2025-06-18
    > 2 tools/call {"name":"slow"}
    > 3 ping
    @63 > 4 prompts/list
    @64 < 4 = {"prompts":[]}
    > notifications/cancelled {"requestId":3}
    < 9 ping
"""


def test_w_11_a_live_capture_is_told_with_its_open_requests(tmp_path, check):
    path = tmp_path / "a.jsonl"
    writer = begin(path)
    record(writer, OPEN)
    status, out, err = check(path, "--fail-on", "never")
    assert (status, err) == (0, "")
    assert "unanswered" not in out
    assert f"{path}: the capture is live, 2 requests are still open: #8 tools/call slow, #13 ping" in out.splitlines()
    [told] = json.loads(check(path, "--format", "json", "--fail-on", "never")[1])["captures"]
    assert (told["live"], "pairing/unanswered" in str(told["findings"])) == (True, False)
    assert told["open"] == [
        {"frame": 8, "sender": "client", "method": "tools/call", "name": "slow"},
        {"frame": 13, "sender": "server", "method": "ping", "name": None},
    ]
    assert "the capture is live, 2 requests are still open" in check(path, "--format", "junit", "--fail-on", "never")[1]
    finish(writer, 65 * 10**9)
    status, out, _ = check(path, "--fail-on", "never")
    assert ("pairing/unanswered" in out, "capture is live" in out) == (True, False)
    [told] = json.loads(check(path, "--format", "json", "--fail-on", "never")[1])["captures"]
    assert (told["live"], "open" in told) == (False, False)


def test_w_11_a_few_open_requests_are_named(tmp_path, check):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, "= 2025-06-18\n" + "\n".join(f"> {n} ping" for n in range(2, 10)))
    line = check(tmp_path / "a.jsonl")[1].splitlines()[-2]
    assert line.endswith("8 requests are still open: #8 ping, #9 ping, #10 ping, #11 ping, #12 ping and 3 more")
    finish(writer)


def test_w_11_a_live_capture_in_which_nothing_is_open(tmp_path, check):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, "= 2025-06-18")
    assert check(tmp_path / "a.jsonl")[1].splitlines()[-2].endswith(": the capture is live, no request is open")
    finish(writer)


def test_a_finished_capture_is_followed_to_its_end(tmp_path, check):
    status, out, _ = check(faulty(tmp_path / "a"), "--follow", "--ignore", "schema/*", "--as", "2025-06-18")
    assert (status, len(out.splitlines())) == (1, 2)


def test_a_report_never_takes_the_place_of_what_it_is_about(check, tmp_path):
    path = faulty(tmp_path / "a.jsonl")
    accepted = waiver(tmp_path / "waivers.toml")
    (tmp_path / "link.jsonl").symlink_to(path)
    before = Path(path).read_bytes(), accepted.read_bytes()
    for output in (path, tmp_path / "link.jsonl", accepted):
        assert f"--output {output} is the file " in refusal(check(path, "--waivers", accepted, "--output", output))
    assert (Path(path).read_bytes(), accepted.read_bytes()) == before


def test_a_rule_is_ignored_by_the_id_that_it_had_before(tmp_path, check, monkeypatch):
    monkeypatch.setitem(FORMER, "old/args", "tools/arguments")
    path, rest = faulty(tmp_path / "a"), ("--ignore", "schema/invalid")
    assert check(path, "--ignore", "old/*", *rest) == check(path, "--ignore", "tools/arguments", *rest)


# What clients refuse


def refused(path, name="a.b"):
    """A capture of a server whose one tool breaks limits of clients and no other rule."""
    return capture(path, HANDSHAKE + listed(name))


HANDSHAKE = "\n".join(FAULTY.strip().split("\n")[:3]) + "\n"


def listed(name):
    tool = {"name": name, "inputSchema": {"type": "object", "properties": {}}}
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}}
    return f'    > {{"jsonrpc":"2.0","id":1,"method":"tools/list"}}\n    < {json.dumps(answer)}\n'


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("a.b", [], 0),
        ("a.b", ["--client", "openai-api"], 1),
        ("a.b", ["--client", "vscode"], 0),
        ("a.b", ["--client", "vscode", "--client", "openai-api"], 1),
        ("a.b", ["--client", "all"], 1),
        ("a.b", ["--client", "all", "--ignore", "compat/*"], 0),
        ("x" * 60, ["--client", "cursor"], 0),
        ("x" * 60, ["--client", "cursor", "--fail-on", "warning"], 1),
        ("a.b", ["--client", "openai-api", "--follow"], 1),
    ],
)
def test_what_a_client_refuses_counts_for_the_clients_that_are_named(tmp_path, check, name, options, expected):
    """P-01: a warning if the client leaves the tool out, an error if one tool makes it refuse all of them."""
    status, out, err = check(refused(tmp_path / "a", name), *options)
    assert (status, err) == (expected, "")
    assert ("compat/tool-name" in out) == (expected == 1 or "cursor" in options)


@pytest.mark.parametrize("form", FORMATS)
def test_without_clients_no_format_tells_what_they_refuse(tmp_path, check, form):
    """P-01: the option adds the findings of its group and changes nothing else."""
    path = refused(tmp_path / "a")
    without = check(path, "--format", form)
    assert "compat/" not in without[1].replace("rules.md#compat", "")
    assert "compat/tool-name" in check(path, "--format", form, "--client", "all")[1]
    assert check(path, "--format", form, "--client", "all", "--ignore", "compat/*") == without


def test_clients_are_named_in_several_processes_too(tmp_path, check, monkeypatch):
    monkeypatch.setattr("mcpspy.cli.check.SMALL", 0)
    monkeypatch.setattr("mcpspy.cli.check.cores", lambda: 2)
    for name in ("a", "b", "c"):
        refused(tmp_path / f"{name}.jsonl")
    _, out, _ = check(tmp_path, "--client", "openai-api", "--format", "json")
    found = [[finding["rule"] for finding in capture["findings"]] for capture in json.loads(out)["captures"]]
    assert found == [["compat/tool-name"]] * 3


@pytest.mark.parametrize(("transport", "seldom"), [("stdio", True), ("http", False)])
def test_garbage_is_seldom_collected_only_where_exchanges_are_none(tmp_path, check, monkeypatch, transport, seldom):
    """Over HTTP an exchange is a reference cycle: thousands, with frames of megabytes, would stay in memory."""
    often, told = (700, 10, 10), []
    monkeypatch.setattr("mcpspy.cli.check.GC_OFTEN", often)
    monkeypatch.setattr(gc, "set_threshold", lambda *threshold: told.append(threshold))
    writer = begin(tmp_path / "a", transport=transport)
    finish(writer, 1)
    check(tmp_path / "a", fine(tmp_path / "b"), "--fail-on", "never")
    assert [threshold > often for threshold in told] == [seldom, True]


def test_a_finding_links_to_the_source_of_the_limit(tmp_path, check):
    _, out, _ = check(refused(tmp_path / "a"), "--client", "claude-desktop", "--format", "json")
    (finding,) = json.loads(out)["captures"][0]["findings"]
    assert (finding["severity"], finding["blame"], finding["frame"]) == ("error", "server", 9)
    assert finding["spec"] == "https://github.com/evoila/meho/issues/2745"


SESSION = """
    = 2025-06-18
    > 2 tools/call {"name":"echo","arguments":{"text":"a"}}
    < 2 = {"content":[]}
    > 3 tools/call {"name":"bad"}
    < 3 = {"content":[],"isError":true}
"""
TOML = """
[[tool]]
name = "echo"
times = 1

[[tool]]
name = "bad"
never = true

[[tool]]
name = "good"
"""


@pytest.fixture
def session(tmp_path):
    return capture(tmp_path / "a.jsonl", SESSION)


@pytest.fixture
def expect(tmp_path):
    file = tmp_path / "expect.toml"
    file.write_text(TOML)
    return file


def test_what_is_not_as_expected_fails_the_check_and_stands_at_its_frame(check, session, expect):
    status, out, err = check(session, "--expect", expect)
    assert (status, err) == (1, "")
    assert "#1     the session\n  ✗ error  expect/called  by the client\n" in out
    assert "    expected that good is called; there was no call\n" in out
    assert "    expected that bad is never called; it is called here\n" in out
    assert out.splitlines()[-2].startswith("2 errors, 0 warnings, 0 info, 1 of 3 expectations met in ")
    assert out.splitlines()[-1] == f"1 request failed: tools/call bad failed; see 'mcpspy why {session}'"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--expect-tool", "echo", "--expect-tool", "b*", "--max-duration", "50s"], 0),
        (["--forbid-tool", "echo"], 1),
        (["--expect-tool", "good"], 1),
        (["--max-duration", "1ms"], 1),
        (["--no-failures"], 1),
        (["--forbid-tool", "echo", "--fail-on", "never"], 0),
        (["--forbid-tool", "echo", "--ignore", "expect/*"], 0),
        (["--forbid-tool", "echo", "--ignore", "expect/never"], 0),
    ],
)
def test_the_usual_expectations_are_options(check, session, options, expected):
    status, _, err = check(session, *options)
    assert (status, err) == (expected, "")


def test_operational_findings_come_only_with_a_table(check, session, tmp_path):
    assert "ops/" not in check(session)[1]
    file = tmp_path / "ops.toml"
    file.write_text("[ops]\n")
    status, out, _ = check(session, "--expect", file)
    assert status == 0
    assert "ops/tool-failed" in out
    assert check(session, "--expect", file, "--fail-on", "warning")[0] == 1


def test_json_tells_what_came_of_each(check, session, expect):
    found = json.loads(check(session, "--expect", expect, "--format", "json")[1])["captures"][0]
    assert found["expectations"] == [
        {"title": "echo is called once", "rule": "expect/called", "passed": True},
        {"title": "bad is never called", "rule": "expect/never", "passed": False},
        {"title": "good is called", "rule": "expect/called", "passed": False},
    ]
    assert [(it["rule"], it["frame"]) for it in found["findings"]] == [("expect/called", 1), ("expect/never", 10)]
    assert "expectations" not in json.loads(check(session, "--format", "json")[1])["captures"][0]


def test_junit_has_a_case_for_each_expectation(check, session, expect, tmp_path):
    def cases(*options):
        suite = ET.fromstring(check(session, "--expect", expect, "--format", "junit", *options)[1])  # noqa: S314 (it is ours)
        return {it.get("name"): [how.tag for how in it] for it in suite.iter("testcase")}

    named = {"echo is called once": [], "bad is never called": ["failure"], "good is called": ["failure"]}
    named |= {"tools/call bad failed": ["system-out"]}
    assert cases() == named
    assert cases("--fail-on", "never") == named | {
        "bad is never called": ["system-out"],
        "good is called": ["system-out"],
    }
    assert cases("--ignore", "expect/never") == named | {"bad is never called": []}
    waiver = tmp_path / "waivers.toml"
    waiver.write_text('[[waiver]]\nrule = "expect/called"\ncapture = "*"\nreason = "soon"\n')
    assert cases("--waivers", waiver) == named | {"good is called": []}
    assert cases("--no-failures")["tools/call bad failed"] == ["failure"]


def test_sarif_and_github_have_the_line(check, session, expect):
    log = json.loads(check(session, "--expect", expect, "--format", "sarif")[1])["runs"][0]
    lines = [it["locations"][0]["physicalLocation"]["region"]["startLine"] for it in log["results"]]
    assert lines == [1, 10]
    assert {it["id"] for it in log["tool"]["driver"]["rules"]} == {"expect/called", "expect/never"}
    commands = check(session, "--expect", expect, "--format", "github")[1].splitlines()
    assert [it.partition("::")[2].partition(" ")[0] for it in commands] == ["warning", "error", "error"]
    assert "title=mcpspy (call)::tools/call bad failed; server: " in commands[0]
    assert "line=10" in commands[2]


def test_each_capture_is_held_to_all_or_to_what_is_about_its_server(check, tmp_path):
    for name, text in (("weather", SESSION), ("files", "= 2025-06-18\n> 2 ping\n< 2 = {}")):
        writer = begin(tmp_path / f"{name}.jsonl", name=name)
        record(writer, text)
        finish(writer)
    assert check(tmp_path, "--expect-tool", "echo")[0] == 1
    file = tmp_path / "expect.toml"
    file.write_text('[[tool]]\nname = "echo"\nserver = "weather"\n')
    status, out, _ = check(tmp_path, "--expect", file)
    assert (status, "1 of 1 expectation met" in out) == (0, True)
    file.write_text('[[tool]]\nname = "echo"\nserver = "wether"\nnever = true\n')
    status, out, err = check(tmp_path, "--expect", file)
    assert (status, out) == (2, "")
    assert err == (
        "mcpspy: no capture is of a server 'wether', which an expectation names; "
        "'mcpspy ls' shows the server of each capture\n"
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--expect", "missing.toml"], "cannot read missing.toml"),
        (["--max-duration", "soon"], '--max-duration: it is "soon"; write a time with its unit'),
        (["--expect-tool", ""], "--expect-tool has no name"),
        (["--forbid-tool", "a", "--expect-tool", "a"], "--expect-tool, --forbid-tool: no session can meet both: a is"),
        (["--forbid-tool", ""], "--forbid-tool has no name"),
        (["--follow", "--expect-tool", "a"], "--follow prints findings as they occur"),
    ],
)
def test_a_mistake_is_one_line(check, session, options, told):
    assert told in refusal(check(session, *options))
