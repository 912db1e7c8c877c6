"""`mcpspy show` prints readable content and shows damage, or prints one line. No traceback, no escape sequence."""

import errno
import json
import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import pytest

from mcpspy import cli
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Open
from mcpspy.errors import CaptureError
from mcpspy.report.lines import line
from mcpspy.text import columns
from tests import limits
from tests.cli.conftest import refusal
from tests.cli.test_check import OPEN
from tests.each import each
from tests.peers import warm
from tests.rules.gate_sessions import Stdio, Streamable, request, result, save
from tests.transcript import abandon, begin, capture, finish, record, records, rows
from tests.zones import zone

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(cli.__file__)))
SESSION = """
    @0.001 > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
    @0.003 < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}
    @0.004 > {"jsonrpc":"2.0","method":"notifications/initialized"}
    @0.005 ! ready
    @1.000 > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_forecast"}}
    @1.0125 < {"jsonrpc":"2.0","id":1,"result":{"isError":true}}
    @2.000 > {"jsonrpc":"2.0","id":"x","method":"nope"}
    @2.001 < {"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"Method not found"}}
    @3.000 < | Listening on port 5
    @4.000 > {"jsonrpc":"2.0","id":3,"method":"tools/list"}
    @5.000 > {"jsonrpc":"2.0","id":4,"method":"tools/list"}
    @6.000 > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}
"""
HEADER = b'{"mcpspy":1,"started":"2026-11-20T19:15:00.123456Z","transport":"stdio","name":"weather","argv":["x"]}\n'


def test_without_a_capture_it_is_the_newest_which_stderr_names(tmp_path, show, monkeypatch):
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path))
    path = capture(tmp_path / "a.jsonl", SESSION)
    for options in ([], ["--json"]):
        expected = show(path, *options)[1]
        assert show(*options) == (0, expected, f"mcpspy: newest capture: {path}\n")


def test_findings_stand_in_the_json_of_their_message(tmp_path, show):
    path = capture(tmp_path / "a", SESSION)
    found = [json.loads(row) for row in show(path, "--json")[1].splitlines()]
    (wrong,) = next(row for row in found if row["n"] == 13)["findings"]
    assert (wrong["rule"], wrong["severity"], wrong["blame"], wrong["frame"]) == (
        "framing/not-json",
        "error",
        "server",
        13,
    )
    assert next(row for row in found if row["n"] == 14)["findings"][-1]["rule"] == "pairing/unanswered"
    followed = [json.loads(row) for row in show(path, "--json", "--follow")[1].splitlines()]
    late = [row for row in followed if row["kind"] == "finding"]
    assert {(row["n"], row["rule"]) for row in late} >= {(14, "pairing/unanswered")}
    at_once = [finding for row in followed for finding in row.get("findings", ())]
    assert len(late) + len(at_once) == sum(len(row["findings"]) for row in found)


def test_a_live_capture_says_so_and_what_is_still_pending(tmp_path, show):
    writer = begin(tmp_path / "a")
    record(writer, '> {"id":1,"method":"tools/list"}')
    _, out, _ = show(tmp_path / "a")
    assert out.splitlines()[1].endswith(" · live")
    assert out.splitlines()[-1] == "#5 tools/list: still pending"
    assert json.loads(show(tmp_path / "a", "--json")[1])["status"] == "pending"
    finish(writer, 1)


def test_the_recorded_client_stands_above_the_timeline(tmp_path, show):
    """V-06."""
    capture(tmp_path / "a", SESSION, client=["python3", "agent.py", "\x1b[2J"])
    assert show(tmp_path / "a")[1].splitlines()[1].endswith(" UTC · client python3 agent.py \\e[2J")


