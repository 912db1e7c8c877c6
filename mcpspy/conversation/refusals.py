"""What an HTTP answer without a JSON-RPC answer shows: its status, what it says, and who answered."""

import re
from typing import Any

import orjson

from mcpspy.conversation.model import HttpChannel
from mcpspy.json_values import member
from mcpspy.secrets.patterns import is_secret_name
from mcpspy.text import printable
from mcpspy.wire.http_head import Head, header, media_type, status

BODY = 4096
"""The bytes of a body that are looked at."""
POST_AS_GET = (301, 302, 303)
"""The redirects after which clients repeat a POST as GET, without its body (RFC 9110, 15.4; the Fetch standard)."""
TEXT = 160
"""Characters of a text."""
_FAILURE, _NOT_FOUND, _NOT_ALLOWED, _SERVER_FAILURE = 400, 404, 405, 500
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
_LOGIN_PAGE = re.compile(
    r"(?:^|[/.])(?:[a-z]+[-_])?(?:log[-_]?in|sign[-_]?in|log[-_]?on|sign[-_]?on|sso|oauth2?|saml2?|authorize)(?:[/.;#]|$)",
    re.IGNORECASE,
)
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
UNKNOWN = re.compile(
    r"no valid|no active|no such|not found|invalid|not valid|unknown|expired|terminated|closed|no longer|not exist"
    r"|n't exist|not recogni[sz]ed|unrecogni[sz]ed|stale",
    re.IGNORECASE,
)
"""How a text says that something is not known (any more)."""
_OWN_SESSION = re.compile(
    r"(?:^|[:;,.(]\s*)(?:(?:the|this|your|an?|no|such|mcp|http|transport|valid|invalid|unknown|active|expired|stale)\s+)*"
    r"(?:mcp[- ])?session",
    re.IGNORECASE,
)
_OF_LOGIN = re.compile(r"log.?in|sign.?in|authen|authori[sz]|token|credential|cookie|password", re.IGNORECASE)


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


def why_normal(request: HttpChannel, code: int) -> str | None:
    """Return why an HTTP request may be refused with a status: a key of `EXPECTED` in `outcomes`."""
    method, over = request.summary["method"], request.session.over
    if (code == _NOT_ALLOWED and method in ("GET", "DELETE")) or (code == _NOT_FOUND and method == "DELETE"):
        return "optional"
    if code == _NOT_FOUND and method == "GET" and request.named and over is not None and over.by_client:
        return "optional"  # the client had deleted the session
    document = "/.well-known/" in str(request.summary["target"]) and _FAILURE <= code < _SERVER_FAILURE
    return "document" if document else None


def leads_to(head: Head | None) -> str:
    """Return where a redirect leads; empty for other answers."""
    return f" to {printable(header(head, 'location') or 'nowhere', _NAMED)}" if status(head) in _REDIRECTS else ""


def leads_to_login(request: HttpChannel, head: Head | None) -> bool:
    """Return whether a request is redirected to a page on which a person logs in, by the URL of that page."""
    there = (header(head, "location") or "").partition("?")[0] if status(head) in _REDIRECTS else ""
    here = str(request.summary["target"]).partition("?")[0].rstrip("/")
    moved = there.rstrip("/").endswith(here[here.rfind("/") :] or "/")  # the same resource, at another place
    return not moved and _LOGIN_PAGE.search(there) is not None


def redirection(head: Head | None) -> str:
    """Return where the redirect of a POST leads, and what clients make of it; empty for other answers."""
    repeats = "; clients then repeat the POST as GET, without its message" if status(head) in POST_AS_GET else ""
    return leads_to(head) + repeats


def refusal(head: Head | None, said: str) -> str:
    """Return how a request was refused: status, where a redirect leads, who answered, and what the body says."""
    who = gateway(head)
    told = f": {said}" if said and not redirection(head) else ""
    return f"status {status_line(head)}{redirection(head)}{f' from {who}' if who else ''}{told}"


def has_credentials(request: HttpChannel) -> bool:
    """Return whether a request has a header for credentials."""
    fields = (request.opened.head or {}).get("headers") or ()
    return any(is_secret_name(str(name)) for name, _ in fields)


def denies_session(said: str) -> bool:
    """Return whether a text says that the session is not known: that of the transport, and not that of a login."""
    told = _OWN_SESSION.search(said) is not None and UNKNOWN.search(said) is not None
    return told and not _OF_LOGIN.search(said)


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
