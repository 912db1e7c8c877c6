"""Reading a capture: damage is shown, never an exception (A-07)."""

import base64
import json
import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.capture.reader import Capture, Records, parse_header
from mcpspy.capture.records import Close, End, Frame, Gap, Gates, Header, Imported, Open, Release, Signal
from mcpspy.capture.scan import raw_of
from mcpspy.errors import CaptureError, NewerFormat, NotACapture
from tests.each import each
from tests.transcript import abandon, begin, capture, descriptor, finish

HEADER = {
    "mcpspy": 1,
    "id": "9f2c",
    "started": "2026-11-20T19:15:00.123456Z",
    "tool": "mcpspy 0.1.0",
    "transport": "stdio",
    "name": "weather",
    "argv": ["npx", "-y", "@scope/server"],
    "cwd": "/srv",
    "env": ["HOME", "PATH"],
    "pid": 4242,
    "ppid": 4200,
}
OPEN = {"kind": "open", "ch": 1, "t": 0, "from": "client", "role": "stdin", "framing": "lines"}
FRAME = {"kind": "frame", "ch": 1, "t": 5, "raw": "{}"}
CLOSE = {"kind": "close", "ch": 1, "t": 9, "how": "eof"}
GAP = {"kind": "gap", "t": 9, "lost": 12, "why": "no space left on device"}
RELEASE = {"kind": "release", "t": 6, "held": 3, "how": "expired"}
SIGNAL = {"kind": "signal", "t": 9, "signal": 15, "to": "group", "forwarded": False}
GATES = {
    "kind": "gates",
    "t": 9,
    "gates": [{"name": "slow", "when": {"method": "tools/call"}, "action": {"delay": 5}}],
    "by": "file",
}
END = {"kind": "end", "t": 9, "exit": {"code": 0}}


def line(record):
    return json.dumps(record).encode() + b"\n"


def file(*records, tail=b""):
    """Return the bytes of a capture; each record is an object, or raw bytes of the file."""
    return b"".join(record if isinstance(record, bytes) else line(record) for record in (HEADER, *records)) + tail


def decode(content, size=None):
    """Decode the content, all at once or `size` bytes at a time, and return the records."""
    decoder = Records()
    step = size or max(len(content), 1)
    found = [record for i in range(0, len(content), step) for record in decoder.feed(content[i : i + step])]
    return found + list(decoder.end())


def both(content):
    """Return the records, after a check that they are the same for the whole content, for bytes and for chunks."""
    found = decode(content)
    assert decode(content, 1) == found
    assert decode(content, 7) == found
    return found


# The format.


def test_a_header_reads_as_the_design_shows_it():
    assert parse_header(line(HEADER)) == Header(
        "9f2c",
        "2026-11-20T19:15:00.123456Z",
        "mcpspy 0.1.0",
        "stdio",
        "weather",
        ("npx", "-y", "@scope/server"),
        None,
        "/srv",
        ("HOME", "PATH"),
        4242,
        4200,
    )


@pytest.mark.parametrize(
    ("fields", "read"),
    [
        (
            {"from": "a HAR", "approximate": ["times of events", "bytes"], "missing": ["heads"]},
            Imported("a HAR", ("times of events", "bytes"), ("heads",)),
        ),
        ({"from": "a HAR", "later": 1}, Imported("a HAR")),
        ({}, Imported("")),
    ],
)
def test_a_header_tells_what_it_was_imported_from(fields, read):
    """See docs/import.md."""
    assert parse_header(line(HEADER | {"imported": fields})).imported == read


