"""YAML 1.2: the nodes that ruamel.yaml composes have positions; its round trip would reflow the text.

The value of an alias is elsewhere in the text, and a value with an anchor is used elsewhere too: such text is `fixed`.
"""

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

from mcpspy.clients.tree import DEEPEST, Member, Node, Syntax

LONGEST = 1 << 20
"""The most characters of a text: ruamel.yaml takes 16 µs for each."""


def read(text: str) -> Node:
    """Return the tree of `text`. Raises Syntax."""
    if len(text) > LONGEST:
        raise Syntax(0, f"there are more than {LONGEST:,} characters, which is too much for YAML")
    mark = len(text) - len(text.removeprefix("\ufeff"))
    yaml = YAML(typ="safe", pure=True)
    try:
        root = yaml.compose(text[mark:])
    except MarkedYAMLError as error:
        place = error.problem_mark
        raise Syntax(mark + (place.index if place else 0), error.problem or "no YAML") from error
    except YAMLError as error:
        raise Syntax(mark + getattr(error, "position", 0), getattr(error, "reason", "no YAML")) from error
    except RecursionError as error:
        raise Syntax(0, "nested too deeply") from error
    if root is None:
        return Node(mark, mark, None)
    return _Build(yaml, text, mark).node(root, 0)


class _Build:
    def __init__(self, yaml: YAML, text: str, mark: int) -> None:
        self._constructor: Any = yaml.constructor
        self._text = text
        self._mark = mark
        self._seen: set[int] = set()

    def node(self, node: Any, depth: int) -> Node:
        """Return the tree of a node that ruamel.yaml composed."""
        start, end = node.start_mark.index + self._mark, node.end_mark.index + self._mark
        if depth > DEEPEST:
            raise Syntax(start, "nested too deeply")
        fixed = "has a YAML anchor or is an alias" if node.anchor else ""
        if isinstance(node, ScalarNode):
            fixed = fixed or ("is a YAML block of text" if node.style in ("|", ">") else "")
            fixed = fixed or ("" if end > start else "is empty")
            try:
                value = self._constructor.construct_object(node)
            except (YAMLError, ValueError, OverflowError) as error:  # outside entries the value is not needed
                value, fixed = node.value, f"is not a value: {str(error).splitlines()[0]}"
            return Node(start, end, value, fixed=fixed)
        again = id(node) in self._seen
        self._seen.add(id(node))
        built = Node(start, end, None, lines=not node.flow_style, fixed=fixed)
        if again:  # an alias: expanded only once, because nested aliases grow without bounds
            built.value = f"alias {node.anchor}"
        elif isinstance(node, SequenceNode):
            if built.lines and self._text[start] == "!":  # then it does not begin with its first dash
                built.fixed = built.fixed or "has a YAML tag"
            built.value = [self.node(element, depth + 1) for element in node.value]
        elif isinstance(node, MappingNode):
            built.value = {str(key.value): self._member(key, value, depth) for key, value in node.value}
        return built

    def _member(self, key: Any, value: Any, depth: int) -> Member:
        start = key.start_mark.index + self._mark
        return Member(start, start, key.end_mark.index + self._mark, self.node(value, depth + 1))
