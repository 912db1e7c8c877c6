"""What a report for people shows of the frame of a finding: the frame on one line, and the faulty value.

These two short texts are made while the capture is checked, when the message is available. So the report does not read
the file again, and it needs only the memory of the findings.
"""

import json
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from mcpspy.conversation.model import Event, Exchange, HttpUnit, Judged, Message, ServerExit
from mcpspy.json_values import excerpt, resolve
from mcpspy.report.lines import line
from mcpspy.rules import Finding
from mcpspy.text import printable
from mcpspy.timeline import Row, row_of
from mcpspy.wire.jsonrpc import Error, Request, Result
from mcpspy.wire.subject import subject

_LINE = 100  # columns
_VALUE = 160  # characters


class ShownFrame(NamedTuple):
    """The frame of a finding as text."""

    line: str
    """The frame, as in a timeline."""
    value: str
    """The value to which the finding points, as JSON, or the beginning of the frame. Clipped."""


def shown(finding: Finding, message: Judged) -> ShownFrame:
    """Return what a report shows of the message that a finding is about."""
    if isinstance(message, ServerExit):
        row = row_of(message.end)
    else:
        row = row_of(_with_exchange(message) if isinstance(message, Message) else message)
    row.revision = finding.revision
    return ShownFrame(line(row, _LINE), _value(row, finding.pointer))


def shown_event(finding: Finding, event: Event) -> ShownFrame:
    """Return what a report shows of any event that a finding is about: a line of stderr, the end."""
    if isinstance(event, Message | HttpUnit):
        return shown(finding, event)
    row = row_of(event)
    return ShownFrame(line(row, _LINE), _beginning(row) if row.raw else "")


def of_frame(n: int, what: str) -> ShownFrame:
    """Return what a report shows if the event is not available."""
    return ShownFrame(f"#{n:<5} {what}", "")


def _with_exchange(message: Message) -> Message:
    """Return a message with its exchange, even if that was untied since (`Exchange.untie`)."""
    body, exchange = message.body, message.exchange
    if isinstance(body, Request) and exchange is None:
        exchange = Exchange(0, message, body.method, subject(body.method, body.params), message.revision)
    elif isinstance(body, Result | Error) and exchange and exchange.response is None:
        exchange = replace(exchange, response=message)
    return replace(message, exchange=exchange)


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
