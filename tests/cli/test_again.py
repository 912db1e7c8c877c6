"""`mcpspy replay --only`: a request is sent again, and a capture that is not trusted starts nothing."""

import io
import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.user_key import user_key
from mcpspy.replay.again import narrowed, requests_of
from mcpspy.replay.script import script_of
from mcpspy.secrets.redactor import Redactor
from tests.cli.conftest import refusal
from tests.cli.test_replay import BERGEN, OSLO, SESSION
from tests.replay.scripts import INITIALIZE, INITIALIZED, SERVER, call, result
from tests.transcript import begin, capture, finish

ROW = 10
"""The row of the call about Oslo."""
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
    list_tools = '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
    assert err.splitlines()[:6] == [
        f"starts       {shlex.join([*SERVER, 'none'])}",
        f"in           {tmp_path}",
        "without      CITY_TOKEN, which it had when it was recorded",
        f"sends first  #5 {INITIALIZE}",
        'sends first  #7 {"jsonrpc":"2.0","method":"notifications/initialized"}',
        f"sends first  #8 {list_tools}",
    ]
    first, *rest = err.splitlines()[6:]
    assert first == f"then sends   #{ROW} {{"
    assert json.loads("{" + "".join(rest)) == json.loads(call(3, "get_forecast", OSLO))


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
    (listing,) = (turn.cause.n for turn in script_of(path).turns if turn.method == "tools/list")
    code, out, _ = spy("replay", path, "--only", listing, "--yes")
    assert (code, out.splitlines()[0]) == (0, f"#{listing} tools/list")


def test_answers_are_shown_beside_the_recorded_ones_with_their_differences(spy):
    code, out, _ = again(spy, "--yes", "--", *SERVER, "error")
    assert code == 1
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
    code, out, _ = again(spy, "--yes", "--", *SERVER, "none", path="failed.jsonl")
    assert code == 1
    assert "  recorded  error -1 after " in out
    assert "; in the capture it failed\n" in out


def test_a_server_that_ends_is_told_with_its_stderr(spy):
    server = [sys.executable, "-c", "import sys; print('no \x1b[2Jkey', file=sys.stderr); sys.exit(3)"]
    code, out, _ = again(spy, "--yes", "--", *server)
    assert code == 1
    assert "  now       no answer; not sent: the server exited with code 3\n" in out
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
    assert again(spy, "--yes", "--", *SERVER, "result")[0] == 0


def test_the_request_can_be_edited_by_standard_input(spy, monkeypatch):
    bergen = call(3, "get_forecast", BERGEN)
    monkeypatch.setattr("sys.stdin", io.StringIO(bergen.replace(",", ",\n") + "\ny\n"))
    code, out, err = again(spy, "--edit")
    assert (code, "9 °C, rain" in out) == (1, True)
    assert '"city":"Bergen"' in err
    assert "Oslo" not in err
    assert err.splitlines()[-1] == "Send it? [y/N]"


def test_the_request_can_be_edited_in_the_editor(spy, monkeypatch, tmp_path):
    editor = tmp_path / "editor.py"
    change = "p.write_text(p.read_text().replace('Oslo', 'Bergen'))"
    editor.write_text(f"import sys, pathlib\np = pathlib.Path(sys.argv[1])\n{change}\n")
    monkeypatch.setenv("EDITOR", f"{sys.executable} {editor}")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert "9 °C, rain" in again(spy, "--edit")[1]


