"""The scrubbed lines of a capture: frames, the fields of other records, and each line as it is written.

Each line replaces the line with the same number. Most lines contain nothing suspicious: a few searches of their
characters show that, and they stay unchanged. If a frame has several pieces, all its lines wait for the last one,
together with the lines between them. A frame that is larger than readers decode is replaced by spaces, piece by piece,
so readers see a frame of the same size. A damaged line is replaced by another line that no reader can parse, because it
may contain anything. Any other line is written from its parsed record: it may have two members of one name, and a
reader, like the scrub, sees only the last.

In frames, bytes that are not UTF-8 are kept. The message of an event is in its `data` lines; the other lines are texts.
A PEM key may be written to stderr line by line, and then each line between its first and its last is a secret, also if
a logger writes something around it. A .netrc may too.

In records, words of the format, times and numbers stay. The id of a scrubbed capture is derived from that of the
original, so the same capture always gives the same file.
"""

import json
import re
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Collection, Iterator
from hashlib import blake2b
from typing import Any

import orjson

from mcpspy.capture.format import as_sent
from mcpspy.capture.scan import LARGEST, is_damage, parse_line
from mcpspy.json_values import Number
from mcpspy.recording.copy import record_line
from mcpspy.secrets.redactor import untitled, withheld
from mcpspy.sharing.scrub.messages import MessageScrub
from mcpspy.sharing.scrub.texts import KeyLines, Texts
from mcpspy.sharing.scrub.values import is_word_of
from mcpspy.wire.jsonrpc import first_members, last_members

_EVENT_LINE = re.compile(r"(?P<name>\ufeff?[^:\r\n]*)(?P<colon>: ?)?(?P<value>[^\r\n]*)(?P<end>\r\n|\r|\n|\Z)")
_FORM = re.compile(r'(?:(?:^|&)[\w.+%*~\[\]-]{1,64}=[^\s&"<>{}\\]*)+')
_NETRC = re.compile(r"\s{0,64}(?:machine|login|account)\s{1,64}\S{1,256}\s{0,64}")
_NETRC_PASSWORD = re.compile(r"(\s{0,64}password\s{1,64})(\S{1,512})\s{0,64}")
_EVENT_FIELDS = frozenset(("", "event", "id", "retry"))
"""Fields of events besides `data`; the empty one is a comment."""
_EVENT_STARTS = ("data:", "event:", "id:", "retry:", ":")


class FrameScrub:
    """Scrubs frames."""

    def __init__(self, messages: MessageScrub, texts: Texts) -> None:
        self._messages = messages
        self._texts = texts
        self._keys: dict[int, KeyLines] = {}  # by channel
        self._netrc: set[int] = set()  # the channels whose last line was one of a .netrc

    def frame(self, text: str, framing: str, ch: int = 0) -> str:
        """Return the scrubbed text of a frame; `framing` is that of its channel, or empty if it is not known."""
        if framing == "lines" and (ch in self._keys or "PRIVATE KEY" in text):
            key = self._keys.setdefault(ch, KeyLines(self._texts))
            line = key.line(text)
            if not key.busy:
                del self._keys[ch]
            if line is not None:
                return line
        if framing == "lines":
            text = self._netrc_line(text, ch)
        if framing == "sse" or (not framing and text.startswith(_EVENT_STARTS)):
            return self._event(text)
        return self._message(text, form=framing == "body" or not framing)

    def busy(self, ch: int) -> bool:
        """Return whether the next line of a channel may belong to a key or a .netrc."""
        return ch in self._keys or ch in self._netrc

    def _message(self, text: str, *, form: bool = False) -> str:
        self._messages.forget()
        start = text[:4].lstrip("\ufeff \t\r\n")
        if not start or start[0] in "{[":
            found = self._messages.json(text)
            if found is not None:
                return found
        return self._texts.text(text, form=form and "=" in text and _FORM.fullmatch(text) is not None)

    def _event(self, block: str) -> str:
        """Return an event block: scrub all of its data as one message, in as many lines as before."""
        lines = [[it["name"], it["colon"] or "", it["value"], it["end"]] for it in _EVENT_LINE.finditer(block) if it[0]]
        data = [line for line in lines if line[0].removeprefix("\ufeff") == "data"]
        if data:
            new = self._message("\n".join(line[2] for line in data)).split("\n")
            new += [""] * (len(data) - len(new))
            new[len(data) - 1 :] = [" ".join(new[len(data) - 1 :])]
            for line, value in zip(data, new, strict=True):
                line[2] = value
        for line in lines:
            name = line[0].removeprefix("\ufeff")
            if name in _EVENT_FIELDS:
                line[2] = self._texts.text(line[2])
            elif name != "data":  # an unknown field, or not an event
                line[:3] = self._texts.text("".join(line[:3])), "", ""
        return "".join(map("".join, lines))

    def _netrc_line(self, text: str, ch: int) -> str:
        """Return a line without its password if it continues a .netrc."""
        password = _NETRC_PASSWORD.fullmatch(text) if ch in self._netrc else None
        if password:
            return password[1] + self._texts.secret(password[2])
        if _NETRC.fullmatch(text):
            self._netrc.add(ch)
        else:
            self._netrc.discard(ch)
        return text