def test_w_11_a_request_that_is_open_in_a_live_capture_is_no_finding(tmp_path, show):
    """W-11: also if its stream has ended and its server has not."""
    writer = begin(tmp_path / "a")
    record(writer, OPEN)
    for options in ([], ["--filter", "kind:request"], ["--json"]):
        assert "unanswered" not in show(tmp_path / "a", *options)[1], options
    finish(writer, 65 * 10**9)
    assert "[pairing/unanswered]" in show(tmp_path / "a")[1]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_following_a_finished_capture_shows_all_of_it(tmp_path, show, options):
    status, out, _ = show(capture(tmp_path / "a", SESSION), "--follow", *options)
    assert status == 0
    later = ('"kind":"finding"', '"kind":"outcome"')
    rows = [line for line in out.splitlines() if not line.startswith("  ") and not any(kind in line for kind in later)]
    assert len(rows) == (13 if options else 16)  # with a title of two lines, and what failed


# Messages as people read them.

READ = """
    > {"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"get","arguments":{"city":"Oslo"}}}
    < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"one\\ntwo"}]}}
    @9 > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"other"}}
    < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
"""
ANSWER = ["    text:", "      one", "      two"]


def test_long_prints_each_message_below_its_row_and_its_findings(tmp_path, show):
    path = capture(tmp_path / "a", READ)
    status, out, err = show(path, "--long")
    lines = out.splitlines()
    at = lines.index(ANSWER[0])
    assert (status, err, lines[at : at + 3]) == (0, "", ANSWER)
    assert lines[at - 1].startswith("#6 ")
    place = lines.index("    name: get")
    assert lines[place - 1].endswith("]"), "its findings come first"
    assert lines[place : place + 3] == ["    name: get", "    arguments:", "      city: Oslo"]
    without = [it for it in lines if not it.startswith("    ") or it.startswith("       ")]
    assert without == show(path)[1].splitlines()


@pytest.mark.parametrize("follow", [[], ["--follow"]])
def test_long_prints_what_a_filter_selects(tmp_path, show, follow):
    path = capture(tmp_path / "a", READ)
    assert [it for it in show(path, "--long", "--filter", "kind:result name:get", *follow)[1].splitlines()[2:]
            if not it.startswith("       ")][1:] == ANSWER  # fmt: skip
    out = show(path, "--long", "--filter", "time:>=9 kind:request", *follow)[1]
    assert "    name: other\n" in out
    assert "name: get" not in out


def test_long_is_for_people(tmp_path, show):
    wanted = "mcpspy: --json prints whole messages: it cannot be used with --long\n"
    assert refusal(show(capture(tmp_path / "a", READ), "--long", "--json")) == wanted


def test_long_wraps_and_cuts_messages_on_a_terminal_only(tmp_path, show, monkeypatch):
    text = "a word and another of them\\n" * 300
    path = capture(
        tmp_path / "a", f'< {{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}'
    )
    assert show(path, "--long")[1].count("      a word and another of them\n") == 300
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "dumb")
    out = show(path, "--long")[1]
    assert "      a word and another of\n      them\n" in out
    assert out.count("them\n") < 110
    assert "… cut after 200 lines" in out
    assert "\x1b" not in out


# Filters.


def numbers(out):
    """Return the line numbers at the start of the rows and findings in the text."""
    return [text.split()[0] for text in out.splitlines()[2:] if not text.startswith(" ")]


def test_a_filter_leaves_the_rows_that_fit_with_what_is_wrong_in_them(tmp_path, show):
    path = capture(tmp_path / "a", SESSION)
    status, out, err = show(path, "--filter", "method:tools/call")
    assert (status, err) == (0, "")
    assert numbers(out) == ["#9", "#10"]
    assert "[framing/not-json]" not in out
    assert "[framing/not-json]" in show(path, "--filter", "rule:framing")[1]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("status:tool-error", [9, 10]),
        ("latency:>5ms", [9, 10]),
        ("status:unanswered,cancelled", [14, 15]),
        ("rule:pairing/unanswered id:3", [14]),
        ("-from:client -kind:result", [8, 12, 13, 17]),
        ("no-such-text", []),
        ("", list(range(5, 18))),
    ],
)
def test_a_filter_of_a_file_knows_how_each_exchange_ended(tmp_path, show, text, wanted):
    path = capture(tmp_path / "a", SESSION)
    assert [json.loads(row)["n"] for row in show(path, "--json", "--filter", text)[1].splitlines()] == wanted
    rows = [number for number in numbers(show(path, f"--filter={text}")[1]) if not number.endswith(":")]
    assert [int(number[1:]) for number in dict.fromkeys(rows)] == wanted


