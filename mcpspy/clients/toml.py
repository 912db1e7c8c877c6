"""TOML: `toml_text` validates the text and gives the values, and a scan of the valid text gives their positions."""

import re
from typing import Any

from mcpspy.clients.tree import DEEPEST, Member, Node, Syntax
from mcpspy.toml_text import toml_values

_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^"\\]++|\\[\s\S]|"{1,2}(?!"))*+"{3,5}'
    r"|'''(?:[^']++|'{1,2}(?!'))*+'{3,5}"
    r'|"(?:[^"\\]++|\\.)*+"'
    r"|'[^']*'"
)
_WORD = re.compile(r"[^,\]}\r\n#]+")


def read(text: str) -> Node:
    """Return the tree of `text`. Raises Syntax."""
    mark = len(text) - len(text.removeprefix("\ufeff"))
    try:
        toml_values(text[mark:])
        root = _Scan(text).document(mark)
    except ValueError as error:  # also for a number with too many digits
        raise _syntax(text, mark, str(error)) from error
    except RecursionError as error:
        raise Syntax(0, "nested too deeply") from error
    if _depth(root) > DEEPEST:
        raise Syntax(0, "nested too deeply")
    return root


def _depth(root: Node) -> int:
    level, depth = [root], 0
    while level:
        level = [inner for node in level for inner in _inner(node)]
        depth += 1
    return depth


def _inner(node: Node) -> list[Node]:
    if isinstance(node.value, dict):
        return [member.node for member in node.value.values()]
    return node.value if isinstance(node.value, list) else []


def _syntax(text: str, mark: int, message: str) -> Syntax:
    """Return the error of tomllib with its position as an offset; tomllib counts CRLF as one character."""
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if not match:
        return Syntax(len(text), message.removesuffix(" (at end of document)"))
    lines = text[mark:].split("\n")
    before = sum(len(line) + 1 for line in lines[: int(match[2]) - 1])
    return Syntax(mark + before + int(match[3]) - 1, match[1])


class _Scan:
    """Scans valid text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self, start: int) -> Node:
        root = table = Node(start, len(self._text), {}, lines=True)
        self._at = start
        while self._skip(_BLANK) < len(self._text):
            if self._text[self._at] == "[":
                table = self._header(root)
            else:
                self._pair(table)
        return root

    def _header(self, root: Node) -> Node:
        """Return the table that `[a.b]` or `[[a.b]]` opens."""
        start, several = self._at, self._text.startswith("[[", self._at)
        self._at += 2 if several else 1
        *above, (last, own) = self._key()
        end = self._at
        self._at = self._text.index("]", self._at) + (2 if several else 1)
        table = root
        for name, place in above:
            table = self._into(table, name, place, end)
        if not several:
            return self._into(table, last, own, end)
        new = Node(start, start, {}, lines=True)
        array = table.value.setdefault(last, Member(start, own, end, Node(start, start, [], lines=True))).node
        array.value.append(new)
        return new

    def _into(self, table: Node, name: str, start: int, end: int) -> Node:
        """Return the table called `name` in `table`, new or existing; for an array of tables, its last one."""
        new = Node(start, start, {}, lines=table.lines)
        node: Node = table.value.setdefault(name, Member(start, start, end, new)).node
        return node.value[-1] if isinstance(node.value, list) else node

    def _pair(self, table: Node) -> None:
        """Parse `key = value`; the key may be dotted."""
        start = self._at
        *above, (last, own) = self._key()
        end = self._at
        for name, place in above:
            table = self._into(table, name, place, end)
        self._at = self._text.index("=", self._at) + 1
        self._skip(_SPACE)
        table.value[last] = Member(start, own, end, self._value())

    def _key(self) -> list[tuple[str, int]]:
        """Return the parts of a dotted key with their positions; stop right after the last one."""
        parts = []
        while True:
            at = self._skip(_SPACE)
            match = _BARE.match(self._text, at) or _STRING.match(self._text, at)
            assert match
            quoted = match[0][0] in "\"'"
            parts.append((str(_scalar(match[0])) if quoted else match[0], at))
            self._at = match.end()
            dot = _SPACE.match(self._text, self._at)
            if not dot or self._text[dot.end() : dot.end() + 1] != ".":
                return parts
            self._at = dot.end() + 1

    def _value(self) -> Node:
        start, first = self._at, self._text[self._at]
        if first in "\"'":
            match = _STRING.match(self._text, start)
        elif first == "[":
            return self._array()
        elif first == "{":
            return self._inline_table()
        else:
            match = _WORD.match(self._text, start)
        assert match
        raw = match[0].rstrip()
        self._at = start + len(raw)
        return Node(start, self._at, _scalar(raw))

    def _array(self) -> Node:
        start, elements = self._at, []
        self._at += 1
        while self._text[self._skip(_BLANK)] != "]":
            elements.append(self._value())
            if self._text[self._skip(_BLANK)] == ",":
                self._at += 1
        self._at += 1
        return Node(start, self._at, elements)

    def _inline_table(self) -> Node:
        table = Node(self._at, self._at, {})
        self._at += 1
        while self._text[self._skip(_BLANK)] != "}":
            self._pair(table)
            if self._text[self._skip(_BLANK)] == ",":
                self._at += 1
        self._at += 1
        table.end = self._at
        return table

    def _skip(self, what: re.Pattern[str]) -> int:
        match = what.match(self._text, self._at)
        assert match
        self._at = match.end()
        return self._at


def _scalar(raw: str) -> Any:
    return toml_values(f"v = {raw}")["v"]
