"""A gate as plain data: the frames that it names, and its action on them.

    {"name": "slow search",
     "when": {"from": "client", "kind": "request", "method": "tools/call", "name": "search*"},
     "action": {"delay": 2000000000, "drop": true},
     "after": 10, "times": 1, "chance": 0.2, "seed": 7, "reorder": true}

`after` skips the first matches, and `times` limits the number of actions. `chance` depends only on the seed, the name
and the number of the match, so it is the same in every run. With `reorder`, frames behind a waiting frame do not wait
for it.

All members of `when` must hold; `{}` holds for every frame.

    from, kind      one of the words, or a list of several: client, server; request, notification, result, error;
                    response stands for the last two
    method, name    a glob, {"is": text} for a literal text, or a list of these
    id              ["number", "3"], ["string", "a"], ["null", "null"], ["glob", "abc*"], or a list of these
    text            a text in the frame, or a list of texts, at least one must be in it; one without capitals ignores
                    case
    size            [least, most] bytes of the frame, both included, null for no limit; or a list of these
    all, any, not   a list of objects that must all hold; a list of objects, at least one must hold; an object that must
                    not hold

A response has the method and the name of its request. In a batch, one matching message is enough. A frame without
messages has no kind, method, name or id. A frame is decoded only if its bytes do not show that it cannot match: a word
of each glob must be in it.

The members of `action`:

    drop          true                   forward nothing
    repeat        2                      forward it this number of times in all
    answer        JSON text              an object with `result` or `error`: sent back; the peer gets no request
    answer-from   {"file", "miss"}       the same with a recorded answer; an `answerer` finds it
    send          a text, or several     forward these instead; in an event stream, as the data of the event
    edit          a JSON Patch           RFC 6902, on the message of the frame
    cut           100                    forward only the first 100 bytes of the message
    garble        not-json, invalid-utf8 or bom: remove the last byte, insert a byte that is not UTF-8, put a byte order
                                         mark in front
    close         true                   end the stream
    status        503                    answer the HTTP request with this status
    exit          1                      kill the server
    hold          nanoseconds            wait for a decision of a person, at most this long
    throttle      bytes per second       delay frames as a line of this speed would
    delay         nanoseconds            wait this long; alone, or with one of the others

The transport of a relay limits the actions: `status` needs HTTP, `exit` needs a server that the relay has started.
"""

from _blake2 import blake2b  # the `hash` of a text differs from run to run

from mcpspy.gate.check import (
    GLOB,
    NAME,
    OBJECT,
    TRUE,
    VALUES,
    bounded,
    check,
    fault_of,
    is_answer,
    is_id,
    is_patch,
    is_sent,
    is_text,
    one_of,
    one_or_more,
    size_fault_of,
)
from mcpspy.gate.gate import PASS, CloseStream, Drop, Exit, Hold, Refuse, Reply, Send
from mcpspy.gate.messages import changed, decode, edited, json_of, message_of, with_message
from mcpspy.json_values import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeAlias

    from mcpspy.gate.check import Allowed
    from mcpspy.gate.gate import AtOnce, Facts, Verdict
    from mcpspy.gate.messages import Envelope

    Test: TypeAlias = Callable[[Envelope | None, Facts], bool]
    """Whether a message matches, or a frame without messages."""
    Possible: TypeAlias = Callable[[Facts], bool]
    """Whether a frame may match, from its bytes alone."""
    Answerers = Mapping[str, Callable[[bytes], bytes | None]]
    """By the name of a gate: a function that returns the response to a request, or None to let the request pass."""

_RESPONSES = ("result", "error")
_OF_MESSAGES = ("kind", "method", "name", "id")
_ABOUT = ("method", "name")