def test_requests_without_a_response_show_what_came_of_them(tmp_path, show):
    """In a line below, as long as it may change; with a filter, which reads the whole file first, in their row."""
    path = capture(tmp_path / "a", SESSION)
    wanted = ["#14 tools/list: server-exit after 6.00 s", "#15 tools/list: cancelled after 1.00 s"]
    for options in ((), ("--follow",), ("--follow", "--filter", "kind:request")):
        below = [line.strip() for line in show(path, *options)[1].splitlines() if " after " in line]
        assert sorted(below) == wanted, options
    out = show(path, "--filter", "kind:request")[1]
    rows = [line.split() for line in out.splitlines() if " → tools/list " in line]
    assert [(row[0], row[-1]) for row in rows] == [("#14", "server-exit"), ("#15", "cancelled")]


def test_with_follow_an_outcome_comes_if_its_row_was_shown_or_matches_now(tmp_path, show):
    path = capture(tmp_path / "a", SESSION)
    for text, wanted in {
        "id:3": 14,
        "status:failed": 14,
        "status:server-exit": 14,
        "status:cancelled id:4": 15,
    }.items():
        rows = map(json.loads, show(path, "--json", "--follow", "--filter", text)[1].splitlines())
        found = [row for row in rows if row["kind"] == "outcome"]
        assert [row["n"] for row in found] == [wanted], text
        assert all(row.keys() == {"kind", "n", "part", "outcome", "failed", "expected"} for row in found)


def test_with_follow_a_finding_comes_with_its_row_or_because_it_is_wanted(tmp_path, show):
    path = capture(tmp_path / "a", SESSION)

    def followed(text):
        rows = [json.loads(row) for row in show(path, "--json", "--follow", "--filter", text)[1].splitlines()]
        return [(row["n"], row.get("rule")) for row in rows]

    assert followed("id:3") == [(14, None), (14, "pairing/unanswered"), (14, None)]
    found = followed("rule:pairing/unanswered")
    assert (14, "pairing/unanswered") in found
    assert {rule for _, rule in found} == {"pairing/unanswered"}
    assert followed("rule:framing") == [(13, None)]
    assert followed("id:3 rule:framing") == []
    out = show(path, "--follow", "--filter", "rule:pairing/unanswered")[1]
    assert "[pairing/unanswered]" in out
    assert numbers(out) == []


@pytest.mark.parametrize("options", [[], ["--json"], ["--follow"]])
def test_a_mistake_in_a_filter_is_pointed_at(tmp_path, show, options):
    status, out, err = show(capture(tmp_path / "a", SESSION), *options, "--filter", "kind:error metod:x")
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        "  kind:error metod:x",
        "             ^",
        "mcpspy: unknown key 'metod' at column 12; did you mean 'method'?",
    ]


def test_what_is_pointed_at_is_printable(tmp_path, show):
    """F-08."""
    _, _, err = show(capture(tmp_path / "a", SESSION), "--filter", "\x1b[2J metod:x")
    text, caret, _ = err.splitlines()
    assert text.isprintable()
    assert text.index("metod") == caret.index("^")


# The text beside a row's method, and how the recording ended


def test_rows_show_what_is_logged_the_progress_and_who_is_who(tmp_path, show):
    """R-14."""
    text = """
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"cursor","version":"1.0"}}}
        < {"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"weather","version":"2.1"}}}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"\\u001b[31mred"}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2,"total":3}}
    """
    _, out, _ = show(capture(tmp_path / "a", text))
    rows = [" ".join(text.split()[2:]) for text in out.splitlines() if text.startswith("#")]
    assert rows[0].startswith("→ initialize cursor 1.0 ")
    assert rows[1].startswith("← initialize weather 2.1 ")
    assert rows[2].startswith("← notifications/message info: \\e[31mred")
    assert rows[3].startswith("← notifications/progress 2/3")


