"""Scrubbed frames: lines, events, bodies and messages of WebSockets, as text.

Bytes that are not UTF-8 are kept. The message of an event is in its `data` lines; the other lines are texts. A PEM key
may be written to stderr line by line, and then each line between its first and its last is a secret, also if a logger
writes something around it. A .netrc may too.
"""

import json
import re
from typing import Any

from mcpspy.json_values import Number
from mcpspy.sharing.scrub.messages import MessageScrub
from mcpspy.sharing.scrub.texts import KeyLines, Texts
from mcpspy.wire.outline import first_members, last_members

_LINE = re.compile(r"(?P<name>\ufeff?[^:\r\n]*)(?P<colon>: ?)?(?P<value>[^\r\n]*)(?P<end>\r\n|\r|\n|\Z)")
_FORM = re.compile(r'(?:(?:^|&)[\w.+%*~\[\]-]{1,64}=[^\s&"<>{}\\]*)+')
_NETRC = re.compile(r"\s{0,64}(?:machine|login|account)\s{1,64}\S{1,256}\s{0,64}")
_NETRC_PASSWORD = re.compile(r"(\s{0,64}password\s{1,64})(\S{1,512})\s{0,64}")
_FIELDS = frozenset(("", "event", "id", "retry"))
"""Fields of events besides `data`; the empty one is a comment."""
_STARTS = ("data:", "event:", "id:", "retry:", ":")


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
        if framing == "sse" or (not framing and text.startswith(_STARTS)):
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
        lines = [[it["name"], it["colon"] or "", it["value"], it["end"]] for it in _LINE.finditer(block) if it[0]]
        data = [line for line in lines if line[0].removeprefix("\ufeff") == "data"]
        if data:
            new = self._message("\n".join(line[2] for line in data)).split("\n")
            new += [""] * (len(data) - len(new))
            new[len(data) - 1 :] = [" ".join(new[len(data) - 1 :])]
            for line, value in zip(data, new, strict=True):
                line[2] = value
        for line in lines:
            name = line[0].removeprefix("\ufeff")
            if name in _FIELDS:
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


_KEPT = ("jsonrpc", "id", "method", "code")


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
        found = [_member(name, value) for name, value in last_members(text).items() if name in _KEPT]
        tail = "".join(f",{member}" for member in found) + "}" + ending
    room = max(len(piece) - len(tail.encode()), 0)
    return head.encode("utf-8", "replace").ljust(room)[:room] + tail.encode("utf-8", "replace")


def _head(found: dict[str, Any]) -> str:
    """Return the beginning of an object whose last member does not end in it."""
    out = "{"
    for number, (name, value) in enumerate(found.items(), 1):
        opened = number == len(found)
        if name in _KEPT:
            out += _member(name, value) + ","
        elif isinstance(value, dict) and opened:
            inner = {key: value[key] for key in ("name", "code") if isinstance(value.get(key), str)}
            out += f'"{name}":{{' + "".join(_member(*member) + "," for member in inner.items())
        elif name in ("params", "result", "error"):
            out += f'"{name}":' + ("" if opened else "{},")
    return out


def _member(name: str, value: Any) -> str:
    return f'"{name}":{value if isinstance(value, Number) else json.dumps(value)}'