class When:
    """A compiled `when`."""

    def __init__(self, by: str, when: "dict[str, Any]") -> None:
        """Raises ValueError with the name of the gate, `by`, for a term that is unknown or has no meaning."""
        self._test, self._possible = _node(by, "when.", when)
        self._named = _words(when)
        self._decodes = any(_has(when, key) for key in _OF_MESSAGES)
        self.follows = any(_has(when, key) for key in _ABOUT) and _may_be_response(when)
        """Whether a response may match by the method or name of its request."""

    def wants(self, facts: "Facts") -> bool:
        """Return whether the frame has the words required in its method and name, so that its response may match."""
        return facts.escaped or self._named(facts)

    def fits(self, facts: "Facts") -> bool:
        """Return whether the gate names the frame of these facts."""
        if not self._decodes:
            return self._test(None, facts)
        if not (facts.escaped or self._possible(facts) or (self.follows and facts.may_answer)):
            return False
        return any(self._test(message, facts) for message in facts.messages or (None,))


def _node(by: str, where: str, when: "dict[str, Any]") -> "tuple[Test, Possible]":
    """Return the test of a message, and the test whether a frame may match."""
    check(by, where, when, _TERMS)
    tests: list[Test] = []
    possible: list[Possible] = []
    for key, value in when.items():
        if key in ("all", "any"):
            parts = [_node(by, f"{where}{key}.{number}.", part) for number, part in enumerate(value)]
            inner, may = _joined([test for test, _ in parts], key), _joined_possible([it for _, it in parts], key)
        elif key == "not":
            part, _ = _node(by, f"{where}not.", value)
            inner, may = _negated(part), _always
        else:
            inner = _LEAVES[key](_listed(key, value))
            may = _words({key: value})
        tests.append(inner)
        possible.append(may)
    return _joined(tests, "all"), _joined_possible(possible, "all")


def _joined(tests: "list[Test]", key: str) -> "Test":
    if len(tests) == 1:
        return tests[0]
    stop = key == "any"  # a plain loop, because this is called for each frame

    def test(message: "Envelope | None", facts: "Facts") -> bool:
        for part in tests:
            if part(message, facts) is stop:
                return stop
        return not stop

    return test


def _joined_possible(tests: "list[Possible]", key: str) -> "Possible":
    tests = [test for test in tests if test is not _always] if key == "all" else tests
    if len(tests) <= 1:
        return tests[0] if tests else _always
    stop = key == "any"

    def possible(facts: "Facts") -> bool:
        for part in tests:
            if part(facts) is stop:
                return stop
        return not stop

    return possible


def _negated(test: "Test") -> "Test":
    return lambda message, facts: not test(message, facts)


def _always(_: "Facts") -> bool:
    return True


def _words(when: "dict[str, Any]") -> "Possible":
    """Return the test whether a frame has a word of each glob for methods and names that must match."""
    parts: list[Possible] = []
    for key, value in when.items():
        if key in _ABOUT:
            words = [_word(glob) for glob in _listed(key, value)]
            if all(words):
                parts.append(_holds_one(words))
        elif key in ("all", "any"):
            parts.append(_joined_possible([_words(part) for part in value], key))
    return _joined_possible(parts, "all")


def _holds_one(words: "Sequence[bytes]") -> "Possible":
    if len(words) == 1:
        word = words[0]
        return lambda facts: word in facts.lower
    return lambda facts: any(word in facts.lower for word in words)


def _has(when: "dict[str, Any]", key: str) -> bool:
    """Return whether a term is anywhere in `when`."""
    inner = [*when.get("all", ()), *when.get("any", ()), *([when["not"]] if "not" in when else [])]
    return key in when or any(_has(part, key) for part in inner)


def _may_be_response(when: "dict[str, Any]") -> bool:
    """Return whether its kinds allow a response."""
    kinds = _listed("kind", when["kind"]) if "kind" in when else _RESPONSES
    return any(kind in ("response", *_RESPONSES) for kind in kinds) and all(map(_may_be_response, when.get("all", ())))


def _listed(key: str, value: "Any") -> "Sequence[Any]":
    """Return the values of a term. At least one must hold."""
    single = type(value) not in (list, tuple)
    if key in ("id", "size"):
        single = type(value[0]) not in (list, tuple)
    return (value,) if single else value


def _senders(values: "Sequence[str]") -> "Test":
    return lambda _, facts: facts.sender in values