@pytest.mark.parametrize("options", [[], ["--follow"], ["--filter", "method:initialize"]])
def test_a_relay_that_was_killed_is_told_at_the_end(tmp_path, show, options):
    """R-14."""
    writer = begin(tmp_path / "a")
    record(writer, SESSION)
    abandon(writer)
    sentence = "the capture has no end: mcpspy was killed while it recorded"
    rows, found, after = show(tmp_path / "a", *options)[1].partition(f"\n{sentence}\n")
    assert found
    assert "#5 " in rows
    assert " → " not in after, "rows come before it"
    assert sentence not in show(capture(tmp_path / "b", SESSION), *options)[1]


# A capture that cannot be shown: one line and exit code 2.


@pytest.mark.parametrize("options", [[], ["--json"], ["--follow"]])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (HEADER[:40], "has only part of a header"),
        (b"hello\n", "is not a capture: its first line is not a capture header"),
        (b"\x89PNG\r\n\x1a\n\0", "is not a capture: its first line is not a capture header"),
        (b'{"mcpspy":2,"tool":"mcpspy 9.0"}\n', "has format 2, written by mcpspy 9.0"),
        (None, "Is a directory; 'mcpspy ls "),
    ],
)
def test_what_is_no_capture_is_one_line_and_exit_code_2(tmp_path, show, content, sentence, options):
    if content is None:
        (tmp_path / "a").mkdir()
    else:
        (tmp_path / "a").write_bytes(content)
    err = refusal(show(tmp_path / "a", *options))
    assert str(tmp_path / "a") in err
    assert sentence in err


def test_a_missing_file_is_one_line_and_exit_code_2(tmp_path, show):
    status, out, err = show(tmp_path / "a")
    assert (status, out, err) == (2, "", f"mcpspy: cannot read {tmp_path / 'a'}: No such file or directory\n")


# Damage is shown.