class Terminal(io.StringIO):
    """A stdin that is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize("stdin", [io.StringIO, Terminal])
@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("yes\n", 0), ("n\n", 2), ("\n", 2), ("", 2)])
def test_a_person_is_asked(spy, monkeypatch, answer, code, stdin, home):
    monkeypatch.setattr("sys.stdin", stdin(answer))
    status, _, err = again(spy)
    assert (status, "Send it? [y/N]" in err) == (code, True)
    assert (home / ".mcpspy" / "captures").exists() == (code == 0)
    assert err.endswith("mcpspy: nothing was sent: it needs the answer y, or --yes\n") or code == 0


def test_a_typed_server_gets_calls_that_only_read_without_a_question(spy, home):
    code, _, err = again(spy, "--", *SERVER, "none")
    assert (code, "Send it?" in err) == (0, False)
    code, _, err = again(spy, "--", *SERVER, "none", rows="12")
    assert (code, "Send it?" in err) == (2, True)


# What is sent is what was shown


def shown_before(spy, text, row, *options):
    """Send a row of a transcript again; return what was shown before, and what the server was sent."""
    capture("shown.jsonl", text)
    _, _, err = again(
        spy, "-o", "sent.jsonl", "--yes", *options, "--", *SERVER, "none", rows=str(row), path="shown.jsonl"
    )
    sent = [it["raw"] for it in lines_of("sent.jsonl")[1:] if it.get("ch") == 1 and "raw" in it]
    return err, sent


@pytest.mark.parametrize(
    "request_text",
    [
        call(3, "get_forecast", '{"city":"Oslo","a":"%s","path":"EVIL"}' % ("." * 5000)),
        call(3, "get_forecast", OSLO)[:-1] + " " * 5000 + ',"params":{"name":"EVIL"}}',
    ],
    ids=["a long argument", "a second member behind blanks"],
)
def test_nothing_of_a_request_is_hidden(spy, request_text):
    err, (*_, sent) = shown_before(spy, SESSION.replace(call(3, "get_forecast", OSLO), request_text), 10)
    assert "EVIL" in sent
    assert any("EVIL" in line and not line.startswith(" " * 100) for line in err.splitlines())


def test_a_call_that_comes_first_is_shown_whole(spy):
    text = f"""
        > {INITIALIZE}
        < {INITIALIZED}
        > {call(2, "report", '{"a":"EVIL"}')}
        < 2 = {{"task":{{"taskId":"t","status":"working"}}}}
        > 3 tasks/result {{"taskId":"t"}}
        < 3 = {{"content":[]}}
    """
    err, sent = shown_before(spy, text, 9)
    assert [line for line in err.splitlines() if "EVIL" in line] == [f"sends first  #7 {sent[1]}"]


ASKS = f"""
    > {INITIALIZE}
    < {INITIALIZED}
    > {call(2, "report")}
    < {{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{{}}}}
    > {{"jsonrpc":"2.0","id":"a","result":{{"action":"accept","content":{{"sure":"EVIL"}}}}}}
    < {result(2, "done")}
    > {call(3, "report")}
    < {result(3, "done")}
"""


def test_answers_are_shown_and_belong_to_the_request(spy):
    err, _ = shown_before(spy, ASKS, 7)
    (line,) = [line for line in err.splitlines() if "EVIL" in line]
    assert line.startswith("answers      #8 elicitation/create with {")
    err, _ = shown_before(spy, ASKS, 11)
    assert "EVIL" not in err
    whole = script_of("shown.jsonl")
    assert not narrowed(whole, requests_of(whole, [11])).asked


def test_the_header_that_was_checked_is_used_if_the_file_changes(spy, trace, monkeypatch, tmp_path):
    """Another file, proven too, takes the place of the capture after the check."""
    from mcpspy.cli import again as module

    whole = module.script_of

    def changed(path, **more):
        capture("weather.jsonl", SESSION, argv=[sys.executable, "-c", STARTED.format(str(trace))], cwd=str(tmp_path))
        return whole(path, **more)

    monkeypatch.setattr(module, "script_of", changed)
    assert again(spy, "--yes")[0] == 0
    assert not trace.exists()


# What is compared


BATCH = f"""
    > {INITIALIZE}
    < {INITIALIZED}
    > [{call(2, "get_forecast", OSLO)},{call(3, "get_forecast", BERGEN)}]
    < [{result(2, "12 °C, light rain")},{result(3, "another text")}]
    > {call(4, "get_forecast", OSLO)}
    > notifications/cancelled {{"requestId":4}}
