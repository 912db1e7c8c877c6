"""What a mock sends: lines for its client, each with the request that it belongs to."""

from dataclasses import dataclass
from typing import Any

from mcpspy.replay.issued_values import json_text
from mcpspy.wire.jsonrpc import Id


@dataclass(frozen=True, slots=True)
class OutgoingFrame:
    """A line that the mock sends."""

    raw: bytes
    """The bytes without a newline."""
    request: Id | None
    """The client's request whose stream it belongs to, if there are several streams."""
    answer: bool
    """Whether it answers that request."""


def result_line(number: Id, result: dict[str, Any]) -> bytes:
    """Return the line of a result that the mock itself makes."""
    return _line({"result": result}, number)


def error_line(number: Id | None, code: int, text: str) -> bytes:
    """Return the line of an error that the mock itself makes."""
    return _line({"error": {"code": code, "message": text}}, number)


def _line(fields: dict[str, Any], number: Id | None) -> bytes:
    return f'{{"jsonrpc":"2.0","id":{json_text(number)},{json_text(fields)[1:]}'.encode()