def _kinds(values: "Sequence[str]") -> "Test":
    chosen = {kind for value in values for kind in (_RESPONSES if value == "response" else (value,))}
    return lambda message, _: message is not None and message.kind in chosen


def _method(values: "Sequence[Any]") -> "Test":
    return _about(0, values)


def _name(values: "Sequence[Any]") -> "Test":
    return _about(1, values)


def _about(place: int, values: "Sequence[Any]") -> "Test":
    globs = [value for value in values if type(value) is str]
    literals = [value["is"] for value in values if type(value) is not str]

    def test(message: "Envelope | None", facts: "Facts") -> bool:
        text = facts.about(message)[place] if message else None
        if text is None:
            return False
        return any(matches(glob, text) for glob in globs) or any(_is(literal, text) for literal in literals)

    return test


def _is(literal: str, text: str) -> bool:
    return text == literal or (text.lower() == literal and not any(letter.isupper() for letter in literal))


def _ids(values: "Sequence[Sequence[str]]") -> "Test":
    keys = {tuple(value) for value in values if value[0] != "glob"}
    globs = [value[1] for value in values if value[0] == "glob"]

    def test(message: "Envelope | None", _: "Facts") -> bool:
        if message is None or message.id is None:
            return False
        kind, text = message.id
        return message.id in keys or (kind == "string" and any(matches(glob, text) for glob in globs))

    return test


def _texts(values: "Sequence[str]") -> "Test":
    return lambda _, facts: any(_holds(text, facts) for text in values)


def _holds(text: str, facts: "Facts") -> bool:
    """Return whether a frame contains a text, as received or with the escapes of its strings decoded."""
    ignores_case = not any(letter.isupper() for letter in text)
    frame = facts.frame.decode("utf-8", "replace")
    if text in (frame.lower() if ignores_case else frame):
        return True
    if "\\" not in frame:
        return False
    try:
        value = decode(message_of(facts.frame, facts.framing))
    except (ValueError, RecursionError):
        return False
    found = (part for path, inner in walk(value) for part in (inner, path[-1] if path else "") if type(part) is str)
    return any(text in (part.lower() if ignores_case else part) for part in found)


def _sizes(values: "Sequence[Sequence[int | None]]") -> "Test":
    def test(_: "Envelope | None", facts: "Facts") -> bool:
        size = len(facts.frame)
        return any((least or 0) <= size and (most is None or size <= most) for least, most in values)

    return test


def _is_name(value: "Any") -> bool:
    if type(value) is dict:
        return list(value) == ["is"] and is_text(value["is"]) and value["is"] != ""
    return type(value) is str and value != ""


def _is_size(value: "Any") -> bool:
    return (
        type(value) in (list, tuple) and len(value) == 2 and all(bound is None or _BYTES[0](bound) for bound in value)
    )


_BYTES = bounded("size")


def _are_objects(value: "Any") -> bool:
    return type(value) in (list, tuple) and all(type(part) is dict for part in value)


_TERMS: "dict[str, Allowed]" = {
    "from": one_or_more(one_of("client", "server")),
    "kind": one_or_more(one_of("request", "notification", "result", "error", "response")),
    "method": one_or_more((_is_name, f"{GLOB[1]}, or an object with `is`")),
    "name": one_or_more((_is_name, f"{GLOB[1]}, or an object with `is`")),
    "id": one_or_more((is_id, 'the type and the text of an id, such as ["number", "7"] or ["string", "a"]'), list),
    "text": one_or_more((lambda value: is_text(value) and value != "", GLOB[1])),
    "size": one_or_more((_is_size, "two numbers of bytes, such as [0, 1000]"), list),
    "all": (_are_objects, "a list of objects"),
    "any": (_are_objects, "a list of objects"),
    "not": ((lambda value: type(value) is dict), "an object"),
}
_LEAVES: "dict[str, Callable[[Sequence[Any]], Test]]" = {
    "from": _senders,
    "kind": _kinds,
    "method": _method,
    "name": _name,
    "id": _ids,
    "text": _texts,
    "size": _sizes,
}


def matches(glob: str, text: str) -> bool:
    """Return whether the whole text matches the glob: `*` is any text, `?` any character.

    A glob without capitals ignores case.
    """
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


