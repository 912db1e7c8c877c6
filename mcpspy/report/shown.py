"""What a report for people shows of the frame of a finding: the frame on one line, and the faulty value.

These two short texts are made while the capture is checked, when the message is available. So the report does not read
the file again, and it needs only the memory of the findings.
"""

import json
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from mcpspy.conversation.model import HttpUnit, Message, ServerExit
from mcpspy.json_values import excerpt, resolve
from mcpspy.report.lines import line
from mcpspy.rules import LocatedFinding
from mcpspy.text import printable
from mcpspy.timeline import Row, row_of
from mcpspy.wire.jsonrpc import Error, Result

_LINE = 100  # columns
_VALUE = 160  # characters


class ShownFrame(NamedTuple):
    """The frame of a finding as text."""

    line: str
    """The frame, as in a timeline."""
    value: str
    """The value to which the finding points, as JSON, or the beginning of the frame. Clipped."""


def shown(found: LocatedFinding) -> ShownFrame:
    """Return what a report shows of the event that a finding is about."""
    finding, event = found
    if event is None:
        return ShownFrame(f"#{finding.frame:<5} the session", "")
    if isinstance(event, ServerExit):
        row = row_of(event.end)
    else:
        row = row_of(_answering(event) if isinstance(event, Message) else event)
    if isinstance(event, Message | HttpUnit | ServerExit):
        row.revision = finding.revision
        return ShownFrame(line(row, _LINE), _value(row, finding.pointer))
    return ShownFrame(line(row, _LINE), _beginning(row) if row.raw else "")


def _answering(message: Message) -> Message:
    """Return a message that is the response of its exchange, even if that was untied since (`Exchange.untie`)."""
    exchange = message.exchange
    untied = exchange and exchange.response is None and isinstance(message.body, Result | Error)
    return replace(message, exchange=replace(exchange, response=message)) if exchange and untied else message


def _value(row: Row, pointer: str) -> str:
    return printable(_json(resolve(row.value, pointer)), _VALUE) if pointer else _beginning(row)


def _beginning(row: Row) -> str:
    return printable(row.raw[:400].decode(errors="replace"), _VALUE)


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate, a number of many digits, a great depth
        pass
    try:
        return json.dumps(value, separators=(",", ":"))
    except RecursionError:
        return excerpt(value)
