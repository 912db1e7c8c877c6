"""Rules about the credentials that a client sends.

Secrets are redacted before they are written, so the capture does not show them. Only placeholders are visible: a
variable that nothing expanded, an example, the text of no value (`mcpspy.secrets.tokens`).
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import ClassVar
from urllib.parse import parse_qsl

from mcpspy.conversation.bounds import keep
from mcpspy.conversation.model import HttpChannel, HttpUnit, Message, Session
from mcpspy.json_values import excerpt
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.secrets.patterns import SCHEMES, is_secret_name
from mcpspy.secrets.tokens import placeholder
from mcpspy.wire.http_head import status
from mcpspy.wire.jsonrpc import Error, Request

_REFUSED, _BAD_REQUEST = (401, 403), 400
_OF_CREDENTIALS = re.compile(r"token|credential|authori[sz]|api.?key|secret|bearer", re.IGNORECASE)
_NAMED = 60  # characters of the name of a header
_MOST = 4  # placeholders that a finding tells


@rule(
    "http/placeholder",
    "warning",
    """The place of a secret has something else: a variable that the client did not expand (`${MY_TOKEN}`), an example
    (`YOUR_API_KEY`), the text of no value (`undefined`, `null`), or nothing. The server cannot accept it. Usually the
    variable is not set, or this client expands variables in another form or not at all.""",
    fix="""Set the variable where the client starts, and write it in the form that this client expands, or write the
    value itself.""",
    meanwhile="Answer 401 with a text that tells what is wrong with the credentials.",
    blame="client",
    spec="https://www.rfc-editor.org/rfc/rfc6750#section-2.1",
    about="refusal",
    fails="""
        = 2025-06-18 http
        >> [authorization: Bearer ${MY_TOKEN}] 2 tools/list
        << 401 [www-authenticate: Bearer error="invalid_token"]
    """,
    passes="""
        = 2025-06-18 http
        >> [authorization: Bearer «redacted:716d4e54»] 2 tools/list
        << 200 2 = {"tools":[]}
    """,
    on=(Error, HttpUnit),
    explains=("refused", "error"),
)
class Placeholder(StatefulCheck):
    """Report a placeholder in the first request that is refused for it, or else in the first request of the session."""

    learns_from: ClassVar = {Request: ("initialize", "server/discover", "tools/list")}

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._first: tuple[Message | HttpUnit, str] | None = None
        self._looked = self._reported = False

    def learn(self, message: Message) -> None:
        """Look at the head of the first request."""
        if not self._looked and message.http and message.http.request is None:
            self._looked = True
            found = _told_of(message.http)
            self._first = (message, found) if found else None

    def check(self, message: Message | HttpUnit) -> Iterator[Fault]:
        """Look at the head of a request that is refused."""
        place, request = message.http, message.http.request if message.http else None
        if place is None or request is None or not _refuses(place):
            return
        found = _told_of(request)
        at = request.carried[0] if request.carried else message
        if found:
            keep(self.session.explained, at.n, None)  # it is refused, and this tells why
        if found and not self._reported:
            self._reported = True
            row = () if request.carried or request.first is None else (request.first,)
            yield Fault(found, related=row, blame="client", at=at)

    def close(self) -> Iterator[Fault]:
        """Report the first request if none was refused."""
        if self._first and not self._reported:
            at, found = self._first
            yield Fault(found, blame="client", at=at)


def _refuses(answer: HttpChannel) -> bool:
    """Return whether an answer refuses the credentials of its request."""
    code = status(answer.opened.head)
    return code in _REFUSED or (code == _BAD_REQUEST and _OF_CREDENTIALS.search(answer.said) is not None)


def _told_of(request: HttpChannel) -> str:
    """Return what stands in place of the secrets of a request: of the first ones."""
    return "; ".join(islice(_unfilled(request), _MOST))


def _unfilled(request: HttpChannel) -> Iterator[str]:
    """Yield what stands in place of the secrets of a request."""
    head = request.opened.head or {}
    for name, value in head.get("headers") or ():
        if isinstance(value, str) and is_secret_name(str(name)):
            scheme, _, credentials = value.strip().partition(" ")
            if scheme.lower() in SCHEMES and not credentials:
                yield f"the header {name[:_NAMED]} has nothing after {scheme}"
            elif not value.strip():
                yield f"the header {name[:_NAMED]} is empty"
            else:
                yield from _told(f"the header {name[:_NAMED]}", (value, credentials))
    for name, value in parse_qsl(str(request.summary["target"]).partition("?")[2], keep_blank_values=True):
        if is_secret_name(name) and not value.strip():
            yield f"the query parameter {name[:_NAMED]} is empty"
        elif is_secret_name(name):
            yield from _told(f"the query parameter {name[:_NAMED]}", (value,))


def _told(where: str, values: tuple[str, ...]) -> Iterator[str]:
    for value in values:
        kind = placeholder(value)
        if kind == "variable":
            yield f"{where} has an unexpanded variable: {value.strip()}"
        elif kind == "example":
            yield f"{where} has an example in place of a secret: {excerpt(value.strip())}"
        elif kind:
            yield f"{where} has the text {excerpt(value.strip())} in place of a secret"
