"""Lines of a scrubbed capture: numbers, pieces, damaged lines, and withheld content."""

import base64
import json

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame
from mcpspy.capture.scan import LARGEST
from mcpspy.sharing.scrub import Scrub
from tests.each import each
from tests.sharing.scrub.captures import ERR, IN, OUT, call, capture, frame, header, opened, scrubbed, written

SECRET = "correct-horse-99"


def pieces(ch, text, size=10):
    """Return a frame in pieces."""
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    return [frame(ch, part, **({"more": True} if n < len(parts) - 1 else {})) for n, part in enumerate(parts)]


def seen(path):
    """Return the records as readers get them, without the bytes of frames."""
    return [
        (type(it), it.n, it.t, getattr(it, "cut", None), getattr(it, "why", None)) for it in Capture(path).records()
    ]


def raws(path):
    return [it.raw for it in Capture(path).records() if isinstance(it, Frame)]


def test_a_frame_in_pieces_stays_in_as_many_and_others_stand_between(tmp_path):
    first, *rest = pieces(OUT, json.dumps({"ü": "é" * 30, "password": SECRET, "x": "ä" * 40}, ensure_ascii=False))
    path = capture(tmp_path / "a.jsonl", first, frame(ERR, f"{SECRET} between"), *rest, frame(IN, "after"))
    new = written(tmp_path / "b.jsonl", *(line[:-1] for line in scrubbed(path)))
    assert seen(new) == seen(path)
    assert raws(new)[0] == b"redacted-value-1 between"
    assert json.loads(raws(new)[1])["password"] == "redacted-value-1"
    assert all("raw" in json.loads(line) for line in scrubbed(path)[4:])


@each(
    "end",
    [[], [b"{"], [{"kind": "close", "t": 1, "ch": OUT, "how": "eof"}], [{"kind": "gap", "t": 1, "lost": 1, "why": "x"}],
     [{"kind": "end", "t": 1}], [opened(OUT, "server", "stdout", "lines")]],
)  # fmt: skip
def test_a_frame_without_its_last_piece_is_scrubbed_and_stays_cut(tmp_path, end):
    torn = pieces(OUT, json.dumps({"password": SECRET, "x": "abc"}))[:-1]
    path = capture(tmp_path / "a.jsonl", *torn, *end, frame(IN, "after"))
    new = written(tmp_path / "b.jsonl", *(line[:-1] for line in scrubbed(path)))
    assert seen(new) == seen(path)
    assert SECRET.encode() not in b"".join(raws(new))


def test_a_damaged_line_tells_nothing_and_stays_damaged(tmp_path):
    torn = [b'{"kind":"frame","ch":1,"raw":"' + SECRET.encode(), b"", b"[1,2]", b'{"kind":"open"}']
    later = {"kind": "later", "t": 1, "password": SECRET}
    path = capture(tmp_path / "a.jsonl", frame(IN, "a"), *torn, later, frame(IN, "b"))
    scrub = Scrub(path)
    new = written(tmp_path / "b.jsonl", *(line[:-1] for line in scrub.lines()))
    assert seen(new) == seen(path)
    assert SECRET.encode() not in b"".join(scrub.lines())
    assert scrub.damaged == 4


def test_a_last_line_without_its_newline_counts(tmp_path):
    path = capture(tmp_path / "a.jsonl", frame(IN, "a"))
    with open(path, "ab") as file:
        file.write(json.dumps(frame(IN, f"password={SECRET}")).encode())
    assert json.loads(scrubbed(path)[-1])["raw"] == "password=redacted-value-1"
    with open(path, "ab") as file:
        file.write(b"\n{")
    assert Scrub(path).damaged == 1


def test_bytes_that_are_no_utf8_keep_their_place_around_a_secret(tmp_path):
    raw = b"\xff password=" + SECRET.encode() + b" \xfe"
    path = capture(tmp_path / "a.jsonl", {"kind": "frame", "ch": OUT, "t": 1, "b64": base64.b64encode(raw).decode()})
    assert base64.b64decode(json.loads(scrubbed(path)[4])["b64"]) == raw.replace(SECRET.encode(), b"redacted-value-1")