def _word(glob: "str | dict[str, str]") -> bytes:
    """Return the longest part of a glob that a frame contains literally.

    Peers may escape a slash or a letter that is not ASCII, so these are not part of it.
    """
    text = glob if type(glob) is str else glob["is"]  # type: ignore[index]
    runs = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.:") else " " for letter in text)
    return max(runs.split() or [""], key=len).lower().encode()


_SECOND = 1_000_000_000


class GateAction:
    """The action of one gate; `answerer` returns the answers of `answer-from`."""

    def __init__(
        self,
        by: str,
        action: "dict[str, Any]",
        answerer: "Callable[[bytes], bytes | None] | None",
        *,
        reorder: bool,
    ) -> None:
        """Raises ValueError with the name of the gate, `by`, if the action is invalid."""
        check(by, "action.", action, _ACTIONS)
        names = [name for name in action if name != "delay"] or list(action)
        if len(names) != 1:
            raise ValueError(f"{by} needs exactly one action; only delay may be added to it")
        self._by = by
        self._name = names[0]
        self._value = action[self._name]
        self._delay = action.get("delay", 0)
        self._reorder = reorder
        self._answerer = answerer
        self._free = 0  # when a throttled line has transmitted all earlier frames

    def verdict(self, frame: bytes, facts: "Facts", t: int) -> "Verdict":
        """Return the verdict on a frame that was read at `t`. Raises ValueError if the action cannot be applied."""
        if self._name == "hold":
            return self._hold(t + self._value + self._delay, "expired", PASS)
        if self._name == "throttle":
            self._free = max(t + self._delay, self._free) + len(frame) * _SECOND // self._value
            return self._hold(self._free, "delayed", PASS)
        verdict = self._at_once(frame, facts)
        return self._hold(t + self._delay, "delayed", verdict) if self._delay else verdict

    def _hold(self, until: int, how: str, then: "AtOnce") -> Hold:
        return Hold(until, self._by, how, then, reorder=self._reorder)

    def _at_once(self, frame: bytes, facts: "Facts") -> "AtOnce":
        name, value, by = self._name, self._value, self._by
        if name == "drop":
            return Drop(by)
        if name == "repeat":
            return Send((frame,) * value, by)
        if name == "send":
            texts = [text.encode() for text in ([value] if isinstance(value, str) else value)]
            if facts.framing == "sse":
                texts = [with_message(frame, "sse", text) for text in texts]
            return Send(tuple(texts), by)
        if name in ("edit", "cut", "garble"):
            other = self._changed(frame, facts)
            return Send((other,), by) if other != frame else PASS
        if name in ("answer", "answer-from"):
            return self._answered(frame, facts)
        if name == "status":
            return Refuse(value, by)
        if name == "exit":
            return Exit(value, by)
        return CloseStream(by) if name == "close" else PASS

    def _changed(self, frame: bytes, facts: "Facts") -> bytes:
        """Return the frame with its message edited or damaged."""
        if self._name == "edit":
            return edited(frame, facts.framing, self._value)
        change = _GARBLED[self._value] if self._name == "garble" else lambda message: message[: self._value]
        return changed(frame, facts.framing, change)

    def _answered(self, frame: bytes, facts: "Facts") -> "AtOnce":
        ids = [message.id if message.kind == "request" else None for message in facts.messages]
        if len(ids) != 1 or ids[0] is None:
            raise ValueError("only a single request can be answered")
        if self._name == "answer":
            members = self._value.translate(_ONE_LINE).strip()[1:].encode()
            return Reply(b'{"jsonrpc":"2.0","id":' + json_of(ids[0]) + b"," + members, self._by)
        if self._answerer is None:
            raise ValueError("nobody has been given who finds the answers")
        answer = self._answerer(frame)
        return PASS if answer is None else Reply(answer, self._by)


