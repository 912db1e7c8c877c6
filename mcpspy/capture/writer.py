"""Write a capture: plain values in, one line out.

A record is one line, appended with one `os.write` on an `O_APPEND` descriptor, so a SIGKILL loses at most the record
being written. If a channel opens and closes at once, its records are written with one `os.write`. Writing happens after
the bytes were forwarded, and a failure never affects the traffic: `Writer` never raises. Records that could not be
written are counted, and a `gap` record with the count follows as soon as writing works again. A frame of several
records is either complete or cut, never joined across a loss.

The writer keeps an exclusive `flock` on the file while it exists. This is how readers distinguish a live capture from
one whose relay was killed.

A capture continues in a new file when it has reached its size limit, and when its file was removed or truncated, which
the writer checks once a second (A-10). The header of the new file names the file before. Open channels are opened again
in the new file, so that it can be read by itself.

On the `wrap` path: imported, with `orjson`, while the server starts. No method imports anything, because an import
delays the frames that pass meanwhile (V-02).
"""

import errno
import os

from orjson import OPT_APPEND_NEWLINE, dumps

from mcpspy.capture.format import FORMAT, MAGIC, base64_text, take, to_json
from mcpspy.capture.location import directory, file_name, iso_time, make_directory
from mcpspy.capture.user_key import with_proof

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TRIES = 8  # attempts at a name: it has 16 random bits, and an import may create hundreds with the same start time

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
# O_NONBLOCK: opening a FIFO without a reader must fail instead of blocking.


def open_new(folder: str | None, environ: dict[str, str], name: str, wall: int) -> tuple[int, str]:
    """Create a file in a directory of captures. Returns its descriptor, locked, and its path. Raises OSError."""
    place = directory(folder, environ)
    make_directory(place)
    return _create(lambda _: os.path.join(place, file_name(wall, name)))


def open_output(output: str, say: "Callable[[str], None]") -> tuple[int, str]:
    """Open the file `output`, replacing a finished capture; if it must not be replaced, open another name next to it.

    Raises OSError.
    """
    goes_on = _goes_on(output)
    fd = os.open(output, _FLAGS, 0o600)
    obstacle = _obstacle(fd) or goes_on
    if obstacle is None:
        if hasattr(os, "fchmod"):
            os.fchmod(fd, 0o600)
        return fd, output
    os.close(fd)
    root, extension = os.path.splitext(output)
    fd, sibling = _create(lambda _: f"{root}-{os.getpid()}-{os.urandom(2).hex()}{extension}")
    say(f"{output} {obstacle}; this capture goes to {sibling}")
    return fd, sibling


def open_next(path: str, part: int) -> tuple[int, str]:
    """Create part `part` of the capture at `path`, in which it continues. Raises OSError."""
    root, extension = os.path.splitext(path)
    plain = f"{root}-{part}{extension}"
    return _create(lambda number: f"{root}-{part}-{os.urandom(2).hex()}{extension}" if number else plain)


def _create(name: "Callable[[int], str]") -> tuple[int, str]:
    """Create and lock a file under the first name that is not in use."""
    for number in range(_TRIES):
        path = name(number)
        try:
            fd = os.open(path, _FLAGS | os.O_EXCL, 0o600)
        except FileExistsError:
            if number == _TRIES - 1:
                raise
            continue
        take(fd)
        break
    return fd, path


def _goes_on(path: str) -> str | None:
    """Return why a file that is not live must still not be overwritten: its capture continues in another file."""
    try:
        if not os.path.isfile(path) or not os.path.getsize(path):
            return None
    except OSError:
        return None
    from mcpspy.capture.parts import JoinedFiles  # a heavy import: only if there is a file
    from mcpspy.errors import CaptureError

    try:
        with JoinedFiles(path) as files:
            return "is a live capture" if files.live else None
    except CaptureError:
        return None


def _obstacle(fd: int) -> str | None:
    """Return why the file behind `fd` must not be overwritten; None if it may be, and then it is locked."""
    if os.fstat(fd).st_mode & 0o170000 != 0o100000:
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file")
    if not take(fd):
        return "is a live capture"
    head = os.read(fd, len(MAGIC))
    return None if head in (b"", MAGIC) else "is not a capture"