"""


@pytest.fixture
def batch(spy):
    capture("batch.jsonl", BATCH)
    return "batch.jsonl"


def test_each_request_of_a_batch_is_compared_with_its_own_answer(spy, batch):
    code, out, err = again(spy, "--format", "json", "--yes", "--", *SERVER, "none", rows="7", path=batch)
    assert (code, [it["outcome"] for it in json.loads(out)["exchanges"]]) == (1, ["same", "changed"])
    assert err.count("then sends   #7 {") == 2


def test_a_batch_is_not_edited(spy, batch):
    told = refusal(again(spy, "--edit", "--yes", "--", *SERVER, "none", rows="7", path=batch))
    assert told == "mcpspy: --edit changes one request; here are 2\n"


def test_an_answer_that_cannot_be_compared_is_not_called_the_same(spy, batch):
    code, out, _ = again(spy, "--yes", "--", *SERVER, "none", rows="9", path=batch)
    assert code == 1
    assert "as recorded" not in out
    assert "; not compared, because the capture has no answer" in out


def test_the_report_has_colours_in_a_terminal(spy, monkeypatch):
    monkeypatch.setattr("mcpspy.cli.again.has_colours", lambda: True)
    for change in ("none", "error"):
        _, out, _ = again(spy, "--yes", "--", *SERVER, change)
        assert "\x1b[" in out


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
        assert "so the server that it names is not used: add '-- COMMAND' or --url URL" in err
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
    nothing_starts(spy, trace, "evil.jsonl", "evil.jsonl: ")


def test_a_capture_of_another_user_starts_nothing(spy, trace, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    user_key()
    nothing_starts(spy, trace, "evil.jsonl", "no relay of yours wrote its header as it is")


def test_a_scrubbed_a_cut_and_an_imported_capture_start_nothing(spy, trace):
    assert spy("scrub", "evil.jsonl", "--yes", "-o", "scrubbed.jsonl")[0] == 0
    assert spy("cut", "evil.jsonl", "--filter", "method:tools/call", "-o", "cut.jsonl")[0] == 0
    assert spy("share", "evil.jsonl", "--raw", "--yes", "-o", "shared.html")[0] == 0
    _, imported, _ = spy("import", "shared.html", "--capture-dir", "imported")
    for path in ("scrubbed.jsonl", "cut.jsonl"):
        nothing_starts(spy, trace, path, f"{path}: its header has no proof")
    nothing_starts(spy, trace, imported.strip(), "its header has no proof")


def test_an_imported_page_has_no_proof_even_if_it_had_two(spy, trace):
    head, _, rest = Path("evil.jsonl").read_bytes().partition(b"\n")
    Path("evil.jsonl").write_bytes(head[:-1] + b',"proof":"' + b"0" * 32 + b'"}' + b"\n" + rest)
    assert spy("share", "evil.jsonl", "--raw", "--yes", "-o", "shared.html")[0] == 0
    _, imported, _ = spy("import", "shared.html", "--capture-dir", "imported")
    assert b'"proof"' not in Path(imported.strip()).read_bytes().partition(b"\n")[0]
    nothing_starts(spy, trace, imported.strip(), "its header has no proof")


def test_a_capture_with_a_typed_command_is_sent_to_that(spy, trace):
    changed_header("evil.jsonl", lambda fields: fields.pop("proof"))
    assert again(spy, "--yes", "--", *SERVER, "none", path="evil.jsonl")[0] == 0
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
    assert "with         CITY_TOKEN of the configuration of Cursor" in err


def test_the_configuration_of_a_project_is_not_read(spy, secretive, home):
    os.rename(home / ".cursor", home / "work" / ".cursor")
    code, _, err = again(spy, "--yes", path="secret.jsonl")
    assert (code, secretive.exists()) == (2, False)
    assert err.endswith("server.py --token=…): add '-- COMMAND'\n")


def test_secrets_are_asked_for_in_a_terminal(spy, secretive, home, monkeypatch):
    (home / ".cursor" / "mcp.json").unlink()
    monkeypatch.setattr("mcpspy.replay.run.START", 0.5)
    monkeypatch.setattr("sys.stdin", Terminal())
    asked = []
    monkeypatch.setattr("mcpspy.cli.again.getpass", lambda text: asked.append(text) or "tiger1plain")
    _, _, err = again(spy, "--yes", path="secret.jsonl")
    assert [text.partition("server.py ")[2] for text in asked] == ["--token=…': "]
    assert secretive.read_text() == "--token=tiger1plain"
    assert "tiger1plain" not in err + new_capture(home).read_text()


# Bad input


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--only", "x"], "--only takes the numbers of rows, such as 7 or 7,9, not 'x'"),
        (["--only", "7"], "#7 is neither a request of the client nor the answer to one; the nearest is #8, tools/list"),
        (["--only", "8,14", "--edit", "--yes"], "--edit changes one request; here are 2"),
        (["--only", "8", "--ignore", "result/x"], None),
        (["--only", "8", "--matches", "/result=(?=a)"], None),
        (["--only", "8", "--output", "none/x"], "cannot write none/x: there is no such directory"),
        (["--only", "8", "--header", "A: b", "--", "true"], "--header belongs to --url: a command has no HTTP headers"),
        (["--only", "8", "--learn", "2"], "--learn belongs to a replay of the whole capture, not to --only"),
        (["--only", "8", "--update"], "--update belongs to a replay of the whole capture, not to --only"),
        (["--only", "8", "--read-only"], "--read-only belongs to a replay of the whole capture, not to --only"),
        (
            ["--only", "8", "-o", "./weather.jsonl"],
            "-o would overwrite the capture before it is compared; --update accepts the new session",
        ),
        (["--only", "8", "--header", "a: b", "--", "true"], "--header belongs to --url: a command has no HTTP headers"),
        (["--yes", "--", "true"], "--yes belongs to --only"),
        (["--edit", "--", "true"], "--edit belongs to --only"),
        (["--only", "8", "--edit", "--yes"], "the text is not a request: a JSON object with jsonrpc, id and method"),
    ],
)
def test_bad_input_is_one_line(spy, options, why, home):
    code, out, err = spy("replay", "weather.jsonl", *options)
    assert (code, out, err) == (2, "", f"mcpspy: {why}\n" if why else err)
    assert err.count("\n") == 1
    assert not (home / ".mcpspy" / "captures").exists()


def test_a_directory_that_is_gone_is_named(spy, tmp_path):
    capture("gone.jsonl", SESSION, argv=["true"], cwd=str(tmp_path / "gone"))
    told = refusal(again(spy, "--yes", path="gone.jsonl"))
    assert told == f"mcpspy: the directory of the command no longer exists: {tmp_path / 'gone'}\n"


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


def test_the_new_session_goes_to_a_file_also_compressed(spy):
    for name, magic in (("new.jsonl", b'{"mcpspy"'), ("new.jsonl.gz", b"\x1f\x8b")):
        code, out, _ = again(spy, "-o", name, "--yes", "--", *SERVER, "none")
        assert (code, out.splitlines()[-1]) == (0, f"recorded in {name}")
        assert Path(name).read_bytes().startswith(magic)
        assert Capture(name).header.name == "weather"


def test_the_capture_itself_is_not_overwritten(spy):
    before = Path("weather.jsonl").read_bytes()
    code, _, err = again(spy, "-o", "./weather.jsonl", "--yes")
    assert (code, "would overwrite the capture" in err, Path("weather.jsonl").read_bytes()) == (2, True, before)


def test_a_closed_stdin_is_no_answer(spy, monkeypatch):
    for options, why in (([], "nothing was sent"), (["--edit"], "the text is not a request")):
        monkeypatch.setattr("sys.stdin", None)
        code, _, err = again(spy, *options)
        assert (code, why in err) == (2, True)


def test_a_secret_that_is_not_typed_ends_it(spy, secretive, home, monkeypatch):
    (home / ".cursor" / "mcp.json").unlink()
    monkeypatch.setattr("sys.stdin", Terminal())

    def end(_):
        raise EOFError

    monkeypatch.setattr("mcpspy.cli.again.getpass", end)
    code, _, err = again(spy, "--yes", path="secret.jsonl")
    assert (code, err.endswith("mcpspy: nothing was sent: the redacted value was not typed\n")) == (2, True)


def test_a_name_that_occurs_twice_is_asked_about(spy, monkeypatch):
    twice = call(3, "get_forecast", OSLO).replace('"params":{', '"params":{"name":"report",')
    monkeypatch.setattr("sys.stdin", io.StringIO(twice))
    code, _, err = again(spy, "--edit", "--", *SERVER, "none")
    assert (code, "Send it?" in err) == (2, True)


def test_a_new_session_can_be_sent_again_with_the_same_configuration(spy, secretive, home, monkeypatch):
    monkeypatch.setattr("mcpspy.replay.run.START", 0.5)
    again(spy, "--yes", path="secret.jsonl")
    secretive.unlink()
    path = new_capture(home)
    (first,) = (turn.cause.n for turn in script_of(path).turns if turn.method == "initialize")
    again(spy, "--yes", path=path, rows=str(first))
    assert secretive.read_text() == f"{SECRET}s3cr3t"


def test_a_header_that_somebody_else_wrote_meanwhile_is_not_signed(spy, monkeypatch):
    monkeypatch.setattr("mcpspy.replay.again.doubt", lambda _: "no relay of yours wrote it")
    assert again(spy, "--yes", "-o", "new.jsonl")[0] == 0
    assert "proof" not in lines_of("new.jsonl")[0]