def test_records_read_as_the_design_shows_them():
    head = {"method": "POST", "target": "/mcp", "version": "1.1", "headers": [["host", "127.0.0.1:6278"]]}
    sent = {"headers": [["host", "127.0.0.1:3000"]]}
    assert both(
        file(
            OPEN,
            {"kind": "open", "ch": 6, "t": 91, "from": "client", "role": "request", "framing": "body"}
            | {"peer": "127.0.0.1:53412", "head": head, "sent": sent, "by": "host"},
            {"kind": "open", "ch": 7, "t": 92, "from": "server", "role": "response", "framing": "sse", "answers": 6},
            FRAME,
            {"kind": "frame", "ch": 2, "t": 6, "b64": "//4="},
            {"kind": "frame", "ch": 2, "t": 7, "raw": "tail", "cut": True},
            {"kind": "frame", "ch": 2, "t": 8, "raw": "x", "op": "ping", "from": "mcpspy", "sent": "y", "by": "edit"},
            CLOSE,
            {"kind": "close", "ch": 2, "t": 9, "how": "abort", "code": 1001, "reason": "going away"},
            GAP,
            END,
        )
    ) == [
        Open(2, 1, 0, "client", "stdin", "lines"),
        Open(3, 6, 91, "client", "request", "body", None, "127.0.0.1:53412", head, sent, "host"),
        Open(4, 7, 92, "server", "response", "sse", 6),
        Frame(5, 1, 5, b"{}"),
        Frame(6, 2, 6, b"\xff\xfe"),
        Frame(7, 2, 7, b"tail", cut=True),
        Frame(8, 2, 8, b"x", op="ping", sender="mcpspy", sent=b"y", by="edit"),
        Close(9, 1, 9, "eof"),
        Close(10, 2, 9, "abort", 1001, "going away"),
        Gap(11, 9, 12, "no space left on device"),
        End(12, 9, code=0),
    ]


@pytest.mark.parametrize(
    ("fields", "end"),
    [
        ({"exit": {"signal": 15}}, End(2, 9, signal=15)),
        ({"exit": {"code": 127}, "why": "not found"}, End(2, 9, code=127, why="not found")),
        ({}, End(2, 9)),
        ({"exit": None}, End(2, 9)),
    ],
)
def test_the_end_says_how_the_server_ended_if_there_was_one(fields, end):
    assert both(file({"kind": "end", "t": 9} | fields)) == [end]


@pytest.mark.parametrize(
    "record",
    [{"kind": "mark", "t": 5}, {"kind": "mark"}, {"kind": "frame2", "ch": "x", "t": None}, {"kind": None}, {"kind": 5}],
)
def test_kinds_that_this_version_does_not_know_are_skipped(record):
    assert both(file(OPEN, record, FRAME)) == [Open(2, 1, 0, "client", "stdin", "lines"), Frame(4, 1, 5, b"{}")]


def test_keys_that_this_version_does_not_know_are_skipped():
    new = {"new": [1, {"deep": None}]}
    content = b"".join(line(record | new) for record in (HEADER, OPEN, FRAME, CLOSE, GAP, END))
    assert both(content) == both(file(OPEN, FRAME, CLOSE, GAP, END))


def test_what_a_gate_did_to_a_frame_is_told_apart():
    """Four cases: changed, dropped (`sent` is null), held, and unchanged (no `sent`)."""
    records = both(
        file(
            OPEN,
            FRAME | {"sent": "x", "by": "gate a"},
            FRAME | {"sent": {"b64": "/w=="}, "by": "gate a"},
            FRAME | {"sent": None, "by": "gate a"},
            FRAME | {"held": 3, "by": "gate a"},
            FRAME | {"undecided": True},
            {"kind": "release", "t": 6, "held": 3, "how": "edited", "sent": "y", "by": "gate a"},
            {"kind": "release", "t": 7, "held": 4, "how": "dropped", "sent": None},
            {"kind": "release", "t": 8, "held": 5, "how": "continued"},
        )
    )
    assert records[1:] == [
        Frame(3, 1, 5, b"{}", sent=b"x", by="gate a"),
        Frame(4, 1, 5, b"{}", sent=b"\xff", by="gate a"),
        Frame(5, 1, 5, b"{}", by="gate a", dropped=True),
        Frame(6, 1, 5, b"{}", by="gate a", held=3),
        Frame(7, 1, 5, b"{}", undecided=True),
        Release(8, 6, 3, "edited", b"y", "gate a"),
        Release(9, 7, 4, "dropped", dropped=True),
        Release(10, 8, 5, "continued"),
    ]


