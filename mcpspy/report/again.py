"""The answers to requests that were sent again, each beside the recorded one, as text.

Servers may send any text, so it goes through `printable`, line by line and indented, as in `report.messages`.
"""

from collections.abc import Iterable, Iterator

from mcpspy.json_values import member
from mcpspy.replay.again import succeeded
from mcpspy.replay.script import Turn
from mcpspy.replay.sessions import FINE, Compared
from mcpspy.report.differences import value_lines
from mcpspy.report.messages import frame_lines
from mcpspy.report.words import coloured
from mcpspy.text import duration_text, printable
from mcpspy.wire.jsonrpc import Error

_MOST = 12  # differences that are listed


def again_lines(
    old: Turn, new: Turn | None, compared: Compared, width: int | None, *, colours: bool = False
) -> Iterator[str]:
    """Yield the lines for one request; `width` as in `report.messages.message_lines`."""
    same = compared.outcome in FINE and new is not None
    yield f"#{old.cause.n} {printable(str(old), 200)}"
    if not same:
        yield from _side("recorded", old, "", width, colours=colours)
    yield from _side("now", new, _told(old, new, compared, same=same), width, colours=colours)
    if old.response and new and new.response:
        yield from _differences(compared)


def _side(label: str, turn: Turn | None, told: str, width: int | None, *, colours: bool) -> Iterator[str]:
    colour = "string" if succeeded(turn) else "error"
    yield coloured(f"  {label:<9} {_outcome(turn)}{told}", colour if colours else None)
    if turn and turn.response:
        yield from frame_lines(turn.response.frame.raw, turn.response.part, width, colours=colours)


def _told(old: Turn, new: Turn | None, compared: Compared, *, same: bool) -> str:
    if same:
        return ", as recorded"
    if compared.reason:
        return f"; {printable(compared.reason, 400)}"
    if succeeded(new) and old.response and not succeeded(old):
        return "; in the capture it failed"
    return ""


def _outcome(turn: Turn | None) -> str:
    """Return what came of a request, and the time that it took."""
    if turn is None or turn.response is None or turn.exchange is None:
        return "no answer"
    body = turn.response.body
    took = turn.exchange.latency
    after = f" after {duration_text(took)}" if took is not None else ""
    if isinstance(body, Error):
        return f"error {printable(str(member(body.error, 'code')), 40)}{after}"
    return f"{'answered' if succeeded(turn) else 'error of the tool'}{after}"


def _differences(compared: Compared) -> Iterable[str]:
    if not compared.differences:
        return
    yield "  differences"
    for difference in compared.differences[:_MOST]:
        yield from value_lines(difference)
    if len(compared.differences) > _MOST:
        yield f"    … and {len(compared.differences) - _MOST:,} more"
