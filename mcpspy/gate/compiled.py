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

from mcpspy.gate.messages import Digits, decode, json_of, key_of
from mcpspy.gate.verdicts import PASS, CloseStream, Drop, Hold, Reply, Send
from mcpspy.json_values import excerpt, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mcpspy.gate.facts import Facts
    from mcpspy.gate.messages import Envelope
    from mcpspy.gate.verdicts import AtOnce, Verdict

    Allowed = tuple[Callable[[Any], bool], str]
    """Whether a value is allowed, and what is, in words."""

_RESPONSES = ("result", "error")


class DeclaredGate:
    """One gate. It counts its matches, so one object serves one relay."""

    def __init__(self, gate: "dict[str, Any]") -> None:
        """Raises ValueError for a key that it does not know, and for a value that does not suit its key."""
        gate = {"name": None, "when": {}, "action": None} | gate
        self._name, when, self._action = gate["name"], gate["when"], gate["action"]
        self.by = f"gate {self._name}"
        _check(self.by, "", gate, _KEYS)
        _check(self.by, "when.", when, _TERMS)
        _check(self.by, "action.", self._action, _ACTIONS)
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
            members = action["answer"].translate(_ONE_LINE).strip()[1:].encode()
            return Reply(b'{"jsonrpc":"2.0","id":' + json_of(ids[0]) + b"," + members, self.by)
        return CloseStream(self.by) if "close" in action else PASS

    def _drawn(self) -> bool:
        """Whether chance chooses this match."""
        if self._chance is None:
            return True
        from _blake2 import blake2b  # `hash` of a text differs from run to run

        drawn = blake2b(f"{self._seed} {self._matched} {self._name}".encode("utf-8", "replace"), digest_size=4).digest()
        return int.from_bytes(drawn, "big") < float(self._chance) * (1 << 32)


def _check(by: str, where: str, values: "dict[str, Any]", allowed: "dict[str, Allowed]") -> None:
    """Raises ValueError for the first key that is not allowed, or has a value that is not."""
    for key, value in values.items():
        if key not in allowed:
            raise ValueError(f"{by} has an unknown key {where}{key}; allowed: {', '.join(allowed)}")
        suits, words = allowed[key]
        if not suits(value):
            raise ValueError(f"{by}: {where}{key} is {_shown(value)}; it must be {words}")


def _shown(value: "Any") -> str:
    """A value as JSON, or an excerpt of it where it is long."""
    from json import dumps  # only where something is wrong

    text = dumps(value)
    return text if len(text) <= 60 else excerpt(value)


def _one_of(*allowed: str) -> "Allowed":
    return (lambda value: value in allowed), ", ".join(allowed[:-1]) + " or " + allowed[-1]


def _whole(least: int) -> "Allowed":
    return (lambda value: type(value) is int and value >= least), f"a whole number of at least {least}"


def _is_text(value: "Any") -> bool:
    """Whether it is a text that can be sent: one without half a surrogate pair."""
    return type(value) is str and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_sent(value: "Any") -> bool:
    return _is_text(value) or (type(value) in (list, tuple) and len(value) > 0 and all(map(_is_text, value)))


def _is_id(value: "Any") -> bool:
    if type(value) not in (list, tuple) or len(value) != 2 or any(type(part) is not str for part in value):
        return False
    return value[0] == "string" or (_is_text(value[1]) and key_of(_decoded(value[1])) == tuple(value))


def _is_answer(value: "Any") -> bool:
    if not _is_text(value) or not value.strip(" \t\r\n").startswith("{"):
        return False
    found = _decoded(value)
    if type(found) is not dict or ("result" in found) == ("error" in found) or "id" in found or "jsonrpc" in found:
        return False
    return not any(type(inner) is Digits and inner.lstrip("-").isalpha() for _, inner in walk(found))  # such as NaN


def _decoded(text: str) -> "Any":
    """The value of a JSON text; False where it is none."""
    try:
        return decode(text.encode())
    except (ValueError, RecursionError):
        return False


_ONE_LINE = {ord("\n"): " ", ord("\r"): " "}  # JSON strings contain neither
_GLOB: "Allowed" = (lambda value: type(value) is str and value != ""), "a text that is not empty"
_OBJECT: "Allowed" = (lambda value: type(value) is dict), "an object"
_TRUE: "Allowed" = (lambda value: value is True), "true"
_KEYS: "dict[str, Allowed]" = {
    "name": _GLOB,
    "when": _OBJECT,
    "action": _OBJECT,
    "after": _whole(0),
    "times": _whole(1),
    "chance": ((lambda value: type(value) in (int, float) and 0 <= value <= 1), "a number from 0 to 1"),
    "seed": ((lambda value: type(value) in (int, str)), "a whole number or a text"),
}
_TERMS: "dict[str, Allowed]" = {
    "from": _one_of("client", "server"),
    "kind": _one_of("request", "notification", "result", "error", "response"),
    "method": _GLOB,
    "name": _GLOB,
    "id": (_is_id, 'the type and the text of an id, such as ["number", "7"] or ["string", "a"]'),
}
_ACTIONS: "dict[str, Allowed]" = {
    "drop": _TRUE,
    "repeat": _whole(1),
    "answer": (_is_answer, "the JSON text of an object with result or error, without id and jsonrpc"),
    "send": (_is_sent, "a text, or several"),
    "close": _TRUE,
    "hold": _whole(0),
    "delay": _whole(0),
}


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
