"""Bodies of HTTP exchanges for an archive: text as a JSON string, or base64.

A body may be larger than memory, and whether it is text is known only at its end. So a long body is stored in a
temporary file and written a portion at a time.
"""

import base64
import codecs
import json
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile

_IN_MEMORY = 1 << 16  # bytes of a body that are kept in memory
_ENCODED = 3 << 14  # bytes; base64 has four characters for three


class ArchivedBody:
    """The bytes of one body, added as they come; `close` it at the end."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (open as long as its exchange)
        self.size = 0
        self.is_text = True
        """The bytes so far are valid UTF-8."""
        self.omitted = 0
        """The number of bytes that are left out, because their frames are too large to join."""

    def add(self, raw: bytes) -> None:
        """Add the next bytes, which must not end inside a character."""
        self._file.write(raw)
        self.size += len(raw)
        if self.is_text:
            try:
                raw.decode()
            except UnicodeDecodeError:
                self.is_text = False

    def json(self) -> Iterator[bytes]:
        """Yield the body as a JSON string, a portion at a time: its text, or its bytes in base64."""
        self._file.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        yield b'"'
        while portion := self._file.read(_ENCODED):
            yield json.dumps(decoder.decode(portion))[1:-1].encode() if self.is_text else base64.b64encode(portion)
        yield b'"'

    def raw(self) -> Iterator[bytes]:
        """Yield the original bytes, a portion at a time."""
        self._file.seek(0)
        while portion := self._file.read(_ENCODED):
            yield portion

    def close(self) -> None:
        """Release the memory or the file."""
        self._file.close()
