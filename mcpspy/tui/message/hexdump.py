"""The bytes of a frame as hexadecimal digits, with their ASCII characters beside them."""

from mcpspy.tui.message.pretty import Piece

_PER_LINE = ((16, 77), (8, 44))  # bytes per line, and the columns that this needs
_FEWEST = 4


class HexDump:
    """The lines of a dump in a pane of `width` columns."""

    def __init__(self, raw: bytes, width: int) -> None:
        self._raw = raw
        self._per = next((per for per, columns in _PER_LINE if width >= columns), _FEWEST)

    def __len__(self) -> int:
        """The number of lines."""
        return (len(self._raw) + self._per - 1) // self._per

    def pieces(self, line: int) -> list[Piece]:
        """Return offset, digits and characters of a line; bytes that are not printable ASCII are shown as dots."""
        start = line * self._per
        part = self._raw[start : start + self._per]
        digits = f"{part[:8].hex(' ')}  {part[8:].hex(' ')}".rstrip() if self._per > 8 else part.hex(" ")
        width = 3 * self._per + (self._per > 8)
        seen = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        return [(f"{self.offset(line):08x}  ", "label"), (digits.ljust(width), "number"), (f" {seen}", "string")]

    def offset(self, line: int) -> int:
        """Return the offset of the first byte of a line."""
        return line * self._per