_KEPT_OF_LARGE = ("jsonrpc", "id", "method", "code")


def blank(piece: bytes, *, first: bool, last: bool) -> bytes:
    """Return a piece of a frame that is too large to decode, as spaces, except its id, method and tool name.

    So readers see a frame of the same size, with the same outline.
    """
    text = piece.decode("utf-8", "replace")
    head = tail = ""
    if first:
        event = "data: " if text.startswith("data:") else ""
        head = event + _head(first_members(text.removeprefix("data:")))
    if last:
        ending = text[len(text.rstrip("\r\n")) :]
        found = [_member(name, value) for name, value in last_members(text).items() if name in _KEPT_OF_LARGE]
        tail = "".join(f",{member}" for member in found) + "}" + ending
    room = max(len(piece) - len(tail.encode()), 0)
    return head.encode("utf-8", "replace").ljust(room)[:room] + tail.encode("utf-8", "replace")


def _head(found: dict[str, Any]) -> str:
    """Return the beginning of an object whose last member does not end in it."""
    out = "{"
    for number, (name, value) in enumerate(found.items(), 1):
        opened = number == len(found)
        if name in _KEPT_OF_LARGE:
            out += _member(name, value) + ","
        elif isinstance(value, dict) and opened:
            inner = {key: value[key] for key in ("name", "code") if isinstance(value.get(key), str)}
            out += f'"{name}":{{' + "".join(_member(*member) + "," for member in inner.items())
        elif name in ("params", "result", "error"):
            out += f'"{name}":' + ("" if opened else "{},")
    return out


def _member(name: str, value: Any) -> str:
    return f'"{name}":{value if isinstance(value, Number) else json.dumps(value)}'


_FIXED = frozenset("kind from role framing how transport started tool id peer to op".split())
"""Members of records that are words of the format, or ids; only tokens and addresses are replaced there."""
FIELDS = _FIXED | frozenset(
    "mcpspy name argv url cwd env pid ppid client client_start imported continues control scrubbed ch t answers head"
    " sent by raw b64 more cut held dropped undecided code reason lost why signal forwarded gates"
    " method target version status headers".split()
)
"""The members of records and heads: their names stay. The name of any other member may be a secret."""


