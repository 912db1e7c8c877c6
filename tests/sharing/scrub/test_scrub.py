"""A whole scrub: unchanged parts, the new capture as readers get it, and equal files from equal input."""

import fcntl
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.capture.reader import Capture
from mcpspy.errors import NotACapture, UsageError
from mcpspy.recording.copy import write_copy
from mcpspy.report.checked import check
from mcpspy.sharing.scrub import Scrub, ScrubOptions
from mcpspy.timeline import final_rows, to_json
from tests import limits
from tests.each import each
from tests.limits import proportionate
from tests.sharing.scrub.captures import ERR, IN, OUT, call, capture, frame, frames, header, opened, result, written
from tests.timelines import CAPTURES, GOLDEN

SECRET = "correct-horse-99"


def copy(path, target, **options):
    """Write a scrubbed copy of a capture; return its path."""
    write_copy(Scrub(str(path), ScrubOptions(**options)).lines(), str(target))
    return str(target)


def findings(path):
    return [(it.rule, it.frame, it.part, it.pointer) for it in check(str(path)).findings]


def rows(path):
    read = Capture(str(path))
    found = [json.loads(to_json(row, read.header)) for row in final_rows(read.records, live=False)]
    for row in found:
        for name in ("message", "text", "size", "session", "http", "findings"):
            row.pop(name, None)
    return found


# Unchanged parts


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_scrubbed_golden_capture_has_the_findings_and_rows_of_the_original(path, tmp_path):
    new = copy(path, tmp_path / "new.jsonl")
    assert findings(new) == findings(path)
    assert rows(new) == rows(path)
    assert Capture(new).header.scrubbed
    assert not Capture(str(path)).header.scrubbed
    assert [place for place in Scrub(str(path)).places() if place.category.rule] == []


def conversation(path):
    """Write a capture with secrets in a request, its result, an error and on stderr; return its path."""
    return capture(
        path,
        frame(ERR, f"the password is {SECRET}"),
        frame(IN, call({"password": SECRET, "user": "bob@corp.com"})),
        frame(OUT, result(f"{SECRET} of bob@corp.com was accepted")),
        frame(IN, call({"password": SECRET, "path": "/home/bob/x"}) | {"id": 2}),
        frame(OUT, {"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": f"bad {SECRET}, bob"}}),
        {"kind": "end", "t": 2, "exit": {"code": 0}},
        argv=["server", "--token", SECRET],
        cwd="/home/bob",
    )


@pytest.mark.parametrize("name", ["full-python1-2025-06-18", "made up"])
def test_a_scrubbed_capture_replayed_against_its_own_mock_server_is_the_same(name, tmp_path):
    made = conversation(tmp_path / "made.jsonl")
    path = copy(made if name == "made up" else CAPTURES / f"{name}.jsonl", tmp_path / "new.jsonl")
    mcpspy = [sys.executable, "-m", "mcpspy"]
    command = [*mcpspy, "replay", path, "--format", "json", "--", *mcpspy, "mock", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limits.LIMIT)
    totals = json.loads(done.stdout)["totals"]
    assert totals["same"] > 0, done.stderr
    assert {outcome for outcome, count in totals.items() if count} <= {"same", "skipped"}


# Values


def test_a_secret_under_a_name_is_gone_where_it_is_echoed_with_the_same_label(tmp_path):
    found = frames(conversation(tmp_path / "a.jsonl"))
    assert found[0] == "the password is redacted-value-1"
    assert json.loads(found[1])["params"]["arguments"] == {
        "password": "redacted-value-1", "user": "email-1@redacted.invalid"
    }  # fmt: skip
    assert "redacted-value-1 of email-1@redacted.invalid was accepted" in found[2]
    assert "/home/user-1/x" in found[3]
    assert "bad redacted-value-1, user-1" in found[4]


def test_the_table_counts_each_place_also_those_before_the_value_was_named(tmp_path):
    scrub = Scrub(conversation(tmp_path / "a.jsonl"))
    told = {(it.kind, it.label): (it.count, it.first) for it in scrub.replaced}
    assert told == {
        ("value under a secret name", "redacted-value-1"): (6, 1),
        ("home directory", "user-1"): (2, 1),
        ("e-mail address", "email-1@redacted.invalid"): (2, 6),
        ("user name", "user-1"): (1, 9),
    }
    assert not scrub.damaged


