"""Framing of stdio: every case runs whole, byte by byte and with trailing data."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.wire.lines import PIECE, Lines
from tests.wire.splitting import bytes_of, decoded_by


def split(*chunks):
    return decoded_by(Lines(), *chunks)


def singly(stream):
    return split(*bytes_of(stream))


def whole(raw):
    return (raw, False, False)


CASES = {
    "one line": (b"{}\n", [whole(b"{}")]),
    "two lines": (b"{}\n[]\n", [whole(b"{}"), whole(b"[]")]),
    "a carriage return is kept": (b'{"id":1}\r\n', [whole(b'{"id":1}\r')]),
    "a carriage return alone ends nothing": (b"a\rb\n", [whole(b"a\rb")]),
    "a byte order mark is kept": (b"\xef\xbb\xbf{}\n", [whole(b"\xef\xbb\xbf{}")]),
    "blank lines are lines": (b"\n \n\n", [whole(b""), whole(b" "), whole(b"")]),
    "NUL, form feed and vertical tab end nothing": (b"\0{}\x0b\x0c\x1c\n", [whole(b"\0{}\x0b\x0c\x1c")]),
    "U+2028, U+2029 and U+0085 end nothing": (
        "{\u2028\u2029\u0085}\n".encode(),
        [whole("{\u2028\u2029\u0085}".encode())],
    ),
    "what is not UTF-8 is kept": (b"\xff\xfe\x80\n", [whole(b"\xff\xfe\x80")]),
    "pretty-printed JSON is several lines": (b'{\n "id": 1\n}\n', [whole(b"{"), whole(b' "id": 1'), whole(b"}")]),
    "an escaped newline ends nothing": (b'"a\\nb"\n', [whole(b'"a\\nb"')]),
}


@pytest.mark.parametrize("name", CASES)
def test_lines_end_at_0x0a_and_nowhere_else(name):
    """F-01."""
    stream, expected = CASES[name]
    assert split(stream) == expected
    assert singly(stream) == expected
    assert split(stream + b"rest") == [*expected, (b"rest", False, True)]
    assert split(stream, b"rest") == [*expected, (b"rest", False, True)]


def test_an_unterminated_tail_is_cut():
    """F-01."""
    assert split(b'{}\n{"id":') == [whole(b"{}"), (b'{"id":', False, True)]
    assert singly(b'{}\n{"id":') == [whole(b"{}"), (b'{"id":', False, True)]


def test_a_chunk_without_bytes_changes_nothing():
    assert split(b"ab", b"", b"c\n", b"") == [whole(b"abc")]


def test_a_long_line_that_never_ends_is_cut_in_its_last_piece():
    """F-01, F-04."""
    decoder = Lines()
    assert decoder.feed(b"a" * (PIECE + 3)) == [(b"a" * PIECE, True, False)]
    assert decoder.end() == [(b"aaa", False, True)]
    assert decoder.end() == []


@pytest.mark.parametrize("character", ["é", "\u2028", "\U0001f30d"])
@pytest.mark.parametrize("shift", range(4))
def test_no_piece_ends_inside_a_utf_8_sequence(character, shift):
    """F-02: a piece of valid UTF-8 can be recorded as a string."""
    line = ("a" * shift + character * PIECE).encode()
    for triples in (split(line + b"\n"), split(*(line[i : i + 1000] for i in range(0, len(line), 1000)), b"\n")):
        assert "".join(raw.decode() for raw, _, _ in triples).encode() == line
        assert all(PIECE - 3 <= len(raw) <= PIECE for raw, more, _ in triples if more)


def test_continuation_bytes_without_end_are_cut_at_the_limit():
    assert [len(raw) for raw, _, _ in split(b"\x80" * (PIECE + 1) + b"\n")] == [PIECE, 1]


@given(st.lists(st.sampled_from([b"\n", b"\r\n", b"{}", b"\xff", "é\u2028🌍".encode(), b"a" * PIECE]) | st.binary()))
@example([b"a" * PIECE, b"\n"])
@example([b"a" * PIECE, b"a\n"])
def test_chunk_boundaries_cannot_matter(chunks):
    """F-01: a stream gives the same frames whole, in chunks and byte by byte, and no byte is lost."""
    stream = b"".join(chunks)
    triples = split(stream)
    assert split(*chunks) == triples
    if len(stream) <= 3 * PIECE:
        assert singly(stream) == triples
    assert b"".join(raw + (b"" if more or cut else b"\n") for raw, more, cut in triples) == stream
    assert not any(b"\n" in raw for raw, _, _ in triples)


@given(st.lists(st.text(max_size=200), max_size=5), st.integers(0, 5), st.integers(1, 70000))
def test_pieces_of_utf_8_are_utf_8_in_any_chunks(texts, repeat, size):
    stream = ("🌍é" * 7000 * repeat + "\n".join(texts)).encode()
    for raw, _, _ in split(*(stream[i : i + size] for i in range(0, len(stream), size))):
        raw.decode()


@given(st.lists(st.recursive(st.none() | st.text() | st.floats(), st.lists, max_leaves=5)))
def test_messages_come_out_as_they_went_in(values):
    texts = [json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") for value in values]
    assert [raw for raw, _, _ in split(b"".join(text + b"\n" for text in texts))] == texts


def test_the_module_imports_nothing():
    """`wrap` imports it, and must stay light (S-13)."""
    import mcpspy.wire.lines

    with open(mcpspy.wire.lines.__file__, encoding="utf-8") as file:
        assert not re.search(r"^\s*(?:import|from) ", file.read(), re.MULTILINE)
