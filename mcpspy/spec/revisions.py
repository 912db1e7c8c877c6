"""The revisions of the Model Context Protocol, and what tells them apart at first sight.

They are a set of names with a date in them, not points on a line: which one an exchange speaks is decided by the
exchange, and nothing compares them as strings.
"""

from enum import Enum
from typing import Any

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
"""The `_meta` key by which a request of the per-request era states its revision (2026-07-28, basic#_meta)."""

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
"""The `_meta` key by which a notification names the listen request that it belongs to (2026-07-28)."""


class Era(Enum):
    """How a revision is agreed on."""

    HANDSHAKE = "handshake"
    """By `initialize`, for a session."""
    PER_REQUEST = "per-request"
    """By each request's `_meta`."""


class Revision(Enum):
    """One published revision."""

    R2024_11_05 = "2024-11-05"
    R2025_03_26 = "2025-03-26"
    R2025_06_18 = "2025-06-18"
    R2025_11_25 = "2025-11-25"
    R2026_07_28 = "2026-07-28"

    __hash__ = object.__hash__  # each is one object; the enumeration's own hash takes a microsecond

    @property
    def era(self) -> Era:
        """How this revision is agreed on."""
        return Era.PER_REQUEST if self is Revision.R2026_07_28 else Era.HANDSHAKE

    @classmethod
    def of(cls, name: Any) -> "Revision | None":
        """The revision called `name`, whatever type a peer gave it."""
        return _BY_NAME.get(name) if isinstance(name, str) else None


_BY_NAME = {revision.value: revision for revision in Revision}

NEWEST_HANDSHAKE = Revision.R2025_11_25
"""What an `initialize` that asks for an unknown revision is judged by."""