def test_what_looks_random_and_has_no_name_is_left_and_told(tmp_path):
    path = capture(tmp_path / "a.jsonl", frame(IN, call({"x": "Zk39dKw02Lq8Xm4Pt7Vb1"})), frame(IN, call(["aaa"])))
    (left,) = Scrub(path).leftovers
    assert (left.n, left.where, left.text, left.length, left.count) == (
        5, "/params/arguments/x", "Zk39dKw02Lq8Xm4Pt7Vb1", 21, 1
    )  # fmt: skip


def test_what_the_user_names_is_replaced_and_what_the_user_keeps_stays(tmp_path):
    import re

    arguments = {"password": SECRET, "city": "Paris 12", "note": "Paris 13"}
    path = capture(tmp_path / "a.jsonl", frame(IN, call(arguments)))
    (text,) = frames(path, replace=(re.compile(r"Paris \d+"),), keep=("/params/arguments/password",))
    assert json.loads(text)["params"]["arguments"] == {
        "password": SECRET, "city": "redacted-match-1", "note": "redacted-match-2"
    }  # fmt: skip


def test_only_secrets_leaves_people(tmp_path):
    found = frames(conversation(tmp_path / "a.jsonl"), only_secrets=True)
    assert "bob@corp.com" in found[1]
    assert "/home/bob/x" in found[3]
    assert SECRET not in "".join(found)


# The file


def test_the_same_capture_gives_the_same_file_and_a_scrubbed_one_itself(tmp_path):
    path = conversation(tmp_path / "a.jsonl")
    first, second = copy(path, tmp_path / "b.jsonl"), copy(path, tmp_path / "c.jsonl")
    again = copy(first, tmp_path / "d.jsonl")
    assert Path(first).read_bytes() == Path(second).read_bytes() == Path(again).read_bytes()
    assert Capture(first).header.id != Capture(path).header.id