_ONE_LINE = {ord("\n"): " ", ord("\r"): " "}  # JSON strings contain neither
_GARBLED: "dict[str, Callable[[bytes], bytes]]" = {
    "not-json": lambda message: message.rstrip()[:-1],
    "invalid-utf8": lambda message: message.rstrip()[:-1] + b"\xff" + message.rstrip()[-1:],
    "bom": lambda message: b"\xef\xbb\xbf" + message,
}


def _is_recording(value: "Any") -> bool:
    return type(value) is dict and value.get("miss") in ("forward", "nearest") and type(value.get("file")) is str


_ACTIONS: "dict[str, Allowed]" = {
    "drop": TRUE,
    "repeat": bounded("repeat"),
    "answer": (is_answer, "the JSON text of an object with result or error, without id and jsonrpc"),
    "answer-from": (_is_recording, "an object with file and miss (forward or nearest)"),
    "send": (is_sent, f"a text, or several, at most {VALUES}"),
    "edit": (is_patch, f"the operations of a JSON Patch (RFC 6902), at most {VALUES}"),
    "cut": bounded("cut"),
    "garble": one_of("not-json", "invalid-utf8", "bom"),
    "close": TRUE,
    "status": bounded("status"),
    "exit": bounded("exit"),
    "hold": bounded("hold"),
    "throttle": bounded("throttle"),
    "delay": bounded("delay"),
}


class DeclaredGate:
    """One gate. It counts its matches, so each relay needs its own object."""

    def __init__(self, gate: "dict[str, Any]", answerers: "Answerers | None" = None) -> None:
        """Raises ValueError for an unknown key and for an invalid value."""
        gate = {"name": None, "when": {}, "action": None} | gate
        self._name = gate["name"]
        self.by = f"gate {self._name}"
        check(self.by, "", gate, _KEYS)
        fault = size_fault_of(gate["when"]) or fault_of(gate["when"])
        if fault:
            raise ValueError(f"{self.by}: {fault}")
        self._when = When(self.by, gate["when"])
        self.follows = self._when.follows
        """Whether a response may match by the method or name of its request."""
        self.waits = not {"hold", "delay", "throttle"}.isdisjoint(gate["action"] or ())
        """Whether this gate may make frames wait."""
        self._action = GateAction(self.by, gate["action"], (answerers or {}).get(self._name), reorder="reorder" in gate)
        self._after, self._times = gate.get("after", 0), gate.get("times")
        self._chance, self._seed = gate.get("chance"), gate.get("seed", 0)
        self._matched = self._acted = 0
        fault = fault_of(gate)
        if fault:
            raise ValueError(f"{self.by}: {fault}")

    def wants(self, facts: "Facts") -> bool:
        """Return whether the frame has every word that this gate requires in its method and name."""
        return self._when.wants(facts)

    def matches(self, facts: "Facts") -> bool:
        """Return whether the gate names the frame; the number of its actions so far does not matter."""
        return self._when.fits(facts)

    def decide(self, frame: bytes, facts: "Facts", t: int) -> "Verdict":
        """Return the verdict on a frame that was read at `t`. Raises ValueError if the action cannot be applied."""
        if not self._when.fits(facts):
            return PASS
        self._matched += 1
        spent = self._times is not None and self._acted >= self._times
        if spent or self._matched <= self._after or not self._drawn():
            return PASS
        self._acted += 1
        return self._action.verdict(frame, facts, t)

    def _drawn(self) -> bool:
        """Return whether chance selects this match."""
        if self._chance is None:
            return True
        drawn = blake2b(f"{self._seed} {self._matched} {self._name}".encode("utf-8", "replace"), digest_size=4).digest()
        return int.from_bytes(drawn, "big") < float(self._chance) * (1 << 32)


_SEED = bounded("seed")
_KEYS: "dict[str, Allowed]" = {
    "name": NAME,
    "when": OBJECT,
    "action": OBJECT,
    "after": bounded("after"),
    "times": bounded("times"),
    "chance": ((lambda value: type(value) in (int, float) and 0 <= value <= 1), "a number from 0 to 1"),
    "seed": (
        (lambda value: type(value) is str or _SEED[0](value)),
        "a whole number or a text; a number has at most 63 bits",
    ),
    "reorder": TRUE,
}
