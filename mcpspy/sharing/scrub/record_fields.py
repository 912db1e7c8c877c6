"""The scrubbed fields of records: the header, HTTP heads, reasons, gates.

Words of the format, times and numbers stay. The id of a scrubbed capture is derived from that of the original, so the
same capture always gives the same file.
"""

from base64 import b64decode
from hashlib import blake2b
from typing import Any

from mcpspy.capture.encode import as_sent
from mcpspy.sharing.scrub.frames import FrameScrub
from mcpspy.sharing.scrub.messages import MessageScrub
from mcpspy.sharing.scrub.texts import Texts
from mcpspy.sharing.scrub.values import is_word_of

_FIXED = frozenset("kind from role framing how transport started tool id peer to op".split())
"""Members of records that are words of the format, or ids; only tokens and addresses are replaced there."""
FIELDS = _FIXED | frozenset(
    "mcpspy name argv url cwd env pid ppid client_start imported continues control scrubbed ch t answers head sent by"
    " raw b64 more cut held dropped undecided code reason lost why signal forwarded gates"
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
        new = {key: fields[key] for key in fields if key not in ("argv", "url", "control")}
        argv = fields.get("argv")
        self.words = "argv"
        if isinstance(argv, list):
            new["argv"] = self._texts.argv([str(word) for word in argv])
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