def test_a_release_belongs_to_no_channel_and_cuts_no_frame():
    found = both(file(OPEN, piece(1, "a"), RELEASE, piece(1, "b", more=False)))
    assert [type(record) for record in found] == [Open, Release, Frame]
    assert found[2].raw == b"ab"


def test_a_file_with_carriage_returns_reads_alike():
    """As after a transfer by way of Windows."""
    assert both(file(OPEN, FRAME, END).replace(b"\n", b"\r\n")) == both(file(OPEN, FRAME, END))


def test_a_last_record_without_its_newline_is_read():
    assert both(file(OPEN, FRAME)[:-1]) == both(file(OPEN, FRAME))


# Frames in pieces.


def piece(t, raw, more=True, ch=1, **fields):
    body = {"raw": raw} if isinstance(raw, str) else {"b64": base64.b64encode(raw).decode()}
    return {"kind": "frame", "ch": ch, "t": t} | body | ({"more": True} if more else {}) | fields


def test_pieces_come_out_joined_at_the_place_of_the_last_one():
    """F-04."""
    assert both(file(piece(1, "ab"), piece(2, b"\xff"), piece(3, "cd", more=False))) == [Frame(4, 1, 3, b"ab\xffcd")]


def test_pieces_of_several_channels_may_be_mixed():
    assert both(
        file(
            piece(1, "a1"),
            piece(2, "b1", ch=2),
            FRAME | {"ch": 3},
            piece(3, "b2", more=False, ch=2),
            piece(4, "a2", more=False),
        )
    ) == [Frame(4, 3, 5, b"{}"), Frame(5, 2, 3, b"b1b2"), Frame(6, 1, 4, b"a1a2")]


def test_a_joined_frame_is_cut_where_its_last_piece_is():
    assert both(file(piece(1, "ab"), piece(2, "c", more=False, cut=True))) == [Frame(3, 1, 2, b"abc", cut=True)]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([], []),
        ([CLOSE], [Close(4, 1, 9, "eof")]),
        ([GAP], [Gap(4, 9, 12, "no space left on device")]),
        ([END], [End(4, 9, code=0)]),
        ([b"{torn\n"], [Gap(4, 2, 1, "a damaged line")]),
        ([b"{torn"], [Gap(4, 2, 1, "a damaged line")]),
        ([OPEN], [Open(4, 1, 0, "client", "stdin", "lines")]),
    ],
    ids=["the end of the file", "a close", "a gap", "the end", "a damaged line", "a torn line", "an open"],
)
def test_more_without_the_rest_is_cut(after, expected):
    """A-07: if the file ends after a piece with `more`, the frame is yielded with `cut`."""
    assert both(file(piece(1, "ab"), piece(2, "cd"), *after)) == [Frame(3, 1, 2, b"abcd", cut=True), *expected]


def test_the_close_of_another_channel_cuts_nothing():
    found = both(file(piece(1, "ab"), CLOSE | {"ch": 2}, piece(2, "cd", more=False)))
    assert found == [Close(3, 2, 9, "eof"), Frame(4, 1, 2, b"abcd")]


# Damage.


def test_a_torn_line_in_the_middle_is_a_gap_in_its_place():
    assert both(file(OPEN, FRAME, b'{"kind":"frame","ch":1,"t":6,"ra\n', FRAME | {"t": 7})) == [
        Open(2, 1, 0, "client", "stdin", "lines"),
        Frame(3, 1, 5, b"{}"),
        Gap(4, 5, 1, "a damaged line"),
        Frame(5, 1, 7, b"{}"),
    ]