_SECOND = 1_000_000_000
_NEVER = 1 << 62


class Writer:
    """Appends records to one capture; never raises. Use it from one thread at a time; the recording ensures that.

    `say` is called with one sentence, once, when writing begins to fail. `limit` is the size in bytes after which a new
    file begins; no limit by default.
    """

    def __init__(
        self,
        fd: int,
        path: str,
        header: dict[str, object],
        first: bytes,
        say: "Callable[[str], None]",
        limit: int | None = None,
    ) -> None:
        """`first` is the header as the first line, without its newline."""
        self.path = path
        self.live_path = os.path.join(os.path.dirname(path), f".{header['id']}.live")
        """The directory where a viewer puts gates for the session; the same for all files of the capture."""
        self._fd = fd
        self._say = say
        self._fields = header
        self._first_path = path
        self._part = 1
        self._limit = limit or _NEVER
        self._full = self._limit  # the size after which the next file begins
        self._size = 0  # size of this file in bytes
        self._due = 0  # time of the next check of the file
        self._opens: dict[int, bytes] = {}  # open channel -> the line that opened it
        self._header: bytes | None = first + b"\n"  # None once it is written
        self._sound = False  # whether the header is written and nothing has been lost since
        self._torn = False  # whether the file ends inside a line
        self._stood = 0  # lines of a failed write that are in the file nevertheless
        self._lost = 0
        self._why = ""
        self._said = False
        self._partial: set[int] = set()  # channels inside a frame of several records
        self._dropping: set[int] = set()  # channels whose frame lost a record: the rest of it is lost too
        self._recover(0)

    def open(
        self, ch: int, t: int, sender: str, role: str, framing: str, rest: "dict[str, object] | None" = None
    ) -> None:
        """Record that a channel opens; `rest` has the other members for HTTP: answers, peer, head, sent, by."""
        record = {"kind": "open", "ch": ch, "t": t, "from": sender, "role": role, "framing": framing}
        self._append(t, record | rest if rest else record, opens=ch)

    def frame(
        self, ch: int, t: int, raw: bytes, more: bool, cut: bool, rest: "dict[str, object] | None" = None
    ) -> None:
        """Record a frame, or with `more` a piece; `rest` has optional members: op, from, sent, by, held, undecided."""
        if t > self._due or self._size > self._full:
            self._look(t)
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = None
        if text is None:
            line = _base64_line(ch, t, raw, more, cut, rest)
        elif rest:
            line = _line({"kind": "frame", "ch": ch, "t": t, "raw": text} | _flags(more, cut) | rest)
        else:
            fields = {"kind": "frame", "ch": ch, "t": t, "raw": text}
            if more or cut:
                fields |= _flags(more, cut)
            line = dumps(fields, None, OPT_APPEND_NEWLINE)
        if more or self._partial or self._dropping or not self._sound:
            self._append_frame(ch, t, line, more)
        elif not self._write(line):
            self._lose()

    def whole(self, ch: int, t: int, sender: str, role: str, rest: "dict[str, object]", raw: bytes) -> None:
        """Record a channel with the framing `body` that opens, has a frame (none if `raw` is empty), and ends normally.

        Its records are written at once. `raw` is at most one piece; `rest` is as in `open`.
        """
        if t > self._due or self._size > self._full:
            self._look(t)
        lines = [_line({"kind": "open", "ch": ch, "t": t, "from": sender, "role": role, "framing": "body"} | rest)]
        if raw:
            try:
                lines.append(_line({"kind": "frame", "ch": ch, "t": t, "raw": raw.decode()}))
            except UnicodeDecodeError:
                lines.append(_base64_line(ch, t, raw, False, False, None))
        lines.append(b'{"kind":"close","ch":%d,"t":%d,"how":"eof"}\n' % (ch, t))
        recovered = self._recover(t)
        self._stood = 0  # a gap or a header that failed too contains none of these lines
        if not (recovered and self._write(b"".join(lines))):
            for _ in lines[self._stood :]:
                self._lose()

    def release(self, t: int, held: int, how: str, rest: "dict[str, object] | None" = None) -> None:
        """Record that a held frame was sent or dropped; `rest` has optional members: sent, by."""
        self._append(t, {"kind": "release", "t": t, "held": held, "how": how} | (rest or {}))

    def gates(self, t: int, gates: "list[dict[str, object]]", by: str) -> None:
        """Record that these compiled gates are in force from now on; `by` is `file` or `viewer`."""
        self._append(t, {"kind": "gates", "t": t, "gates": gates, "by": by})

    def close(self, ch: int, t: int, how: str, rest: "dict[str, object] | None" = None) -> None:
        """Record that a channel closes; `rest` has optional members: code, reason."""
        self._append(t, {"kind": "close", "ch": ch, "t": t, "how": how} | (rest or {}))
        self._opens.pop(ch, None)

    def gap(self, t: int, lost: int, why: str) -> None:
        """Record that records are missing that this writer never received, for example from another program's file."""
        self._append(t, {"kind": "gap", "t": t, "lost": lost, "why": why})

    def signal(self, t: int, number: int, to: str, forwarded: bool) -> None:
        """Record signal `number`, sent to the relay's `process` or the `group`, and whether the relay forwarded it."""
        self._append(t, {"kind": "signal", "t": t, "signal": number, "to": to, "forwarded": forwarded})

    def end(self, t: int, code: int | None, why: str | None) -> None:
        """Write the last record, because the relay ends; no call may follow. A file without a header is deleted.

        `code` is the exit code of a stdio server, negative for a signal; None without a process.
        """
        if self._due < _NEVER:
            self._due = -1  # the file may have been removed since the last check
        record: dict[str, object] = {"kind": "end", "t": t}
        if code is not None:
            record["exit"] = {"code": code} if code >= 0 else {"signal": -code}
        self._append(t, record | ({"why": why} if why else {}))
        if self._header is not None:
            self._remove()
        os.close(self._fd)

    def _remove(self) -> None:
        """Delete the file, which has no complete header, unless another file has its path now."""
        try:
            if os.path.samestat(os.fstat(self._fd), os.stat(self.path)):
                os.unlink(self.path)
        except OSError:
            pass

    def _append(self, t: int, record: dict[str, object], opens: int | None = None) -> None:
        if t > self._due or self._size > self._full:
            self._look(t)
        line = _line(record)
        if not (self._recover(t) and self._write(line)):
            self._lose()
        if opens is not None:
            self._opens[opens] = line

    def _append_frame(self, ch: int, t: int, line: bytes, more: bool) -> None:
        """Append a frame after a loss, or while some frame is written in pieces."""
        kept = ch not in self._dropping and self._recover(t) and self._write(line)
        if not kept:
            self._lose()
        for channels, inside in ((self._partial, kept), (self._dropping, not kept)):
            (channels.add if more and inside else channels.discard)(ch)

    def _lose(self) -> None:
        """Count a lost record.

        A gap follows. No frame is joined across a gap, so all frames in progress are lost from here.
        """
        self._lost += 1
        self._sound = False
        self._dropping |= self._partial
        self._partial.clear()

    def _recover(self, t: int) -> bool:
        """Write what must precede the next record, if anything: the header, a gap. Return whether that succeeded."""
        if self._sound:
            return True
        if self._header is not None:
            if not self._truncate() or not self._write(self._header):
                return False
            self._header = None
        if self._lost:
            gap = to_json({"kind": "gap", "t": t, "lost": self._lost, "why": self._why})
            if not self._write(gap + b"\n"):
                return False
            self._lost = 0
        self._sound = True
        return True

    def _truncate(self) -> bool:
        """Empty the file, which contains at most part of a header."""
        try:
            os.ftruncate(self._fd, 0)
        except OSError as error:
            self._fail(error.strerror or "emptying the file failed")
            return False
        self._torn = False
        self._size = 0
        return True

    def _look(self, t: int) -> None:
        """Continue in a new file if this one is gone or has reached its limit; a frame is never divided."""
        if t > self._due:
            self._due = t + _SECOND
            try:
                status = os.fstat(self._fd)
            except OSError:
                return
            if not status.st_nlink or status.st_size < self._size:
                self._move(t, "was truncated" if status.st_nlink else "was removed")
        if self._size > self._full and not self._partial:
            self._move(t, None)

    def _move(self, t: int, loss: str | None) -> None:
        """Continue in a new file; `loss` is what happened to this one, None if it only reached its limit."""
        left = self.path
        try:
            fd, path = open_next(self._first_path, self._part + 1)
        except OSError as error:
            self._due = self._full = _NEVER
            what = f"{left} {loss} while it was written" if loss else f"{left} has reached its size limit"
            self._say(f"{what}, and no other file can be created ({error.strerror or error}); traffic goes on")
            return
        name = os.path.basename(left)
        if loss:
            self._say(f"the capture {left} {loss} while it was written; recording goes on in {path}")
            self._why = f"{name} {loss}"
            self._lose()
        else:
            self._write(to_json({"kind": "continued", "t": t, "file": os.path.basename(path)}) + b"\n")
        os.close(self._fd)
        before = {"id": self._fields["id"], "file": name, "lines": 1 + len(self._opens)}
        self._fields = self._fields | {"id": os.urandom(16).hex(), "continues": before}
        self._header = to_json(self._fields) + b"\n" + b"".join(self._opens.values())
        self._fd, self.path, self._part = fd, path, self._part + 1
        self._size, self._torn, self._sound = 0, False, False
        self._recover(t)
        self._full = self._size + self._limit  # repeated records do not count, however many there are

    def _write(self, line: bytes) -> bool:
        if self._torn:
            line = b"\n" + line
        try:
            written = os.write(self._fd, line)
        except OSError as error:
            self._fail(error.strerror or "writing failed")
            return False
        self._size += written
        if written == len(line):
            self._torn = False
            return True
        if written:
            self._torn = not line.endswith(b"\n", 0, written)
            self._stood = line.count(b"\n", 0, written)
        self._fail("the disk is full or a limit of the system on file sizes is reached")
        return False

    def _fail(self, why: str) -> None:
        self._why = why
        if not self._said:
            self._said = True
            self._say(
                f"cannot write the capture {self.path}: {why}; "
                "traffic goes on, but is not recorded until writing works again"
            )


