"""Secrets in whole bodies: bodies of OAuth endpoints, forms, and logins elsewhere.

Which bodies are secret depends on where they were exchanged and on what they contain. A JSON object with a secret name
is redacted wherever it was sent, unless it is a JSON-RPC message: messages are recorded unchanged. Duplicate
members and the digits of numbers stay.
"""

import json
import re
from contextlib import suppress
from typing import Any

from mcpspy.json_values import Number
from mcpspy.secrets.patterns import JWK_SECRETS, OAUTH_MEMBERS, is_oauth_secret, is_secret_name
from mcpspy.secrets.text import Mark, redacted_fields, redacted_text, redacted_url

_TITLE, _SHOWN = 1000, 80  # bytes of a title that is looked at, and characters that are kept
_OPAQUE = re.compile(
    r"(?=[\w+/=~-]*\d)[\w+/=~-]{20,}|=|\b(?:code|token|password|passcode|pin|key|secret)\s*(?::|\bis\b)", re.IGNORECASE
)
"""What may be a secret in a title: a long word with digits, or a value that is named."""
_PLAIN = str.maketrans({"«": "'", "»": "'", '"': "'"})
# A form as clients send it (WHATWG URL, 5.2): keys and values in ASCII, without characters that must be encoded.
_FORM = re.compile(r'(?:(?:^|&)[\w.+%*~\[\]-]{1,64}=[^\s&"<>{}\\]*)+')


def oauth_body(raw: bytes, mark: Mark) -> bytes | None:
    """Redact a whole body of an OAuth endpoint, a form or a page: a JSON object, or fields.

    Return None if it cannot be parsed as one of these. Then only its size may be recorded.
    """
    text = _text(raw)
    if _is_form(text):
        return _fields(text, mark, oauth=True)
    try:
        value = _parsed(text)
        return _written(_redacted(value, mark, oauth=True)) if isinstance(value, _Object) else None
    except (ValueError, RecursionError):  # RecursionError: nested more deeply than the stack
        return None


def page_title(raw: bytes, mark: Mark) -> str:
    """Return the title of a page that is withheld: it often says who answered, and why. Empty if it may hold a secret.

    A title that is long, or that may hold a secret, is left out as a whole.
    """
    if raw.lstrip()[:1] != b"<":
        return ""
    lower = raw.lower()
    start = lower.find(b">", max(lower.find(b"<title"), 0)) + 1
    end = lower.find(b"</title", start)
    if b"<title" not in lower or end < 0 or end - start > _TITLE:
        return ""
    title = " ".join(raw[start:end].decode("utf-8", "replace").split())
    if _OPAQUE.search(title) or redacted_text(title, mark) != title:
        return ""
    return title.translate(_PLAIN)[:_SHOWN]


def login_body(raw: bytes, mark: Mark) -> bytes | None:
    """Redact a whole body from anywhere else. Return `raw` itself if it has no secrets.

    It may have secrets if it is a form, or a JSON object or array of objects without a member `jsonrpc`. Return None if
    it is nested too deeply to decide. Then only its size may be recorded. The size of the body is not checked here.
    """
    text = _text(raw)
    if _is_form(text):
        clean = _fields(text, mark, oauth=any(f"{name}=" in text for name in OAUTH_MEMBERS))
        return clean if clean != text.encode() else raw
    if not text.lstrip().startswith(("{", "[")):
        return raw
    try:
        value = _parsed(text)
        objects = [value] if isinstance(value, _Object) else value
        if not all(isinstance(one, _Object) and "jsonrpc" not in one.names for one in objects):
            return raw
        oauth = any(not OAUTH_MEMBERS.isdisjoint(one.names) for one in objects)
        clean_value = _redacted(value, mark, oauth=oauth)
        return _written(clean_value) if clean_value != value else raw
    except RecursionError:
        return raw if '"jsonrpc"' in text else None
    except ValueError:  # not JSON: names and values are searched for as in any text
        found = text if '"jsonrpc"' in text else redacted_text(text, mark)
        return found.encode() if found != text else raw


def redacted_content(text: str, mark: Mark) -> str:
    """Redact a text that may be JSON: in JSON, values below secret names at any depth."""
    if text[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            value = _parsed(text)
            clean = _redacted(value, mark, oauth=False)
            text = _json(clean) if clean != value else text
    return redacted_url(text, mark)


def _text(raw: bytes) -> str:
    """Return the body as text. Empty if it is not text."""
    try:
        return raw.decode("utf-8-sig")
    except ValueError:
        return ""


def _is_form(text: str) -> bool:
    return "=" in text.rstrip("=") and _FORM.fullmatch(text) is not None  # `=` at the end alone may be base64


def _fields(text: str, mark: Mark, *, oauth: bool) -> bytes:
    return redacted_text(redacted_fields("&" + text, mark, oauth=oauth), mark)[1:].encode()


class _Object(list[tuple[str, Any]]):
    """The members of a JSON object, also duplicate ones."""

    @property
    def names(self) -> set[str]:
        """Their names."""
        return {name for name, _ in self}


def _parsed(text: str) -> Any:
    """Parse a JSON text without a loss: numbers as their digits, objects as `_Object`."""
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=_Object)


def _json(value: Any) -> str:
    """Return a parsed value as JSON."""
    if isinstance(value, _Object):
        return "{" + ", ".join([f"{json.dumps(name, ensure_ascii=False)}: {_json(one)}" for name, one in value]) + "}"
    if isinstance(value, list):
        return "[" + ", ".join([_json(one) for one in value]) + "]"
    return value if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)


def _written(value: Any) -> bytes:
    return _json(value).encode("utf-8", "replace")


def _redacted(value: Any, mark: Mark, *, oauth: bool, secret: bool = False) -> Any:
    """Redact a value. In a `secret` one, all strings and numbers are replaced."""
    if isinstance(value, _Object):
        private = JWK_SECRETS if "kty" in value.names else ()
        return _Object(
            [
                (
                    redacted_url(key, mark),
                    _redacted(
                        member, mark, oauth=oauth, secret=secret or key in private or _is_secret(key, member, oauth)
                    ),
                )
                for key, member in value
            ]
        )
    if isinstance(value, list):
        return [_redacted(element, mark, oauth=oauth, secret=secret) for element in value]
    if isinstance(value, str) and secret and value:
        return mark(value)
    return redacted_url(value, mark) if isinstance(value, str) and not isinstance(value, Number) else value


def _is_secret(key: str, value: Any, oauth: bool) -> bool:
    """Return whether a member is a secret. In OAuth a `code` is one too, unless it is a number (an error code)."""
    return is_secret_name(key) or (oauth and is_oauth_secret(key) and not isinstance(value, Number))