def test_a_gap_record_counts_the_torn_line_that_it_follows():
    assert both(file(FRAME, b'{"kind":"fra\n', GAP)) == [
        Frame(2, 1, 5, b"{}"),
        Gap(4, 9, 12, "no space left on device"),
    ]


def test_a_truncated_tail_is_a_gap():
    for length in range(1, len(line(FRAME)) - 1):
        found = both(file(OPEN, FRAME, tail=line(FRAME)[:length]))
        assert found[-1] == Gap(4, 5, 1, "a damaged line")
        assert len(found) == 3


def test_every_damaged_line_is_told():
    assert [type(record) for record in both(file(b"x\n", b"\n", b"\xff\n", FRAME, b"{}\n", b"[]\n"))] == [
        Gap,
        Gap,
        Gap,
        Frame,
        Gap,
        Gap,
    ]


@each(
    "record",
    [
        b"",
        b"null",
        b"5",
        b"[]",
        b'"x"',
        b"{}",
        b'{"kind":[]}',
        b'{"kind":{}}',
        b'{"kind":"frame"}',
        b'{"kind":"frame","ch":1}',
        b'{"kind":"frame","ch":1,"t":1}',
        b'{"kind":"frame","t":1,"raw":""}',
        b'{"kind":"frame","ch":"1","t":1,"raw":""}',
        b'{"kind":"frame","ch":1,"t":"1","raw":""}',
        b'{"kind":"frame","ch":1,"t":1.5,"raw":""}',
        b'{"kind":"frame","ch":1,"t":true,"raw":""}',
        b'{"kind":"frame","ch":1,"t":123456789012345678901234567890,"raw":""}',
        b'{"kind":"frame","ch":1,"t":1,"raw":5}',
        b'{"kind":"frame","ch":1,"t":1,"raw":["x"]}',
        b'{"kind":"frame","ch":1,"t":1,"b64":"x"}',
        b'{"kind":"frame","ch":1,"t":1,"b64":"\\u00e9"}',
        b'{"kind":"frame","ch":1,"t":1,"b64":5}',
        b'{"kind":"frame","ch":1,"t":1,"raw":"\\ud800"}',
        b'{"kind":"open","ch":1,"t":1}',
        *(
            b'{"kind":"open","ch":1,"t":1,"from":"client","role":"request","framing":"body",' + wrong + b"}"
            for wrong in (
                b'"role":[]',
                b'"framing":{}',
                b'"answers":{}',
                b'"peer":[]',
                b'"head":5',
                b'"sent":1',
                b'"by":2',
            )
        ),
        b'{"kind":"close","ch":1,"t":1}',
        b'{"kind":"close","ch":1,"t":1,"how":"eof","reason":5}',
        b'{"kind":"close","ch":1,"t":1,"how":"eof","code":"x"}',
        b'{"kind":"gap","t":1}',
        b'{"kind":"end","t":1,"exit":"x"}',
        b'{"kind":"end","t":1,"exit":[1]}',
        b'{"kind":"end"}',
        b"[" * 100_000,
        b'{"kind":"frame","ch":1,"t":1,"raw":"\xff"}',
        *(line(FRAME | wrong).strip() for wrong in ({"held": "3"}, {"by": 5}, {"by": 0})),
        *(line(RELEASE | wrong).strip() for wrong in ({"held": "3"}, {"how": 5}, {"sent": 5}, {"sent": {}}, {"by": 0})),
        *(line(SIGNAL | wrong).strip() for wrong in ({"to": "all"}, {"signal": "15"}, {"signal": True})),
        line(SIGNAL | {"forwarded": None}).strip(),
        *(line(GATES | wrong).strip() for wrong in ({"gates": {}}, {"gates": ["slow"]}, {"gates": None}, {"by": None})),
    ],
)
def test_a_record_that_is_none_is_a_gap(record):
    """C-02, A-07."""
    assert decode(file(FRAME, record + b"\n", FRAME)) == [
        Frame(2, 1, 5, b"{}"),
        Gap(3, 5, 1, "a damaged line"),
        Frame(4, 1, 5, b"{}"),
    ]


