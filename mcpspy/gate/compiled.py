"""A gate as plain data: which frames it names, and what happens to them.

    {"name": "slow search",
     "when": {"from": "client", "kind": "request", "method": "tools/call", "name": "search*", "id": ["number", "3"]},
     "action": {"delay": 2000000000, "drop": true},
     "after": 10, "times": 1, "chance": 0.2, "seed": 7}

All terms of `when` must hold; those left out hold for every frame. `method` and `name` are globs (`*` any text, `?` any
character; without capitals they ignore case); a response has those of its request. `kind` is request, notification,
result, error, or response for the last two. In a batch it is enough that one message matches.

`action` is one of drop (true), repeat (how often in all), answer (JSON text of an object with `result` or `error`),
send (a text or several), close (true), hold (nanoseconds), and delay (nanoseconds), alone or with one of the others.
`after` skips the first matches, `times` bounds how often it acts, and `chance` depends only on seed, name and the
number of the match: it is the same in every run.

Words that a frame must hold in order to match are looked for before the frame is decoded.
"""

from mcpspy.gate.messages import json_of
from mcpspy.gate.verdicts import PASS, CloseStream, Drop, Hold, Reply, Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mcpspy.gate.facts import Facts
    from mcpspy.gate.messages import Envelope
    from mcpspy.gate.verdicts import AtOnce, Verdict

_TERMS = {"from", "kind", "method", "name", "id"}
_ACTIONS = {"drop", "repeat", "answer", "send", "close", "hold", "delay"}
_RESPONSES = ("result", "error")


class CompiledGate:
    """One gate. It counts its matches, so one object serves one relay."""

    def __init__(self, gate: "dict[str, Any]") -> None:
        """Raises ValueError for a term or an action that it does not know."""
        self._name = gate["name"]
        self.by = f"gate {self._name}"
        when, self._action = gate.get("when", {}), gate["action"]
        unknown = (set(when) - _TERMS) | (set(self._action) - _ACTIONS)
        if unknown:
            raise ValueError(f"{self.by} has unknown keys: {', '.join(sorted(unknown))}")
        if not self._action or len(set(self._action) - {"delay"}) > 1:
            raise ValueError(f"{self.by} needs one action, and delay at most beside it")
        self._sender = when.get("from")
        kind = when.get("kind")
        self._kinds = _RESPONSES if kind == "response" else (kind,) if kind else ()
        self._globs = when.get("method"), when.get("name")
        self._id = tuple(when["id"]) if "id" in when else None
        self._words = tuple(filter(None, (_word(glob) for glob in self._globs if glob)))
        self._all = not (self._kinds or any(self._globs) or self._id)
        self.follows = any(self._globs) and (not self._kinds or any(kind in _RESPONSES for kind in self._kinds))
        """Whether a response may match by the method or name of its request."""
        self._after, self._times = gate.get("after", 0), gate.get("times")
        self._chance, self._seed = gate.get("chance"), gate.get("seed", 0)
        self._matched = self._acted = 0

    def wants(self, facts: "Facts") -> bool:
        """Whether the frame holds every word that its method and name must have."""
        if not facts.escaped:
            for word in self._words:
                if word not in facts.lower:
                    return False
        return True

    def decide(self, frame: bytes, facts: "Facts", t: int) -> "Verdict":
        """What happens to a frame that came at `t`. Raises ValueError where the action does not suit it."""
        if self._sender not in (None, facts.sender):
            return PASS
        if self._all:
            return self._act(frame, facts, t)
        if self.wants(facts) or (self.follows and facts.may_answer):
            for message in facts.messages:
                if self._matches(message, facts):
                    return self._act(frame, facts, t)
        return PASS

    def _matches(self, message: "Envelope", facts: "Facts") -> bool:
        if (self._kinds and message.kind not in self._kinds) or (self._id and message.id != self._id):
            return False
        pairs = zip(self._globs, facts.about(message), strict=True)
        return all(glob is None or (text is not None and matches(glob, text)) for glob, text in pairs)

    def _act(self, frame: bytes, facts: "Facts", t: int) -> "Verdict":
        self._matched += 1
        spent = self._times is not None and self._acted >= self._times
        if spent or self._matched <= self._after or not self._drawn():
            return PASS
        self._acted += 1
        if "hold" in self._action:
            return Hold(t + self._action["hold"] + self._action.get("delay", 0), self.by, "expired", PASS)
        verdict = self._verdict(frame, facts)
        return Hold(t + self._action["delay"], self.by, "delayed", verdict) if "delay" in self._action else verdict

    def _verdict(self, frame: bytes, facts: "Facts") -> "AtOnce":
        action = self._action
        if "drop" in action:
            return Drop(self.by)
        if "repeat" in action:
            return Send((frame,) * action["repeat"], self.by)
        if "send" in action:
            texts = [action["send"]] if isinstance(action["send"], str) else action["send"]
            return Send(tuple(text.encode() for text in texts), self.by)
        if "answer" in action:
            ids = [message.id if message.kind == "request" else None for message in facts.messages]
            if len(ids) != 1 or ids[0] is None:
                raise ValueError("only a single request can be answered")
            members = action["answer"].strip()[1:].encode()
            return Reply(b'{"jsonrpc":"2.0","id":' + json_of(ids[0]) + b"," + members, self.by)
        return CloseStream(self.by) if "close" in action else PASS

    def _drawn(self) -> bool:
        """Whether chance chooses this match."""
        if self._chance is None:
            return True
        from _blake2 import blake2b  # `hash` of a text differs from run to run

        drawn = blake2b(f"{self._seed} {self._matched} {self._name}".encode("utf-8", "replace"), digest_size=4).digest()
        return int.from_bytes(drawn, "big") < float(self._chance) * (1 << 32)


def matches(glob: str, text: str) -> bool:
    """Whether the whole text fits the glob."""
    if not any(letter.isupper() for letter in glob):
        text = text.lower()
    first, *middle = glob.split("*")
    if not middle:
        return len(text) == len(first) and _fits(first, text, 0)
    last = middle.pop()
    end = len(text) - len(last)
    if end < len(first) or not _fits(first, text, 0) or not _fits(last, text, end):
        return False
    start = len(first)
    for part in middle:
        found = _find(part, text[:end], start)
        if found < 0:
            return False
        start = found + len(part)
    return True


def _fits(part: str, text: str, start: int) -> bool:
    if "?" not in part:
        return text.startswith(part, start)
    pairs = zip(part, text[start : start + len(part)], strict=False)
    return start + len(part) <= len(text) and all(wanted in ("?", letter) for wanted, letter in pairs)


def _find(part: str, text: str, start: int) -> int:
    if "?" not in part:
        return text.find(part, start)
    return next((at for at in range(start, len(text) - len(part) + 1) if _fits(part, text, at)), -1)


def _word(glob: str) -> bytes:
    """The longest run of a glob that stands in a frame as it is: peers may escape a slash or a letter beyond ASCII."""
    runs = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.:") else " " for letter in glob)
    return max(runs.split() or [""], key=len).lower().encode()
