"""The content of a message as lines: what a person reads, in place of the JSON on the wire.

A line has a depth, a label and a text; a line that opens a value is followed by deeper lines. Text has its own line
breaks; JSON within a string is unfolded like the JSON around it, at any depth; an image, a sound or a blob is one line
that says what its bytes are. Members keep their order, except that `_meta` comes last. Of members with the same name
the last one is shown, and a line says so. The envelope (`jsonrpc`, `id`, `method`) is left out, because viewers show it
beside the message.

Lines are made one after the other, so the first screen of a message of megabytes takes no longer than that of a small
one. Nothing is made safe for a screen here: who shows a line does that (`mcpspy.text`).
"""

from collections import Counter
from collections.abc import Container, Generator, Iterator
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpspy.json_values import Number, Path, member, only_value, scanner
from mcpspy.reading.media import MediaFile, disagreement, media_of
from mcpspy.text import plural

if TYPE_CHECKING:
    from mcpspy.json_values import Scanner

READ = frozenset(
    ("tools/call", "tools/list", "prompts/get", "prompts/list", "resources/read", "sampling/createMessage",
     "notifications/message", "completion/complete", "elicitation/create", "initialize", "server/discover")
)  # fmt: skip
"""The methods whose messages are shown in this form, unless the user chooses another one."""

_LARGEST_INNER = 1 << 20  # characters of a string that is tried as JSON
_LEAST_MEDIA = 64  # characters of a string that is taken for base64 by its bytes alone
_SHORT = 80  # characters of a text that stays on the line of its label
_LONGEST = 1000  # characters of one line; a longer line of a text continues on the next one
_TITLES = ("role", "name", "uri", "uriTemplate", "title", "id")
_FOLDED = frozenset(("_meta", "inputSchema", "outputSchema", "icons", "annotations", "execution"))
_BLOBS = ("data", "blob")
_BLOCKS = {"text": "text", "image": "data", "audio": "data", "resource": "resource"}
"""The types of content blocks, with the member that is shown as the block itself."""
_ENVELOPE = ("jsonrpc", "id", "method")
_NO_NAMES = ("-", "content")  # labels that say less than the type of a content block
_NAMELESS = ("", "-")  # labels of what has no name: a member with such a name is labelled in quotes
_STRUCTURED = ("result", "structuredContent")
_WRAPPED = "result"  # the member in which SDKs return what is no object
_INNER = "\0"  # a step of a path: from a string into the JSON that it holds


class ContentLine(NamedTuple):
    """One line of a message."""

    depth: int
    label: str
    """The name of the member, or what an element is; empty for a line of text."""
    text: str
    kind: str
    """What the text is: text, string, number, literal, media, or note for what no peer wrote."""
    path: Path
    """The position of its value in the message; equal for all lines of one text."""
    opens: bool = False
    """Whether the deeper lines that follow belong to it."""
    folded: bool = False
    """Whether these are hidden at first."""
    start: int = 0
    """For a line of a text: the position of its first character in the whole text."""
    media: str = ""
    """For media: the base64 text or the `data:` URL."""