def _line(record: dict[str, object]) -> bytes:
    try:
        return dumps(record, None, OPT_APPEND_NEWLINE)
    except TypeError:  # a lone surrogate: bytes that were not UTF-8
        return to_json(record) + b"\n"


def _flags(more: bool, cut: bool) -> dict[str, object]:
    return {"more": True} if more else {"cut": True} if cut else {}


def _base64_line(ch: int, t: int, raw: bytes, more: bool, cut: bool, rest: "dict[str, object] | None") -> bytes:
    return _line({"kind": "frame", "ch": ch, "t": t, "b64": base64_text(raw)} | _flags(more, cut) | (rest or {}))


def create(
    header: dict[str, object],
    *,
    output: str | None,
    folder: str | None,
    environ: dict[str, str],
    wall: int,
    say: "Callable[[str], None]",
    limit: int | None = None,
) -> Writer | None:
    """Create the capture file and write its header.

    `output` is a file to write to, `folder` a directory to create one in (neither: the default directory). `wall` is
    the start in nanoseconds since the epoch, `limit` as in `Writer`. Returns None, and reports why once, if no file can
    be created. Raises UnicodeEncodeError, and creates no file, for text that cannot be written: a lone surrogate that
    does not represent a byte.
    """
    header = {"mcpspy": FORMAT, "id": os.urandom(16).hex(), "started": iso_time(wall)} | header
    first = to_json(header)  # raises before a file is created
    if "imported" not in header:
        first = with_proof(first)
    try:
        fd, path = open_output(output, say) if output else open_new(folder, environ, str(header["name"]), wall)
    except OSError as error:
        where = output or folder or error.filename
        say(f"cannot write a capture to {where}: {error.strerror or error}; traffic goes on, but is not recorded")
        return None
    return Writer(fd, path, header, first, say, limit)
