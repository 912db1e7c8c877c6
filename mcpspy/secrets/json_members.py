"""Secrets in JSON inside a text: all strings and numbers of a list or an object below a secret name.

The text is searched for members and not parsed: the JSON may have other text around it, or may be cut off. Its length
does not matter, because each character is read once. Everything outside a secret stays unchanged.
"""

import re
from collections.abc import Callable, Iterator


def redacted_members(
    text: str, is_secret: Callable[[str], bool], mark: Callable[[str], str], prose: Callable[[str, str], str] | None
) -> str:
    """Redact what is below each secret name that has a list or an object. In a message, `prose` decides."""
    for quote, head, part in _OPENED_MEMBERS:
        clean, end, done = [], 0, 0
        for found in head.finditer(text):
            if found.start() < done or not is_secret(found["name"]):
                continue
            for piece in _pieces(part, text, found.end()):
                done, kind = piece.end(), piece.lastgroup
                secret = piece[kind] if kind else ""
                if not secret or "«redacted:" in secret:
                    continue
                shown = prose(found["name"], secret) if prose else mark(secret)
                if kind and shown != secret:
                    clean += [text[end : piece.start(kind)], quote + shown + quote if kind == "number" else shown]
                    end = piece.end(kind)
        text = "".join(clean) + text[end:]
    return text


def _pieces(part: re.Pattern[str], text: str, start: int) -> Iterator[re.Match[str]]:
    """Yield the brackets, names, strings and numbers of the list or object that begins at a position."""
    depth = 0
    for found in part.finditer(text, start):
        yield found
        depth += (found[0] in ("{", "[")) - (found[0] in ("}", "]"))
        if not depth:
            return


def _form(quote: str, string: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a member with a list or an object, and of one part of these.

    A string that is followed by a colon is a name, and belongs to no group.
    """
    head = rf'{quote}(?P<name>[^"\\]{{1,64}}){quote}\s{{0,64}}:\s{{0,64}}(?=[\[{{])'
    name = rf"{quote}{string}{quote}\s{{0,64}}:"
    number = r"(?P<number>-?\d[\d.eE+-]*)"
    return re.compile(head), re.compile(
        rf"[\[\]{{}}]|{name}|{quote}(?P<string>{string})(?:{quote})?|{number}", re.DOTALL
    )


# JSON, and JSON inside a string.
_OPENED_MEMBERS = (
    ('"', *_form('"', r'(?:[^"\\]|\\.)*+')),
    ('\\"', *_form(r'\\"', r'(?:[^"\\]|\\\\\\?.|\\[^"\\])*+')),
)
