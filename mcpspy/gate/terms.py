"""Which frames a gate names: the compiled terms of its `when`.

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
messages has no kind, method, name or id.

A frame is decoded only if its bytes do not show that it cannot match: a word of each glob must be in it.
"""

from mcpspy.gate.check import GLOB, bounded, check, is_id, is_text, one_of, one_or_more
from mcpspy.gate.messages import decode, message_of
from mcpspy.json_values import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    from mcpspy.gate.check import Allowed
    from mcpspy.gate.gate import Facts
    from mcpspy.gate.messages import Envelope

    Test: TypeAlias = Callable[[Envelope | None, Facts], bool]
    """Whether a message matches, or a frame without messages."""
    Possible: TypeAlias = Callable[[Facts], bool]
    """Whether a frame may match, from its bytes alone."""

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
