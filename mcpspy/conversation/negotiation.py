"""What was negotiated for an exchange: which extension a message uses, and which side did not declare it.

The theory. In 2026-07-28 a client declares extensions in each request, and a server in its result of `server/discover`.
In earlier revisions both do so in `initialize` and its result. If the declarations of a side are not known, nothing is
concluded from that.
"""

from collections.abc import Iterable

from mcpspy.conversation import bounds
from mcpspy.conversation.context import CLIENT_CAPABILITIES, capabilities
from mcpspy.conversation.model import ENDLESS, Message, Session
from mcpspy.conversation.offers import HANDSHAKES
from mcpspy.json_values import member
from mcpspy.spec.extensions import Extension, declared, extension_methods, known_extensions
from mcpspy.spec.revisions import STATELESS
from mcpspy.wire.jsonrpc import Notification, Request, Result


class Declarations:
    """The extensions that were declared so far, and by which side. `add` the declarations of each message."""

    def __init__(self) -> None:
        self.sides: dict[str, dict[str, int]] = {}
        """By extension: the first line on which each side declared it."""

    def add(self, n: int, side: str, names: Iterable[str]) -> None:
        """Add the names that a message of a side declares."""
        for name in names:
            if name in self.sides or len(self.sides) < bounds.EXTENSIONS:
                self.sides.setdefault(name, {}).setdefault(side, n)

    def told(self) -> list[str]:
        """Return each extension with the sides that declared it: `io.modelcontextprotocol/tasks (client, server)`."""
        return [f"{name} ({', '.join(sorted(sides))})" for name, sides in sorted(self.sides.items())]


def declares(message: Message) -> tuple[str, ...]:
    """Return the names of the extensions and experiments that a message declares for its sender, sorted."""
    body, found = message.body, None
    if isinstance(body, Request):
        if body.method == "initialize":
            found = member(body.params, "capabilities")
        elif message.revision in STATELESS:
            found = member(body.params, "_meta", CLIENT_CAPABILITIES)
    elif isinstance(body, Result) and message.exchange and message.exchange.method in HANDSHAKES:
        found = member(body.result, "capabilities")
    return tuple(sorted(declared(found))) if found else ()


def used_extension(message: Message) -> Extension | None:
    """Return the known extension that a message uses: by its method, its `resultType`, or what it subscribes to.

    None if the extension does not exist in the revision, whether or not a peer declared it.
    """
    body = message.body
    if message.revision is None:
        return None
    known = known_extensions(message.revision)
    if isinstance(body, Request | Notification):
        if body.method == ENDLESS:
            wanted = member(body.params, "notifications")
            asks = wanted if isinstance(wanted, dict) else {}
            return next((it for it in known.values() if any(asks.get(name) for name in it.filters)), None)
        return extension_methods(message.revision).get(body.method, (None,))[0]
    if isinstance(body, Result) and message.exchange:
        result_type, method = member(body.result, "resultType"), message.exchange.method
        if isinstance(result_type, str):
            return next((it for it in known.values() if method in it.result_types.get(result_type, ())), None)
    return None


def undeclared_by(extension: Extension, message: Message, session: Session) -> list[str]:
    """Return the sides that have to declare the extension of a message and are known not to have done so."""
    return [side for side in extension.needs if _lacks(side, extension.id, message, session)]


def _lacks(side: str, name: str, message: Message, session: Session) -> bool:
    known = capabilities(side, message, session)
    in_session = known is session.client or known is session.server  # not in the request itself
    return known is not None and not (in_session and session.lossy) and name not in declared(known)
