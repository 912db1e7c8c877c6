"""A configuration without its secrets, and without what may be one, so that it can be shown.

Secrets are the values under a key that names a secret, in an environment or in headers, and in any other string what a
capture would redact too. Only such strings are changed, so a diff of two texts stays useful.
"""

from collections.abc import Iterator

from mcpspy.clients.formats import read
from mcpspy.clients.tree import Edit, Node, edited, quote
from mcpspy.secrets.redactor import Redactor, Withheld, is_secret_name

_ALL_SECRET = ("env", "environment", "headers", "http_headers", "requestOptions")


def withheld(text: str, form: str) -> str:
    """Return `text` without its secrets. Raises ConfigError if it is invalid in its format."""
    return edited(text, set(_edits(read(text, form), Withheld())))


def _edits(node: Node, redactor: Redactor) -> Iterator[Edit]:
    if isinstance(node.value, dict):
        for key, member in node.value.items():
            if key in _ALL_SECRET or is_secret_name(key):
                yield from (Edit(one.start, one.end, quote(redactor.mark(""))) for one in _strings(member.node))
            else:
                yield from _edits(member.node, redactor)
        return
    strings = [one for one in (node.value if isinstance(node.value, list) else [node]) if isinstance(one.value, str)]
    for one, clean in zip(strings, redactor.argv([one.value for one in strings]), strict=True):
        if (shown := redactor.url(clean)) != one.value:
            yield Edit(one.start, one.end, quote(shown))
    for inner in node.value if isinstance(node.value, list) else ():
        if isinstance(inner.value, dict | list):
            yield from _edits(inner, redactor)


def _strings(node: Node) -> Iterator[Node]:
    """Yield every string in a value."""
    if isinstance(node.value, dict):
        for member in node.value.values():
            yield from _strings(member.node)
    elif isinstance(node.value, list):
        for element in node.value:
            yield from _strings(element)
    elif isinstance(node.value, str) and node.value:
        yield node