class RecordScrub:
    """Scrubs records."""

    def __init__(self, frames: FrameScrub, messages: MessageScrub, texts: Texts) -> None:
        self.words = ""
        """The position of the last examined text in the record."""
        self._frames = frames
        self._messages = messages
        self._texts = texts

    def header(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the header of the new capture."""
        new = {key: fields[key] for key in fields if key not in ("argv", "client", "url", "control", "proof")}
        for self.words in ("argv", "client"):
            if isinstance(command := fields.get(self.words), list):
                new[self.words] = self._texts.argv([str(word) for word in command])
        self.words = "url"
        if isinstance(fields.get("url"), str):
            new["url"] = self._texts.field("target", fields["url"])
        if isinstance(before := fields.get("continues"), dict):
            new["continues"] = before | {"id": ""}
        new = self.other({key: new[key] for key in fields if key in new}, but=("id",))
        self.words = "id"
        if fields.get("scrubbed") is not True:
            new["id"] = _derived(fields.get("id"))
            new["scrubbed"] = True
        elif isinstance(new.get("id"), str):  # it looks random, but is no secret
            new["id"] = self._texts.key(new["id"])
        if isinstance(before, dict):
            new["continues"] |= {"id": _derived(before.get("id"))}
        return new

    def open(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the record of a channel that begins."""
        new = dict(fields)
        for name in ("head", "sent"):
            if isinstance(fields.get(name), dict):
                new[name] = self._head(fields[name])
        return self.other(new, but=("head", "sent"))

    def forwarded(self, fields: dict[str, Any], framing: str) -> dict[str, Any]:
        """Return the fields of a frame or a release, without a change to its frame."""
        new = dict(fields)
        sent = fields.get("sent")
        self.words = "sent"
        if isinstance(sent, str):
            new["sent"] = self._frames.frame(sent, framing)
        elif isinstance(sent, dict) and isinstance(sent.get("b64"), str):
            raw = b64decode(sent["b64"])
            text = self._frames.frame(raw.decode("utf-8", "surrogateescape"), framing)
            clean = text.encode("utf-8", "surrogateescape")
            new["sent"] = as_sent(clean)
        return self.other(new, but=("sent", "raw", "b64"))

    def other(self, fields: dict[str, Any], but: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return any record: each name and string in it is scrubbed; those in `but` were scrubbed before."""
        new: dict[str, Any] = {}
        for old, value in fields.items():
            self.words = "member"
            self.words = name = old if old in FIELDS else self._texts.key(old)
            if name in but or not isinstance(value, str | list | dict):
                new[name] = value
            elif name in _FIXED and isinstance(value, str):
                new[name] = value if is_word_of(name, value) else self._texts.text(value)
            else:
                new[name] = self._messages.member(old, value)
        return new

    def _head(self, head: dict[str, Any]) -> dict[str, Any]:
        new = self.other(head, but=("target", "reason", "headers"))
        for name in ("target", "reason"):
            self.words = name
            if isinstance(head.get(name), str):
                new[name] = self._texts.field(name, head[name])
        headers = head.get("headers")
        if isinstance(headers, list):
            new["headers"] = [self._header_field(*field) for field in headers]
        return new

    def _header_field(self, name: str, value: str | None) -> list[str | None]:
        self.words = "header"
        clean = self._texts.key(name)
        self.words = f"header {clean}"
        return [clean, value and self._texts.field(name, value)]


def _derived(id_: object) -> str:
    return blake2b(f"scrubbed {id_}".encode("utf-8", "replace"), digest_size=16).hexdigest()


WAITING = 4 * LARGEST
"""Maximum number of bytes of lines that wait for the last piece of a frame."""
DAMAGED = b'{"kind":"gap","why":"a damaged line"}\n'
"""A line that readers treat as damaged: it has no time."""
_FRAME = b'{"kind":"frame","ch":'
_PLAIN_MEMBERS = 4  # members of a plain frame record
_WITHHELD = "«withheld:".encode()


class _Waiting:
    """A frame whose last piece has not come."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, dict[str, Any], bytes]] = []  # number, record, bytes of the frame
        self.size = 0
        self.blank = False
        """The frame is too large, and its pieces are blanked as they come."""


class LineScrub:
    """Scrubs the lines of a capture, the header first; `feed` each, then `end`."""

    def __init__(
        self,
        records: RecordScrub,
        frames: FrameScrub,
        is_suspicious: Callable[[str, bytes], bool],
        undecoded: Collection[int],
        on_withheld: Callable[[str], None],
    ) -> None:
        """`undecoded` has the channels whose content coding could not be decoded, as far as they are known."""
        self.n = 0
        """The number of the current line; for a frame, that of its last piece."""
        self._records = records
        self._frames = frames
        self._is_suspicious = is_suspicious
        self._undecoded = undecoded
        self._on_withheld = on_withheld
        self._framing: dict[int, str] = {}
        self._open: dict[int, _Waiting] = {}
        self._queue: deque[bytes | None] = deque()
        self._first = 1  # the number of the first line in the queue
        self._last = 0
        self._bytes = 0

    def feed(self, line: bytes) -> Iterator[bytes]:
        """Take the next line, without its newline, and yield the lines that are finished."""
        self._last += 1
        if not self._open and self._is_plain(line):
            self._first = self._last + 1
            yield line + b"\n"
            return
        self._queue.append(None)
        self._bytes += len(line)
        self.n = self._last
        self._take(self._last, line)
        if self._bytes > WAITING and self._open:
            self._give_up(next(iter(self._open)))
        yield from self._finished()

    def end(self) -> Iterator[bytes]:
        """Yield the lines that wait for the rest of a frame that did not come."""
        self._cut_all()
        yield from self._finished()

    def _is_plain(self, line: bytes) -> bool:
        """Return whether a line is a complete frame in the usual form, with nothing to replace."""
        if not line.startswith(_FRAME):
            return False
        try:
            text = line.decode()
            fields = orjson.loads(line)
            ch, t, raw = fields["ch"], fields["t"], fields["raw"]
        except (ValueError, KeyError):
            return False
        usual = (
            len(fields) == _PLAIN_MEMBERS
            and type(ch) is int
            and type(t) is int
            and 0 <= t < 1 << 62
            and type(raw) is str
        )
        if not usual or ch in self._undecoded or raw.startswith(_WITHHELD.decode()):
            return False
        return not self._frames.busy(ch) and not self._is_suspicious(text, line)

    def _take(self, n: int, line: bytes) -> None:
        if n == 1:
            self._put(n, _line(self._records.header(orjson.loads(line))))
            return
        fields = _parsed(n, line)
        if fields is None:
            self._cut_all()
            self._put(n, DAMAGED)
            return
        kind, ch = fields.get("kind"), fields.get("ch", -1)
        if kind == "frame":
            self._take_piece(n, fields)
            return
        if kind in ("gap", "end"):
            self._cut_all()
        elif kind in ("open", "close"):
            if ch in self._open:
                self._join(ch)
            self._framing[ch] = fields.get("framing", "")
        self.n = n
        new = self._record(kind, fields)
        if kind == "close":
            self._framing.pop(ch, None)
        self._put(n, _line(new))

    def _record(self, kind: Any, fields: dict[str, Any]) -> dict[str, Any]:
        if kind == "open":
            return self._records.open(fields)
        if kind == "continued":  # all files of the capture have become one
            return {key: fields[key] for key in ("kind", "t") if key in fields}
        return self._records.forwarded(fields, "") if kind == "release" else self._records.other(fields)

    def _take_piece(self, n: int, fields: dict[str, Any]) -> None:
        ch = fields["ch"]
        waiting = self._open.setdefault(ch, _Waiting())
        raw = _raw_of(fields)
        fields = _with_own_bytes(fields, raw)
        waiting.size += len(raw)
        if waiting.blank:
            last = not fields.get("more")
            self._put(n, _line(_with_raw(fields, blank(raw, first=False, last=last))))
            if last:
                del self._open[ch]
            return
        waiting.lines.append((n, fields, raw))
        if waiting.size > LARGEST and fields.get("more"):
            self._give_up(ch)
        elif not fields.get("more"):
            self._join(ch)

    def _cut_all(self) -> None:
        for ch in list(self._open):
            self._join(ch)

    def _give_up(self, ch: int) -> None:
        """Blank the pieces of a frame that is too large, as far as they have come."""
        waiting = self._open[ch]
        self.n = waiting.lines[0][0] if waiting.lines else self.n
        self._on_withheld("")
        self._blank(waiting, ended=False)
        waiting.blank, waiting.lines = True, []

    def _blank(self, waiting: _Waiting, *, ended: bool) -> None:
        final = len(waiting.lines) - 1
        for place, (n, fields, raw) in enumerate(waiting.lines):
            piece = blank(raw, first=place == 0, last=ended and place == final)
            record = self._records.forwarded(fields, "") if "sent" in fields or "by" in fields else fields
            self._put(n, _line(_with_raw(record, piece)))

    def _join(self, ch: int) -> None:
        """Scrub a frame that has ended."""
        waiting = self._open.pop(ch)
        if waiting.blank:
            return
        lines, framing = waiting.lines, self._framing.get(ch, "")
        self.n = lines[-1][0]
        if waiting.size > LARGEST:
            self._on_withheld("")
            self._blank(waiting, ended=True)
            return
        raw = b"".join(piece for _, _, piece in lines)
        new = self._frame(ch, raw, lines[0][1].get("op"), framing)
        pieces = _pieces(new, [len(piece) for _, _, piece in lines]) if new != raw else []
        for place, (n, fields, _) in enumerate(lines):
            record = self._records.forwarded(fields, framing) if len(fields) > _PLAIN_MEMBERS else fields
            if pieces:
                record = _with_raw(record, pieces[place])
            self._put(n, _line(record))

    def _frame(self, ch: int, raw: bytes, op: Any, framing: str) -> bytes:
        self._records.words = ""
        if ch in self._undecoded or op == "binary":
            if not raw or raw.startswith(_WITHHELD):
                return untitled(raw)
            self._on_withheld("")
            return withheld(len(raw))
        text = untitled(raw).decode("utf-8", "surrogateescape")
        return self._frames.frame(text, framing, ch).encode("utf-8", "surrogateescape")

    def _put(self, n: int, line: bytes) -> None:
        self._queue[n - self._first] = line

    def _finished(self) -> Iterator[bytes]:
        queue = self._queue
        while queue and (line := queue[0]) is not None:
            queue.popleft()
            self._first += 1
            yield line
        if not queue:
            self._bytes = 0


def _line(record: dict[str, Any]) -> bytes:
    """Return a record as a line; leave out values that are nested too deeply, which no relay has written."""
    try:
        return record_line(record)
    except TypeError:
        return record_line({name: value for name, value in record.items() if not isinstance(value, dict | list)})


def _parsed(n: int, line: bytes) -> dict[str, Any] | None:
    """Return the fields of a record; None for a line that readers treat as damaged."""
    record, _ = parse_line(n, line)
    if record is not None and is_damage(record):
        return None
    fields: dict[str, Any] = orjson.loads(line)
    return fields


def _raw_of(fields: dict[str, Any]) -> bytes:
    raw = fields.get("raw")
    return b64decode(fields["b64"]) if raw is None else raw.encode()


def _with_own_bytes(fields: dict[str, Any], raw: bytes) -> dict[str, Any]:
    """Return the record of a frame as readers see it: without `b64` if it has `raw`, else with plain base64."""
    if "b64" not in fields:
        return fields
    if fields.get("raw") is None:
        return fields | {"b64": b64encode(raw).decode()}
    return {name: value for name, value in fields.items() if name != "b64"}


def _with_raw(fields: dict[str, Any], raw: bytes) -> dict[str, Any]:
    """Return the record of a frame with other bytes in place of its own."""
    value = as_sent(raw)
    key, value = ("raw", value) if isinstance(value, str) else ("b64", (value or {}).get("b64"))
    return {(key if name in ("raw", "b64") else name): (value if name in ("raw", "b64") else it)
            for name, it in fields.items()}  # fmt: skip


def _pieces(frame: bytes, sizes: list[int]) -> list[bytes]:
    """Return a frame in as many pieces as before, of similar proportions, never split inside a character."""
    if len(sizes) == 1:
        return [frame]
    total, pieces, start, so_far = sum(sizes) or 1, [], 0, 0
    for size in sizes[:-1]:
        so_far += size
        end = max(len(frame) * so_far // total, start)
        while end < len(frame) and end > start and frame[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append(frame[start:end])
        start = end
    return [*pieces, frame[start:]]
