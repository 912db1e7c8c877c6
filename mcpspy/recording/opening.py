"""The consequences of an HTTP head for its channel: how the body is framed and coded, and whether it is secret.

The rules are those of `http_exchange`. A relay keeps the opening of a head that is repeated, so that the recorded
fields are encoded only once.
"""

from typing import TYPE_CHECKING, Any

import orjson

from mcpspy.secrets.redactor import is_form, is_oauth_endpoint
from mcpspy.wire.http_head import Head, values

if TYPE_CHECKING:
    from mcpspy.secrets.redactor import Redactor


class Opening:
    """How the message with a certain head is recorded; it can be used again for equal heads.

    `target` is the target of a request, None for a response; `changes` are `sent` and `by`.
    """

    __slots__ = ("_recorded", "coding", "fields", "framing", "secret")

    def __init__(self, head: Head, changes: dict[str, Any], target: str | None = None) -> None:
        kind = values(head, "content-type")
        self.secret = is_form(kind) or (target is not None and is_oauth_endpoint(target))
        """Whether every part of the body may contain secrets."""
        self.framing = "sse" if target is None and "text/event-stream" in kind.lower() else "body"
        self.coding = values(head, "content-encoding")
        """The content coding of the body."""
        self.fields: dict[str, Any] = {"head": head} | changes
        self._recorded: dict[str, Any] | None = None

    @property
    def plain(self) -> bool:
        """Whether the body is recorded as received, as one frame."""
        return not (self.secret or self.coding or self.framing != "body")

    def recorded(self, redactor: "Redactor") -> dict[str, Any]:
        """Return the fields with their secrets replaced, encoded already."""
        if self._recorded is None:
            clean = {key: value if key == "by" else redactor.head(value) for key, value in self.fields.items()}
            try:
                self._recorded = {key: orjson.Fragment(orjson.dumps(value)) for key, value in clean.items()}
            except TypeError:  # a lone surrogate, which the writer replaces
                self._recorded = clean
        return self._recorded