# Files that are not captures, or have a newer format.


@pytest.mark.parametrize(
    "first",
    [
        b"\n",
        b"hello\n",
        b"\x89PNG\r\n\x1a\n",
        b"[]\n",
        b"{}\n",
        b'"mcpspy"\n',
        b'{"mcpspy":"1"}\n',
        b'{"mcpspy":null}\n',
        b'{"mcpspy":1}\n',
        b'{"mcpspy":1,"started":"yesterday"}\n',
        b'{"mcpspy":1,"started":5}\n',
        b'{"mcpspy":1,"started":"2026-11-20T19:15:00Z","argv":5}\n',
        b'{"log":{"version":"1.2","entries":[]}}\n',
        line(FRAME),
        b"x" * (2 << 20),
    ],
)
def test_a_file_that_does_not_begin_as_a_capture_is_none(first):
    with pytest.raises(NotACapture):
        decode(first + line(FRAME))


@pytest.mark.parametrize("number", [2, 3, 1000])
def test_a_newer_format_is_named_with_who_wrote_it(number):
    with pytest.raises(NewerFormat, match=f"has format {number}, written by mcpspy 9.0; this mcpspy reads up to 1"):
        decode(line({"mcpspy": number, "tool": "mcpspy 9.0", "anything": "else"}))


def test_the_smallest_header_is_enough():
    header = parse_header(b'{"mcpspy":1,"started":"2026-11-20T19:15:00Z"}')
    assert (header.name, header.argv, header.pid) == ("", (), None)


# Properties.

CONTENT = file(
    OPEN,
    {"kind": "open", "ch": 2, "t": 0, "from": "server", "role": "stdout", "framing": "lines"},
    FRAME,
    piece(6, "ab"),
    {"kind": "frame", "ch": 2, "t": 7, "b64": "/w=="},
    piece(8, "cd", more=False),
    {"kind": "frame", "ch": 2, "t": 9, "raw": "é\u2028🌍"},
    GAP,
    CLOSE,
    END,
)
FIRST = CONTENT.index(b"\n") + 1
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)
FIELDS = "kind ch t raw b64 more cut op from role framing how lost why exit head sent by answers".split()


@given(st.data())
def test_damage_anywhere_is_at_most_not_a_capture_or_a_newer_one(data):
    content = bytearray(CONTENT)
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(content)))
        length = data.draw(st.integers(0, 40))
        content[at : at + length] = data.draw(st.binary(max_size=5) | st.just(bytes(content[at : at + 60])))
    try:
        whole = decode(bytes(content))
    except (NotACapture, NewerFormat):
        return
    assert decode(bytes(content), data.draw(st.integers(1, 50))) == whole


@given(
    st.lists(
        st.dictionaries(st.sampled_from(FIELDS), VALUE | st.sampled_from(["frame", "open", "close", "gap", "end"]))
    )
)
@example([{"kind": "frame", "ch": 1, "t": 0, "raw": "x", "more": 1}, {"kind": "close", "ch": 1, "t": 0, "how": 1}])
def test_records_of_any_shape_never_raise(records):
    both(file(*records))


@given(st.dictionaries(st.sampled_from(list(HEADER)), VALUE))
def test_headers_of_any_shape_are_at_most_not_a_capture_or_a_newer_one(changes):
    try:
        assert parse_header(line(HEADER | changes)).started
    except (NotACapture, NewerFormat):
        pass


