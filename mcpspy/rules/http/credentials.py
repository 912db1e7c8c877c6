"""Rules about the credentials that a client sends.

Secrets are redacted before they are written, so the capture does not show them. Only placeholders are visible: a
variable that nothing expanded, an example, the text of no value (`mcpspy.secrets.placeholders`).
"""

from collections.abc import Iterator
from urllib.parse import parse_qsl

from mcpspy.conversation.bounds import keep
from mcpspy.conversation.model import HttpChannel, HttpUnit, Message, Session
from mcpspy.json_values import excerpt
from mcpspy.rules.rule import Fault, StatefulCheck, rule
from mcpspy.secrets.patterns import SCHEMES, is_secret_name
from mcpspy.secrets.placeholders import placeholder
from mcpspy.wire.http_head import status
from mcpspy.wire.jsonrpc import Error, Request

_REFUSED = (401, 403)
_NAMED = 60  # characters of the name of a header


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
    about="http",
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
    on=(Request, Error, HttpUnit),
    explains=("refused", "error"),
)
class Placeholder(StatefulCheck):
    """Report a placeholder in the first request of a session, and in the first one that is refused for it."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._looked = False
        self._reported: int | None = None  # the line number

    def check(self, message: Message | HttpUnit) -> Iterator[Fault]:
        """Look at the head of a request, or at that of a request that is refused."""
        place = message.http
        if place is None or place.opened.role == "ws":
            return
        if place.request is None:
            wanted, self._looked = not self._looked and place.sender == "client", True
        else:
            wanted = status(place.opened.head) in _REFUSED and self.session.once("placeholder refused")
        request = place.request or place
        found = next(_unfilled(request), None) if wanted else None
        if found:
            at = request.carried[0] if request.carried else message
            if place.request:  # it is refused, and this tells why
                keep(self.session.explained, at.n, None)
            n = request.first or at.n
            if self._reported != n:
                self._reported = n
                yield Fault(found, blame="client", at=at)


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
        if is_secret_name(name):
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
