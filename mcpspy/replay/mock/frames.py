"""What a mock says: lines for its client, each with the request that it belongs to."""

from dataclasses import dataclass
from typing import Any

from mcpspy.replay.script.edit import json_text
from mcpspy.wire.jsonrpc import Id


@dataclass(frozen=True, slots=True)
class OutgoingFrame:
    """A line that the mock says."""

    raw: bytes
    """Without a newline."""
    request: Id | None
    """The client's request whose stream it belongs on, where streams are apart."""
    answer: bool
    """Whether it answers that request."""


def result_line(number: Id, result: dict[str, Any]) -> bytes:
    """The line of a result of the mock's own."""
    return _line({"result": result}, number)


def error_line(number: Id | None, code: int, text: str) -> bytes:
    """The line of an error of the mock's own."""
    return _line({"error": {"code": code, "message": text}}, number)


def _line(fields: dict[str, Any], number: Id | None) -> bytes:
    return f'{{"jsonrpc":"2.0","id":{json_text(number)},{json_text(fields)[1:]}'.encode()