@given(st.integers(FIRST, len(CONTENT)))
def test_a_file_cut_anywhere_reads_up_to_there(length):
    whole, found = decode(CONTENT), decode(CONTENT[:length])
    assert sum(isinstance(record, Gap) and record.why == "a damaged line" for record in found) <= 1
    for record in found:
        if isinstance(record, Frame) and record.cut:
            assert any(isinstance(other, Frame) and other.raw.startswith(record.raw) for other in whole)
        elif not isinstance(record, Gap):
            assert record in whole


# Files.


def test_a_capture_is_read_as_often_as_one_likes(tmp_path):
    path = capture(tmp_path / "a", '> {"id":1,"method":"ping"}')
    opened = Capture(path)
    assert opened.header.name == "weather"
    assert list(opened.records()) == list(opened.records())
    assert not opened.live


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty: not a capture"),
        (b'{"mcpspy":1,"id":"9f', "has only part of a header: not a capture"),
        (b"hello\n", "is not a capture: its first line is not a capture header"),
        (
            b'{"mcpspy":2,"tool":"mcpspy 9.0"}\n',
            "has format 2, written by mcpspy 9.0; this mcpspy reads up to 1: update it",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, content, sentence):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(CaptureError) as refusal:
        Capture(str(tmp_path / "a"))
    assert str(refusal.value) == f"{tmp_path / 'a'} {sentence}"


@pytest.mark.parametrize("what", ["missing", "a directory", "below a file"])
def test_a_path_that_cannot_be_opened_is_named(tmp_path, what):
    (tmp_path / "file").touch()
    path = {"missing": tmp_path / "x", "a directory": tmp_path, "below a file": tmp_path / "file" / "x"}[what]
    with pytest.raises(CaptureError, match="cannot read ") as refusal:
        Capture(str(path))
    assert str(path) in str(refusal.value)


def test_a_header_longer_than_one_read_is_read(tmp_path):
    (tmp_path / "a").write_bytes(line(HEADER | {"argv": ["x" * 200_000]}))
    assert len(Capture(str(tmp_path / "a")).header.argv[0]) == 200_000


def test_a_deleted_capture_is_not_live_and_cannot_be_read(tmp_path):
    opened = Capture(capture(tmp_path / "a", ""))
    os.unlink(tmp_path / "a")
    assert not opened.live
    with pytest.raises(CaptureError, match="No such file"):
        list(opened.records())


# Following. `wait` runs the next step of the writer, so the tests need neither threads nor sleeps.