class _Repeated(dict[str, Any]):
    """An object with names that occur several times; it has their last values, and is equal to no other object."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.times = Counter(name for name, _ in pairs)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None


class _Note(str):
    """What is shown in place of a value, and was not sent."""

    __slots__ = ()


def pointed(path: Path) -> Path:
    """Return the part of a path that leads through the message itself, and not into the JSON of a string."""
    return path[: path.index(_INNER)] if _INNER in path else path


def parse(text: str) -> Any:
    """Return the JSON value of a text, with the digits of its numbers kept. Raises ValueError."""
    try:
        return only_value(text, _scanner())
    except RecursionError:
        raise ValueError("nested too deeply") from None


def value_of(message: Any, path: Path) -> Any:
    """Return the value at the path of a line. Raises LookupError or ValueError if there is none."""
    for step in path:
        message = parse(message) if step == _INNER else message[step]
    return message


def content_lines(message: Any) -> Iterator[ContentLine]:
    """Yield the lines of a decoded message, or of any JSON value."""
    same = _same_as_text(message)
    parts = _parts(message)
    if not parts:
        yield ContentLine(0, "", "no params", "note", ())
    waiting = [iter(parts)]
    while waiting:
        value = next(waiting[-1], None)
        if value is None:
            waiting.pop()
            continue
        of, path = value.value, value.path
        if isinstance(of, _Note):
            yield ContentLine(value.depth, value.label, str(of), "note", path)
        elif isinstance(of, str) and not isinstance(of, Number):
            waiting.append((yield from _string_lines(value)))
        elif not isinstance(of, dict | list) or not of:
            yield ContentLine(value.depth, value.label, *_scalar(of), path)
        elif block := _block(value):
            waiting.append(iter(block))
        else:
            note = same if path == _STRUCTURED else ""
            folded = value.label in _FOLDED or note != ""
            many = plural(len(of), "element" if isinstance(of, list) else "member") if folded else ""
            yield ContentLine(value.depth, value.label, note or many, "note", path, opens=True, folded=folded)
            waiting.append(_inside(value, value.depth + 1))


class _Value(NamedTuple):
    """A value that is to be shown."""

    depth: int
    label: str
    path: Path
    value: Any
    said: Any = None
    """The `mimeType` beside it."""


def _parts(message: Any) -> list[_Value]:
    """Return what of a message is shown without indentation."""
    if not isinstance(message, dict):
        return [_Value(0, "", (), message)]
    for name in ("params", "result", "error"):
        if isinstance(message.get(name), dict):
            twice = _members(0, message, (), without=message)
            found = [*_members(0, message[name], (name,))] or [_Value(0, name, (name,), message[name])]
            inner = (_inside(value, 0) if _is_list_of_blocks(value) else [value] for value in found)
            return [*twice, *chain.from_iterable(inner)]
    return [*_members(0, message, (), _ENVELOPE)]


def _members(depth: int, value: dict[str, Any], path: Path, without: Container[str] = ()) -> Iterator[_Value]:
    """Yield the members of an object, and which of its names are repeated; `_meta` comes last."""
    times = value.times if isinstance(value, _Repeated) else {}
    for name in sorted(value, key="_meta".__eq__):
        label = name if name not in _NAMELESS else f'"{name}"'
        if times.get(name, 1) > 1:
            note = f"{times[name]:,} members have this name; only the last one is shown"
            yield _Value(depth, label, (*path, name), _Note(note))
        if name not in without:
            yield _Value(depth, label, (*path, name), value[name], value.get("mimeType"))


def _is_list_of_blocks(value: _Value) -> bool:
    """Return whether the label of a value says no more than the fact that it is shown."""
    return value.label in ("content", "contents") and isinstance(value.value, list) and bool(value.value)


def _inside(value: _Value, depth: int) -> Iterator[_Value]:
    """Yield the members or elements of a value, to be shown at a depth."""
    of = value.value
    if isinstance(of, dict):
        titled = _is_element(value) and len(of) > 1  # else nothing would be inside
        told = tuple(name for name in _TITLES if of.get(name) == value.label) if titled else ()
        return _members(depth, of, value.path, told[:1])
    return (_Value(depth, _title(it), (*value.path, n), it) for n, it in enumerate(of))


def _is_element(value: _Value) -> bool:
    return bool(value.path) and type(value.path[-1]) is int


def _title(element: Any) -> str:
    """Return the label of an element of an array: the text that names it. A number would look like an index."""
    named = (element.get(name) for name in _TITLES) if isinstance(element, dict) else ()
    return next((it for it in named if isinstance(it, str) and it and not isinstance(it, Number)), "-")


def _scalar(value: Any) -> tuple[str, str]:
    """Return the text of a value without parts, and its kind."""
    if isinstance(value, Number):
        return str(value), "number"
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]", "literal"
    return {None: "null", True: "true", False: "false"}[value], "literal"


def _block(value: _Value) -> list[_Value]:
    """Return what is shown of a content block: its main value, labelled by its type, and its other members."""
    of = value.value
    kind = of.get("type") if isinstance(of, dict) else None
    main = _BLOCKS.get(kind) if isinstance(kind, str) else None
    if main is None or not isinstance(of.get(main), str | dict):
        return []
    label = kind if value.label in _NO_NAMES else value.label
    shown = _Value(value.depth, str(label), (*value.path, main), of[main], of.get("mimeType"))
    without = ("type", main, "mimeType") if _media(shown) else ("type", main)  # the line of media has the type
    return [shown, *_members(value.depth + 1, of, value.path, without)]


def _string_lines(value: _Value) -> Generator[ContentLine, None, Iterator[_Value]]:
    """Yield the lines of a string. Returns what is shown inside it: the members of its JSON."""
    depth, label, path, text, said = value
    media = _media(value)
    inner = None if media else _json_in(text)
    if media:
        told = "; ".join(filter(None, (str(media), disagreement(media, said))))
        yield ContentLine(depth, label, told, "media", path, media=text)
    elif inner is not None:
        yield ContentLine(depth, label, "JSON in a string", "note", path, opens=True)
        return _inside(_Value(depth, label, (*path, _INNER), inner), depth + 1)
    elif "\n" in text or len(text) > _SHORT:
        yield ContentLine(depth, label, "", "text", path, opens=True)
        for start, line in _text_lines(text):
            yield ContentLine(depth + 1, "", line, "text", path, start=start)
    else:
        yield ContentLine(depth, label, text, "string", path)
    return iter(())


def _text_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text with their positions; a line that is too long is broken, after a blank if it can be."""
    start = 0
    while start < len(text):
        end = text.find("\n", start, start + _LONGEST)
        if end < 0 and len(text) - start > _LONGEST:
            end = text.rfind(" ", start + 1, start + _LONGEST) + 1 or start + _LONGEST
            yield start, text[start:end]
            start = end
        else:
            end = len(text) if end < 0 else end
            yield start, text[start:end].removesuffix("\r")
            start = end + 1


def _media(value: _Value) -> MediaFile | None:
    """Return what a string holds, if it is an image, a sound or another file in base64."""
    text, path = value.value, value.path
    if not isinstance(text, str):
        return None
    named = bool(path) and path[-1] in _BLOBS and isinstance(value.said, str)
    if not (named or len(text) >= _LEAST_MEDIA or text.startswith("data:")):
        return None
    media = media_of(text)
    return media if media and (media.types or named) else None


def _json_in(text: str) -> Any:
    """Return the object or array that a string holds as JSON; None if it holds none."""
    if not ("{" in text[:_SHORT] or "[" in text[:_SHORT]) or len(text) > _LARGEST_INNER:
        return None
    try:
        value = parse(text)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) and value else None


def _same_as_text(message: Any) -> str:
    """Return what to tell if the structured content of a result repeats the only text of the result; else empty."""
    result = message.get("result") if isinstance(message, dict) else None
    content = result.get("content") if isinstance(result, dict) else None
    structured = result.get("structuredContent") if isinstance(result, dict) else None
    text = member(content[0], "text") if isinstance(content, list) and len(content) == 1 else None
    if not isinstance(text, str) or not structured:
        return ""
    if structured == {_WRAPPED: text}:
        return "the same as the text"
    return "the same as the JSON in the text" if _json_in(text) == structured else ""


@cache
def _scanner() -> "Scanner":
    return scanner(Number, _object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Repeated(pairs)
