"""The resource of telemetry: the attributes of a capture, and its start time."""

from collections.abc import Callable
from datetime import datetime

from mcpspy import __version__
from mcpspy.capture.records import Header
from mcpspy.telemetry.span import Value, bounded

_LONGEST_VALUE = 256  # characters of an attribute


def resource_attributes(header: Header, client: str, redact: Callable[[str], str]) -> dict[str, Value]:
    """Return the attributes of the resource that the telemetry of a capture belongs to.

    `client` is the name and version of the client; empty if it is not known yet. `redact` replaces secrets in a text:
    a capture may be edited by hand.
    """
    found: dict[str, Value] = {
        "service.version": __version__,
        "service.instance.id": bounded(header.id, redact, _LONGEST_VALUE),
        "mcpspy.server": bounded(header.name, redact, _LONGEST_VALUE),
        "mcpspy.transport": header.transport,
    }
    return found | {"mcpspy.client": client} if client else found


def start_of(header: Header) -> int:
    """Return the start of a capture, in nanoseconds since the epoch."""
    return round(datetime.fromisoformat(header.started).timestamp() * 1e6) * 1000