@pytest.mark.parametrize(
    ("error", "expected", "sentence"),
    [
        (OSError(errno.EIO, "Input/output error"), 2, "Input/output error"),
        (CaptureError("cannot read b.jsonl: Permission denied"), 2, "Permission denied"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_was_read_before_an_error_is_shown(tmp_path, show, monkeypatch, error, expected, sentence):
    whole = Capture.records

    def failing(self, *rest):
        yield from list(whole(self, *rest))[:6]
        raise error

    monkeypatch.setattr(Capture, "records", failing)
    status, out, err = show(capture(tmp_path / "a", SESSION))
    assert [text.split()[0] for text in out.splitlines() if text.startswith("#")] == ["#5", "#6", "#7"]
    assert status == expected
    assert sentence in err
    assert err.count("\n") == bool(sentence)


def test_large_messages_are_not_kept_until_others_are_shown(tmp_path, show):
    found = []
    nested = "[" + ",".join(["[]"] * 10_000) + "]"  # decoded, it takes twenty times its size
    for number in (2, 16):
        text = "\n".join(f'< {{"jsonrpc":"2.0","id":{n},"result":{{"x":{nested}}}}}' for n in range(number))
        path = capture(tmp_path / str(number), text)
        tracemalloc.start()
        show(path)
        found.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert found[1] < 3 * found[0]


# Values of any shape in known records (F-08, A-07: damage is shown and never raises an exception).


# Captured text is hostile (F-08).

HOSTILE = "\x1b]0;x\x07\x1b[2J\u202e\ud800\r\n\u2028\x9b"


def test_a_status_that_is_no_number_is_printable_and_has_its_width():
    """F-08."""
    for status in (HOSTILE, "漢漢漢"):
        wire = Streamable("hold")
        wire.client(request(3, "tools/call", name="search"))
        wire.server(result(3, content=[]), of=3)
        answered = [replace(it, head=it.head | {"status": status}) if is_response(it) else it for it in wire.records]
        for row in rows(answered):
            for width in (60, 80, 160):
                assert line(row, width).isprintable()
                assert columns(line(row, width)) <= width


def is_response(record):
    return isinstance(record, Open) and record.role == "response"


def test_a_line_of_100_kilobytes_is_clipped():
    """F-08."""
    long = "x" * 100_000
    text = f"""
        > {{"id":"{long}","method":"{long}"}}
        < {{"id":"{long}","error":{{"code":1,"message":"{long}"}}}}
        ! {long}
        < {long}
    """
    for row in rows(records(text)):
        assert len(line(row)) < 400


def test_a_newer_format_cannot_put_anything_on_the_terminal(tmp_path, show):
    """F-08: an error message that quotes a hostile file is hostile too."""
    (tmp_path / "a").write_bytes(json.dumps({"mcpspy": 2, "tool": HOSTILE.replace("\ud800", "")}).encode() + b"\n")
    err = refusal(show(tmp_path / "a"))
    assert err.rstrip("\n").isprintable()


def test_colours_are_for_terminals(tmp_path, show, monkeypatch):
    path = capture(tmp_path / "a", SESSION)
    assert "\x1b" not in show(path)[1]
    monkeypatch.setattr("mcpspy.cli.show.sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[31m#12" in show(path)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in show(path)[1]


# As a process.


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_an_output_of_any_encoding_is_written(tmp_path, encoding):
    path = capture(tmp_path / "a", '> {"id":1,"method":"ping","params":"é"}\n! é🌍')
    command = [sys.executable, "-m", "mcpspy", "show", path]
    environ = os.environ | {"PYTHONIOENCODING": encoding}
    shown = limits.run(command, capture_output=True, cwd=ROOT, env=environ)
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert b"ping" in shown.stdout


@each("options", [[], ["--json"]])
def test_a_reader_that_leaves_early_is_no_error(tmp_path, options):
    """`mcpspy show … | head -1`."""
    path = capture(tmp_path / "a", '> {"id":1,"method":"ping"}\n' * 5000)
    with warm.start("show", path, *options) as shown:
        shown.stdout.readline()
        shown.stdout.close()
        assert (shown.stderr.read(), shown.wait()) == ("", 141)


def test_nothing_is_called_unanswered_across_a_gap(tmp_path, show):
    """R-01: the answers may be among the lost records."""
    path = tmp_path / "c.jsonl"
    path.write_text(
        '{"mcpspy":1,"started":"2026-01-01T00:00:00Z"}\n'
        '{"kind":"open","ch":1,"t":0,"from":"client","role":"stdin","framing":"lines"}\n'
        '{"kind":"frame","ch":1,"t":1,"raw":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1,\\"method\\":\\"ping\\"}"}\n'
        '{"kind":"gap","t":2,"lost":1,"why":"no space"}\n'
    )
    assert "#3 ping: in-doubt, because the records that may hold the response are missing\n" in show(path)[1]


def test_an_output_that_cannot_be_written_is_one_line(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text('{"mcpspy":1,"started":"2026-01-01T00:00:00Z"}\n')
    for arguments in (["show", str(path)], ["ls", str(tmp_path)]):
        with open("/dev/full", "wb") as full:
            command = [sys.executable, "-m", "mcpspy", *arguments]
            done = limits.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
        assert (done.returncode, done.stderr) == (2, b"mcpspy: cannot write the output: No space left on device\n")


def test_a_pipe_is_no_capture(tmp_path, show):
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in show(tmp_path / "pipe")[2]


NEGOTIATED = """
    @1 > {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":\
"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"com.example/turbo":{}}}}}}
    @2 > {"jsonrpc":"2.0","id":2,"method":"server/discover","params":{"_meta":{\
"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
    @3 < {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,\
"cacheScope":"public","capabilities":{"extensions":{"com.example/turbo":{},"io.modelcontextprotocol/ui":{}}}}}
"""


def test_x_03_the_extensions_that_were_declared_stand_below_with_who_did(tmp_path, show):
    path = capture(tmp_path / "a", NEGOTIATED)
    expected = "extensions: com.example/turbo (client, server), io.modelcontextprotocol/ui (server)"
    for options in ((), ("--filter", "kind:error")):
        _, out, _ = show(path, *options)
        assert expected in out.splitlines()
    _, out, _ = show(capture(tmp_path / "b", SESSION))
    assert "\nextensions" not in out


def gated(path):
    """Write a capture in which a gate delayed a call by two seconds, dropped one, and holds the last."""
    wire = Stdio("delay")
    wire.client(request(3, "tools/call", name="search"), hold=2, how="delayed")
    wire.wait(2)
    wire.server(result(3, content=[]))
    wire.client(request(4, "tools/call", name="search"), sent=None)
    wire.client(request(5, "tools/call", name="search"), hold=99, how="expired")
    return save(wire, path)


def test_what_a_gate_did_stands_in_the_timeline(tmp_path, show):
    status, out, _ = show(gated(tmp_path / "a"))
    assert status == 0
    shown = [" ".join(text.split()) for text in out.splitlines()]
    assert "#2 0.001 · gates: g (set by the gate file)" in shown
    assert "#6 0.005 → tools/call search id 3 [held by gate g]" in shown
    assert any(text.startswith("#6 delayed") for text in shown), "as soon as it is known"
    assert "#9 2.002 → tools/call search id 4 [dropped by gate g]" in shown
    assert not any("tools/call:" in text for text in shown), "no outcome that its row shows"


def test_a_release_is_shown_as_it_was_when_it_was_read(tmp_path, show):
    """A frame that a gate dropped may be answered by mcpspy a moment later."""
    wire = Stdio("hold")
    wire.client(request(3, "tools/call", name="search"), hold=2, how="dropped", sent=None)
    wire.wait(2)
    wire.made("server", result(3, content=[]))
    path = save(wire, tmp_path / "a")
    _, out, _ = show(path)
    assert [text for text in out.splitlines() if " held " in text and "dropped" in text]
    assert show(path, "--follow")[1] == out


def test_a_filter_of_a_file_knows_what_became_of_each_held_frame(tmp_path, show):
    path = gated(tmp_path / "a")
    for wanted, numbers in (("held", ["#10"]), ("dropped", ["#9"]), ("ok", ["#6", "#8"])):
        _, out, _ = show(path, "--filter", f"status:{wanted}")
        assert [
            text.split()[0] for text in out.splitlines() if text.startswith("#") and " tools/call " in text
        ] == numbers
    _, out, _ = show(path, "--filter", "id:3 kind:request")
    assert "[delayed " in out
    assert "[held" not in out


def test_with_follow_a_release_is_an_object_of_its_own(tmp_path, show):
    _, out, _ = show(gated(tmp_path / "a"), "--json", "--follow")
    found = [json.loads(text) for text in out.splitlines()]
    (row,) = (it for it in found if it["n"] == 6 and it["kind"] == "request")
    assert (row["gate"], row["forwarded"], row["held"]) == ("g", None, None)
    (release,) = (it for it in found if it["kind"] == "release")
    assert (release["n"], release["gate"], release["forwarded"]) == (6, "g", "delayed")
    _, out, _ = show(gated(tmp_path / "b"), "--json", "--follow", "--filter", "id:4")
    assert [json.loads(text)["n"] for text in out.splitlines()] == [9]


@pytest.mark.parametrize(
    ("options", "start", "clock"),
    [((), "2026-11-21 00:45:00.123 +05:30", "0:45"), (("--utc",), "2026-11-20 19:15:00.123 UTC", "19:15")],
)
def test_the_start_is_in_local_time_and_a_filter_takes_that_time(tmp_path, show, options, start, clock):
    path = tmp_path / "a.jsonl"
    path.write_bytes(HEADER + b'{"kind":"end","t":1000000}\n')
    with zone("Asia/Kolkata"):
        _, out, _ = show(path, *options, "--filter", f"time:{clock}")
    assert f"started {start}" in out
    assert "end: the recording ended" in out
