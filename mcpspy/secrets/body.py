"""Secrets in whole bodies: what an OAuth endpoint, a form or a login elsewhere exchanges.

Which bodies are secret depends on where they were exchanged and on what they hold: an object of JSON with a secret name
is redacted wherever it was sent, unless it is a message of JSON-RPC, for messages are recorded as they are.
"""

import json
import re
from typing import Any

from mcpspy.secrets.patterns import OAUTH_MEMBERS, is_oauth_secret, is_secret_name
from mcpspy.secrets.text import Mark, redacted_fields, redacted_text, redacted_url

# A form as clients send it (WHATWG URL, 5.2): keys and values in ASCII, without what would have been encoded.
_FORM = re.compile(r'(?:(?:^|&)[\w.+%*~\[\]-]{1,64}=[^\s&"<>{}\\]*)+')


def oauth_body(raw: bytes, mark: Mark) -> bytes | None:
    """A whole body of an OAuth endpoint, a form or a page, without its secrets: an object of JSON, or fields.

    None if it cannot be parsed as one of these: then only its size may be recorded.
    """
    text = _text(raw)
    if _is_form(text):
        return _fields(text, mark, oauth=True)
    try:
        value = json.loads(text)
        return _written(_redacted(value, mark, oauth=True)) if isinstance(value, dict) else None
    except (ValueError, RecursionError):  # also of what is nested deeper than the stack
        return None


def login_body(raw: bytes, mark: Mark) -> bytes | None:
    """A whole body from anywhere else without its secrets; `raw` itself if it has none. Its size decides nothing here.

    It may have secrets if it is a form, or if it is a JSON object or array of objects without a member `jsonrpc`. None
    if it is too deeply nested to tell: then only its size may be recorded.
    """
    text = _text(raw)
    if _is_form(text):
        clean = _fields(text, mark, oauth=any(f"{name}=" in text for name in OAUTH_MEMBERS))
        return clean if clean != text.encode() else raw
    if not text.lstrip().startswith(("{", "[")):
        return raw
    try:
        value = json.loads(text)
        objects = value if isinstance(value, list) else [value]
        if not all(isinstance(one, dict) and "jsonrpc" not in one for one in objects):
            return raw
        oauth = any(not OAUTH_MEMBERS.isdisjoint(one) for one in objects)
        clean_value = _redacted(value, mark, oauth=oauth)
        return _written(clean_value) if clean_value != value else raw
    except RecursionError:
        return raw if '"jsonrpc"' in text else None
    except ValueError:  # not JSON after all: names and values are looked for as in any text
        found = text if '"jsonrpc"' in text else redacted_text(text, mark)
        return found.encode() if found != text else raw


def _text(raw: bytes) -> str:
    """The body as text; empty if it is not text."""
    try:
        return raw.decode("utf-8-sig")
    except ValueError:
        return ""


def _is_form(text: str) -> bool:
    return "=" in text.rstrip("=") and _FORM.fullmatch(text) is not None  # not a token in base64


def _fields(text: str, mark: Mark, *, oauth: bool) -> bytes:
    return redacted_text(redacted_fields("&" + text, mark, oauth=oauth), mark)[1:].encode()


def _written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _redacted(value: Any, mark: Mark, *, oauth: bool, secret: bool = False) -> Any:
    """A value without its secrets; of a `secret` one all strings and numbers are replaced."""
    if isinstance(value, list):
        return [_redacted(element, mark, oauth=oauth, secret=secret) for element in value]
    if isinstance(value, dict):
        return {
            redacted_url(key, mark): _redacted(
                member, mark, oauth=oauth, secret=secret or _is_secret(key, member, oauth)
            )
            for key, member in value.items()
        }
    if isinstance(value, str):
        return mark(value) if secret and value else redacted_url(value, mark)
    return mark(str(value)) if secret and value is not None and not isinstance(value, bool) else value


def _is_secret(key: str, value: Any, oauth: bool) -> bool:
    """Whether a member is a secret; in OAuth a `code` is one too, unless it is the number of an error."""
    return is_secret_name(key) or (oauth and is_oauth_secret(key) and not isinstance(value, int))
