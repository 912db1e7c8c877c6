"""Bytes in hexadecimal: all of them, with as many in a line as fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.tui.message.document import HexDump


def shown(raw, width):
    dump = HexDump(raw, width)
    return ["".join(text for text, _ in dump.pieces(line)) for line in range(len(dump))]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (80, ['00000000  00 01 02 03 04 05 06 07  08 09 0a 1b 22 41 ff 80  ............"A..',
              "00000010  7e 7f                                             ~."]),
        (50, ["00000000  00 01 02 03 04 05 06 07  ........", '00000008  08 09 0a 1b 22 41 ff 80  ...."A..',
              "00000010  7e 7f                    ~."]),
        (30, ["00000000  00 01 02 03  ....", "00000004  04 05 06 07  ....", "00000008  08 09 0a 1b  ....",
              '0000000c  22 41 ff 80  "A..', "00000010  7e 7f        ~."]),
    ],
)  # fmt: skip
def test_a_line_has_offset_digits_and_characters(width, lines):
    assert shown(bytes(range(11)) + b'\x1b"A\xff\x80~\x7f', width) == lines


@given(st.binary(max_size=200), st.integers(30, 200))
def test_all_bytes_are_there_within_the_width(raw, width):
    dump = HexDump(raw, width)
    digits = "".join(dump.pieces(line)[1][0] for line in range(len(dump)))
    assert bytes.fromhex(digits) == raw
    for line in range(len(dump)):
        text = "".join(piece for piece, _ in dump.pieces(line))
        assert text.isascii()
        assert text.isprintable()
        assert len(text) <= width
        assert dump.offset(line) == int(text[:8], 16)


def test_nothing_has_no_lines():
    assert shown(b"", 80) == []
