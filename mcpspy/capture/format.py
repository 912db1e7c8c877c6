"""What the writer and the readers of captures share: constants, the lock of a live capture, JSON of values.

`docs/capture-format.md` describes the file. The encoding is that for values that a JSON library refuses, and for bytes
that are not text.

Imported on the `wrap` path: only built-in modules are imported, and none from the package.
"""

import sys
import time
from _json import encode_basestring
from binascii import b2a_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    pass

FORMAT = 1
"""The format number that this version writes; it is independent of the version of the program."""

MAGIC = b'{"mcpspy":'
"""The start of every capture."""

FRAME_LINE = b'{"kind":"frame",'
"""The start of a line that holds a frame, as our writer writes it."""

MORE = b'"more"'
"""The member of a partial frame as written in the line; inside a JSON string its quotes would be escaped."""

VIEWER = "viewer"
"""`by` of gates set by a viewer, of a request sent by a viewer, and of the response to it."""

RELOAD = "reload"
"""`by` of everything that `wrap --reload` changed, held, dropped or sent while it replaced the server."""

LEFT_OUT_BY_CUT = "left out by mcpspy cut"
"""`why` of a gap where `mcpspy cut` left out whole exchanges, so nothing is missing of the others."""

LOST = "the rest of the compressed file is missing"
"""The beginning of `why` of the gap at the end of a compressed capture that is damaged or incomplete."""

OWN_ID = "mcpspy-"
"""The prefix of the ids of requests sent by a viewer or by `wrap --reload`."""


def take(fd: int) -> bool:
    """Acquire the lock that marks a live capture; False if another process has it. Without file locks, always True."""
    if sys.platform == "win32":
        return True
    for _ in range(3):  # a viewer that checks whether the file is live has a shared lock for a moment
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.001)
        except OSError:
            return True
    return False


def is_live(fd: int, without_locks: bool = False) -> bool:
    """Return whether a process has locked this file; `without_locks` is the result on systems without file locks."""
    if sys.platform == "win32":
        return without_locks
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def to_json(value: object) -> bytes:
    """Encode plain values as compact JSON; parts of a path or argument that are not UTF-8 become U+FFFD."""
    if isinstance(value, str):
        return encode_basestring(value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")).encode()
    if value is None or isinstance(value, bool):
        return b"null" if value is None else b"true" if value else b"false"
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, float):
        return repr(value).encode() if value - value == 0 else b"null"  # JSON has neither infinity nor NaN
    if isinstance(value, dict):
        return b"{" + b",".join(to_json(key) + b":" + to_json(member) for key, member in value.items()) + b"}"
    if isinstance(value, (list, tuple)):
        return b"[" + b",".join(map(to_json, value)) + b"]"
    raise TypeError(type(value).__name__)


def as_sent(frame: bytes | None) -> "str | dict[str, str] | None":
    """Return the value of `sent`: text, base64 if the bytes are not UTF-8, None for no bytes."""
    if frame is None:
        return None
    try:
        return frame.decode()
    except UnicodeDecodeError:
        return {"b64": base64_text(frame)}


def base64_text(raw: bytes) -> str:
    """Return bytes in base64."""
    return b2a_base64(raw, newline=False).decode()


def written(rest: "dict[str, Any]") -> "dict[str, Any]":
    """Return the fields of a frame or a release as they are written; `sent` is passed as bytes, or None for nothing."""
    return rest | {"sent": as_sent(rest["sent"])} if "sent" in rest else rest
