"""What an HTTP answer without a JSON-RPC answer shows: its status, what it says, and who answered."""

import re
from typing import Any

import orjson

from mcpspy.json_values import member
from mcpspy.text import printable
from mcpspy.wire.http_head import Head, header, media_type, status

BODY = 4096
"""The bytes of a body that are looked at."""
POST_AS_GET = (301, 302, 303)
"""The redirects after which clients repeat a POST as GET, without its body (RFC 9110, 15.4; the Fetch standard)."""
TEXT = 160
"""Characters of a text."""
_NAMED = 100  # characters of a reason, or of the place to which a redirect leads
_REDIRECTS = (*POST_AS_GET, 307, 308)
_GATEWAYS = (
    *("akamai", "apache", "awselb", "caddy", "cloudflare", "cloudfront", "envoy", "fly/", "google frontend", "gws"),
    *("haproxy", "istio", "kong", "nginx", "ngrok", "openresty", "traefik", "varnish", "vercel"),
)
"""How the header `Server` of intermediaries begins."""
_OF_GATEWAYS, _ONLY_GATEWAYS = (502, 503, 504), (502, 504)
_WITHHELD = "«withheld".encode()
_TITLE = re.compile(rb"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TITLE_KEPT = re.compile('«withheld: [0-9]+ bytes, title "(.*)"»'.encode(), re.DOTALL)
MESSAGES = (
    ("error", "message"),
    ("error_description",),
    ("message",),
    ("detail",),
    ("details",),
    ("error",),
    ("title",),
)
"""Where a JSON object has the text of an error."""


def gateway(head: Head | None) -> str:
    """Return which intermediary answered in place of the server, as far as the head of the answer shows it."""
    page = media_type(head) == "text/html"
    if not page and status(head) not in _OF_GATEWAYS:
        return ""  # such headers stand on answers of the server too
    server, via = header(head, "server") or "", header(head, "via")
    if server.lower().startswith(_GATEWAYS):
        return printable(server, 40)
    if via:
        return printable(f"the proxy {via}", 60)
    return "a web server, as an HTML page" if page else "a gateway" if status(head) in _ONLY_GATEWAYS else ""


def status_line(head: Head | None) -> str:
    """Return the status of an answer, with its reason."""
    return f"{status(head)} {printable(str((head or {}).get('reason') or ''), _NAMED)}".strip()


def redirection(head: Head | None) -> str:
    """Return where a redirect leads, and what clients make of it; empty for other answers."""
    code = status(head)
    if code not in _REDIRECTS:
        return ""
    there = f" to {printable(header(head, 'location') or 'nowhere', _NAMED)}"
    return f"{there}; clients then repeat the POST as GET, without its message" if code in POST_AS_GET else there


def refusal(head: Head | None, said: str) -> str:
    """Return how a request was refused: status, where a redirect leads, who answered, and what the body says."""
    who = gateway(head)
    told = f": {said}" if said and not redirection(head) else ""
    return f"status {status_line(head)}{redirection(head)}{f' from {who}' if who else ''}{told}"


def body_text(raw: bytes) -> str:
    """Return what the body of an HTTP answer says: the message in its JSON, the title of a page, or its beginning."""
    raw = raw[:BODY]
    title = (_TITLE_KEPT if raw.startswith(_WITHHELD) else _TITLE).search(raw)
    if title:
        return one_line(title[1].decode(errors="replace"))
    if raw.startswith(_WITHHELD):
        return ""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return "" if raw.lstrip()[:1] == b"<" else one_line(raw.decode(errors="replace"))
    found = (member(value, *path) for path in MESSAGES)
    return one_line(next((it for it in found if isinstance(it, str) and it), ""))


def one_line(text: Any) -> str:
    """Return the first line of a text that says something; with the next one, if it only introduces that."""
    every = text[: 4 * TEXT].splitlines() if isinstance(text, str) else ()
    lines = [line.strip() for line in every if line.strip()][:2]
    introduces = lines and (lines[0].endswith(":") or lines[0].startswith("#"))
    return printable(" ".join(lines if introduces else lines[:1]), TEXT)