def test_frames_that_were_not_decoded_are_withheld(tmp_path):
    gzip = base64.b64encode(b"\x1f\x8b" + bytes(range(200, 256))).decode()
    path = capture(
        tmp_path / "a.jsonl",
        opened(5, "server", "response", "body"), {"kind": "frame", "ch": 5, "t": 1, "b64": gzip},
        {"kind": "close", "ch": 5, "t": 1, "how": "eof", "reason": "br: bad data"},
        opened(6, "server", "ws", "message"), frame(6, "plain", op="binary"), frame(6, "beat", op="ping"),
    )  # fmt: skip
    new = list(map(json.loads, scrubbed(path)))
    assert new[5] == {"kind": "frame", "ch": 5, "t": 1, "raw": "«withheld: 58 bytes»"}
    assert new[8]["raw"] == "«withheld: 5 bytes»"
    assert new[9]["raw"] == "beat"
    scrub = Scrub(path)
    assert [(it.kind, it.count) for it in scrub.replaced] == [("frame that was not decoded", 2)]
    again = written(tmp_path / "b.jsonl", *(line[:-1] for line in scrub.lines()))
    assert not list(Scrub(again).places())


@pytest.mark.parametrize("apart", [False, True])
def test_a_frame_over_the_limit_becomes_spaces_and_readers_see_one_of_its_size(tmp_path, apart):
    message = json.dumps(call({"x": f"{SECRET} " * (LARGEST // 16)}))
    lines = pieces(IN, message, 65536)
    if apart:
        lines.insert(3, frame(ERR, f"password={SECRET}"))
    path = capture(tmp_path / "a.jsonl", *lines, frame(IN, call({})))
    scrub = Scrub(path)
    new = written(tmp_path / "b.jsonl", *(line[:-1] for line in scrub.lines()))
    assert SECRET.encode() not in (tmp_path / "b.jsonl").read_bytes()
    assert [it[:3] for it in seen(new)] == [it[:3] for it in seen(path)]
    sizes = [[it.size for it in Capture(one).records() if isinstance(it, Frame)][-2:] for one in (path, new)]
    assert sizes[0] == sizes[1]
    assert ("frame that was not decoded", 1) in [(it.kind, it.count) for it in scrub.replaced]


def test_a_line_of_an_older_or_other_writer_is_scrubbed_too(tmp_path):
    line = b'{"t": 1, "raw": "password=' + SECRET.encode() + b'", "ch": 1, "kind": "frame", "later": "token=abc123"}'
    new = json.loads(scrubbed(capture(tmp_path / "a.jsonl", line))[4])
    assert new == {
        "t": 1, "raw": "password=redacted-value-1", "ch": 1, "kind": "frame", "later": "token=redacted-value-2"
    }  # fmt: skip


@each(
    "line",
    [
        '{"kind":"frame","ch":1,"t":2,"raw":"{\\"password\\":\\"Hunter2Fluffy\\"}","raw":"{}"}',
        '{"kind":"frame","ch":1,"t":2,"raw":"{}","b64":"eyJwYXNzd29yZCI6Ikh1bnRlcjJGbHVmZnkifQ=="}',
        '{"kind":"frame","ch":1,"t":2,"b64":"{password=Hunter2Fluffy}"}',
        '{"kind":"frame","ch":1,"t":2,"raw":"{}","sent":{"b64":"e30=","x":"Hunter2Fluffy"}}',
        '{"kind":"later","t":2,"password":"Hunter2Fluffy","password":1}',
        '{"kind":"gap","t":2,"why":"password=Hunter2Fluffy","why":"disk","lost":1}',
    ],
)
def test_what_readers_do_not_see_of_a_record_is_not_copied(tmp_path, line):
    """A-13: of two members of one name, and of `raw` and `b64`, readers see one."""
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(header())}\n{line}\n")
    written_lines = scrubbed(path)
    assert len(written_lines) == 2
    assert not any(hidden in str(written_lines) for hidden in ("Hunter2Fluffy", "eyJwYXNz"))


def test_the_title_of_a_withheld_page_is_removed(tmp_path):
    page = '«withheld: 151 bytes, title "Login of ACME"»'
    path = capture(tmp_path / "a.jsonl", opened(5, "server", "response", "body"), frame(5, page))
    assert json.loads(scrubbed(path)[5])["raw"] == "«withheld: 151 bytes»"