class Meanwhile:
    """A `wait` that is called at the end of the file: it runs the next step, and fails when no step is left."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def __call__(self):
        assert self.steps, "follow waits although nothing will come"
        self.steps.pop(0)()


def test_a_growing_capture_is_followed_to_its_end(tmp_path):
    writer = begin(tmp_path / "a")
    meanwhile = Meanwhile(
        lambda: writer.frame(1, 1, b"one", more=False, cut=False),
        lambda: None,
        lambda: writer.frame(1, 2, b"two", more=True, cut=False),
        lambda: writer.frame(1, 3, b"three", more=False, cut=False),
        lambda: finish(writer, 4),
    )
    assert list(Capture(str(tmp_path / "a")).follow(meanwhile)) == [
        Frame(2, 1, 1, b"one"),
        Frame(4, 1, 3, b"twothree"),
        End(5, 4, code=0),
    ]
    assert not meanwhile.steps


def test_a_record_is_given_when_for_a_moment_no_earlier_one_has_come(tmp_path):
    writer = begin(tmp_path / "a")
    following = Capture(str(tmp_path / "a")).follow(Meanwhile(*[lambda: None] * 5))
    writer.frame(1, 1, b"one", more=False, cut=False)
    assert next(following) == Frame(2, 1, 1, b"one")


def test_a_line_that_is_being_written_is_waited_for(tmp_path):
    writer = begin(tmp_path / "a")
    text = line(FRAME)
    meanwhile = Meanwhile(
        lambda: os.write(descriptor(writer), text[:10]),
        lambda: os.write(descriptor(writer), text[10:]),
        lambda: finish(writer, 9),
    )
    assert list(Capture(str(tmp_path / "a")).follow(meanwhile)) == [Frame(2, 1, 5, b"{}"), End(3, 9, code=0)]


def test_following_ends_where_the_relay_was_killed(tmp_path):
    """S-07: without a lock and without an `end`, the relay was killed, and `follow` stops."""
    writer = begin(tmp_path / "a")

    def die():
        writer.frame(1, 1, b"last", more=False, cut=False)
        abandon(writer)

    assert list(Capture(str(tmp_path / "a")).follow(Meanwhile(die))) == [Frame(2, 1, 1, b"last")]


def test_a_finished_capture_is_followed_without_waiting(tmp_path):
    opened = Capture(capture(tmp_path / "a", "> {}"))
    assert list(opened.follow(Meanwhile())) == list(opened.records())


@pytest.mark.parametrize("how", ["deleted", "replaced", "truncated"])
def test_following_ends_where_the_capture_is_gone(tmp_path, how):
    writer = begin(tmp_path / "a")
    writer.frame(1, 1, b"one", more=False, cut=False)

    def vanish():
        if how == "deleted":
            os.unlink(tmp_path / "a")
        elif how == "replaced":
            (tmp_path / "b").write_bytes(file(FRAME))
            os.replace(tmp_path / "b", tmp_path / "a")
        else:
            os.truncate(tmp_path / "a", 10)

    assert list(Capture(str(tmp_path / "a")).follow(Meanwhile(vanish))) == [Frame(2, 1, 1, b"one")]
    finish(writer, 2)


@pytest.mark.parametrize(
    ("record", "raw"),
    [
        ({"kind": "frame", "ch": 1, "t": 1, "raw": 'é"\\'}, 'é"\\'.encode()),
        ({"kind": "frame", "ch": 1, "t": 1, "b64": "AA=="}, b""),
        ({"kind": "open", "ch": 1, "t": 1, "raw": "x"}, b""),
        ({"kind": "frame", "ch": 1, "t": 1, "raw": 1}, b""),
        ({"raw": "x"}, b""),
        (["frame"], b""),
    ],
)
def test_the_bytes_of_a_frame_alone(record, raw):
    assert raw_of(json.dumps(record).encode() + b"\n") == raw


@pytest.mark.parametrize("line", [b"", b"\n", b"{", b"\xff", b'{"kind":"frame","raw":"\\ud800"}'])
def test_what_is_no_record_has_no_bytes(line):
    assert raw_of(line) == b""


@pytest.mark.parametrize("to", ["group", "process"])
def test_a_signal_is_read(to):
    """C-02."""
    assert both(file(SIGNAL | {"to": to, "forwarded": to == "process"})) == [Signal(2, 9, 15, to, to == "process")]


def test_the_gates_in_force_are_read():
    assert both(file(GATES)) == [Gates(2, 9, tuple(GATES["gates"]), "file")]
    assert both(file(GATES | {"gates": [], "by": "viewer"})) == [Gates(2, 9, (), "viewer")]
    pieces = both(file(piece(1, "ab"), GATES, piece(2, "cd", more=False)))
    assert [type(record) for record in pieces] == [Gates, Frame]


@pytest.mark.parametrize(("control", "expected"), [(True, True), (False, False), ("yes", False), (None, False)])
def test_the_header_tells_whether_a_viewer_can_set_gates(control, expected):
    assert parse_header(line(HEADER | {"control": control})).control is expected
    assert parse_header(line(HEADER)).control is False


@pytest.mark.parametrize(("value", "expected"), [(812, 812), (0, None), (-1, None), (True, None), ("812", None)])
def test_the_start_of_the_client_process_is_a_number_or_not_known(value, expected):
    assert parse_header(line(HEADER | {"client_start": value})).client_start == expected
    assert parse_header(line(HEADER)).client_start is None