def test_a_live_capture_is_scrubbed_as_far_as_it_was_read_first(tmp_path):
    path = conversation(tmp_path / "a.jsonl")
    with open(path, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        scrub = Scrub(path)
        before = list(scrub.lines())
        file.write(orjson.dumps(frame(ERR, "more"), option=orjson.OPT_APPEND_NEWLINE))
        file.flush()
        assert scrub.live
        assert list(scrub.lines()) == before


def test_a_capture_of_several_files_becomes_one_with_the_numbers_of_the_joined_one(tmp_path):
    first = header(id="1" * 32)
    written(tmp_path / "a.jsonl", first, opened(1, "client", "stdin", "lines"), frame(1, "one bob@corp.com"),
            {"kind": "continued", "t": 1, "file": "a-2.jsonl"})  # fmt: skip
    goes_on = header(id="2" * 32, continues={"id": "1" * 32, "file": "a.jsonl", "lines": 2})
    written(tmp_path / "a-2.jsonl", goes_on, opened(1, "client", "stdin", "lines"), frame(1, "two bob@corp.com"))
    new = copy(tmp_path / "a.jsonl", tmp_path / "new.jsonl")
    old = [(it.n, type(it)) for it in Capture(str(tmp_path / "a.jsonl")).records()]
    assert [(it.n, type(it)) for it in Capture(new).records()] == old
    assert len(Capture(new).paths) == 1
    assert b"bob" not in Path(new).read_bytes()
    assert b"a-2.jsonl" not in Path(new).read_bytes()


def test_what_is_no_capture_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text("{}\n")
    with pytest.raises(NotACapture):
        Scrub(str(tmp_path / "a.jsonl"))


# Any JSON

TEXTS = st.text() | st.sampled_from(
    ["password", "token", "id", "correct-horse-99", "bob@corp.com", "/home/bob/x", "«redacted:00000000»", "\ufdd0",
     "Bearer abcdef0123456789abcdef", '{"password":"x1y2z3"}', "user-1", "https://a:b@c/?token=d", "\\u0041"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def skeleton(value):
    """Return the structure of a value, without its strings and numbers."""
    if isinstance(value, dict):
        return [skeleton(inner) for inner in value.values()]
    if isinstance(value, list):
        return tuple(skeleton(inner) for inner in value)
    return type(value)


@settings(deadline=None)
@given(st.lists(st.tuples(JSON, st.booleans()), max_size=4), st.booleans())
def test_any_json_stays_valid_with_the_same_structure_and_ids(tmp_path_factory, values, spaces):
    separators = (", ", " : ") if spaces else (",", ":")
    texts = [
        json.dumps(
            {"jsonrpc": "2.0", "id": n, "result": value, "twice": 1.50}, ensure_ascii=ascii_, separators=separators
        )
        for n, (value, ascii_) in enumerate(values)
    ]
    texts = [text for text in texts if text.encode("utf-8", "replace").decode() == text]
    path = capture(tmp_path_factory.mktemp("a") / "a.jsonl", *(frame(OUT, text) for text in texts))
    new = frames(path)
    assert len(new) == len(texts)
    for old, text in zip(texts, new, strict=True):
        pairs = [json.loads(it, object_pairs_hook=lambda it: it) for it in (old, text)]
        names = [[pair[0] for pair in it] for it in pairs]
        assert names[0] == names[1]
        assert skeleton(json.loads(old)["result"]) == skeleton(json.loads(text)["result"]) or len(old) != len(text)
        assert json.loads(text)["id"] == json.loads(old)["id"]


@settings(deadline=None)
@given(st.text(min_size=1), st.text(min_size=1))
def test_equal_values_are_replaced_equally_and_different_ones_differently(tmp_path_factory, one, other):
    path = capture(
        tmp_path_factory.mktemp("a") / "a.jsonl",
        *(frame(IN, call({name: value})) for name, value in (("password", one), ("apiKey", other), ("secret", one))),
    )
    values = [next(iter(json.loads(text)["params"]["arguments"].values())) for text in frames(path)]
    assert values[0] == values[2]
    assert (values[0] == values[1]) == (one == other)


# Speed and memory


def large(path, count):
    """Write a capture of exchanges without secrets; return its path."""
    with open(path, "wb") as file:
        file.write(orjson.dumps(header(), option=orjson.OPT_APPEND_NEWLINE))
        file.writelines(
            orjson.dumps(opened(ch, sender, role, "lines"), option=orjson.OPT_APPEND_NEWLINE)
            for ch, sender, role in ((1, "client", "stdin"), (2, "server", "stdout"))
        )
        for n in range(count // 2):
            request = frame(IN, call({"city": "Oslo", "days": 3}) | {"id": n})
            answer = frame(OUT, result("It will rain in Oslo, at 8 degrees. " * 8) | {"id": n})
            file.write(orjson.dumps(request, option=orjson.OPT_APPEND_NEWLINE))
            file.write(orjson.dumps(answer, option=orjson.OPT_APPEND_NEWLINE))
    return str(path)


def test_thousands_of_frames_without_a_secret_take_a_moment(tmp_path):
    path = large(tmp_path / "a.jsonl", 3_000)
    with proportionate(1):
        assert sum(1 for _ in Scrub(path).lines()) == 3_003


def test_memory_does_not_depend_on_the_length_of_the_capture(tmp_path):
    peaks = []
    for count in (500, 2_000):
        path = large(tmp_path / f"{count}.jsonl", count)
        tracemalloc.start()
        for _ in Scrub(path).lines():
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        os.unlink(path)
    assert peaks[1] < peaks[0] + 900_000


@each(
    "content, new",
    [
        ({"jsonrpc": "2.0", "id": 1, "result": {"pin": 4711}}, '{"jsonrpc": "2.0", "id": 1, "result": {"pin": 1001}}'),
        ("\x1b[31mgh" + "p_" + "a1B2" * 9 + "\x1b[0m", "redacted-github-token-1"),
        ("bob@1.corp.example", "email-1@redacted.invalid"),
    ],
)
def test_a_line_without_any_other_sign_is_looked_at(tmp_path, content, new):
    assert frames(capture(tmp_path / "a.jsonl", frame(OUT, content))) == [new]


@each("pointer", ["a", "params/x", "/a~", "/a~2", "#/a", " /a"])
def test_what_is_no_json_pointer_is_refused(pointer):
    with pytest.raises(UsageError, match="is not a JSON Pointer"):
        ScrubOptions(keep=("/fine", pointer))


def test_a_pointer_may_lead_anywhere():
    assert ScrubOptions(keep=("", "/", "/a~0b~1c/0")).keep
