"""One replay from beginning to end: what is skipped, what is sent, the outcome, and what seems to be volatile."""

import os
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mcpspy.json_values import member
from mcpspy.recording.append import write_with_sessions
from mcpspy.replay.client.drive import Driven, drive
from mcpspy.replay.compare.sessions import Compared, Ignored, Pairs, Rules, compare
from mcpspy.replay.script import Script, Turn, accept, script_of
from mcpspy.wire.jsonrpc import Id, Request

if TYPE_CHECKING:
    from mcpspy.replay.client.http import WebLink
    from mcpspy.replay.client.stdio import Link

_NOT_READ_ONLY = "the tool has no readOnlyHint"


@dataclass(frozen=True, slots=True)
class Replayed:
    """The outcome of a replay."""

    recorded: Script
    observed: Script
    path: str
    """The capture of the new session."""
    pairs: Pairs
    reasons: Mapping[Turn, str]
    """Why responses are missing, or requests were not sent."""
    skipped: Collection[Turn]

    def compared(self, rules: Rules) -> list[Compared]:
        """Return the comparison under some rules."""
        return compare(
            self.recorded, self.observed, self.pairs, rules, reasons=self.reasons, skipped=frozenset(self.skipped)
        )


def replay(
    script: Script,
    connect: Callable[[str], "Link | WebLink"],
    path: str,
    *,
    read_only: bool,
    advance: Callable[[int], None] = lambda _: None,
) -> Replayed:
    """Replay a capture; with `read_only`, without calls that may write.

    `connect` returns a link that records at a path. The path is `path`, and a temporary one for each further process of
    the capture, whose session is then added to the capture at `path`.

    `advance` is called with the number of messages that are done, from another thread.

    Call it from the main thread, while that is the only thread. Raises what `connect` raises.
    """
    skip = writing(script) if read_only else set()
    driven = _drive(script, connect, path, skip, advance)
    observed = script_of(driven.path)
    reasons = driven.reasons | dict.fromkeys(skip, _NOT_READ_ONLY)
    return Replayed(script, observed, driven.path, _pairs(script, observed, driven), reasons, skip)


def _drive(
    script: Script,
    connect: Callable[[str], "Link | WebLink"],
    path: str,
    skip: Collection[Turn],
    advance: Callable[[int], None],
) -> Driven:
    """Play each process of a script over a link of its own; all sessions end up in one capture."""
    first, *others = script.processes
    driven = drive(first, lambda: connect(path), skip=skip, advance=advance)
    if not others:
        return driven
    with tempfile.TemporaryDirectory(prefix="mcpspy-") as folder:
        added: list[str] = []
        for part in others:
            place = os.path.join(folder, f"{len(added)}.jsonl")
            played = drive(part, partial(connect, place), skip=skip, advance=advance)
            added.append(played.path)
            driven.sent += played.sent
            driven.reasons |= played.reasons
        whole = os.path.join(folder, "whole.jsonl")
        write_with_sessions(driven.path, added, whole)
        accept(whole, driven.path)
    return driven


def _pairs(script: Script, observed: Script, driven: Driven) -> list[tuple[Turn | None, Turn | None]]:
    """Pair each turn with its counterpart in the new capture: by method and id, and in order if those are equal.

    If a request had to be sent twice (over HTTP, to find out which transport a server has), the second one counts.
    """
    waiting: dict[Any, list[Turn]] = {}
    for turn in reversed(observed.turns):
        waiting.setdefault(_sent_as(turn), []).append(turn)
    partner: dict[Turn, Turn] = {}
    for turn in reversed(driven.sent):
        if waiting.get(_sent_as(turn)):
            partner[turn] = waiting[_sent_as(turn)].pop(0)
    return [(turn, partner.get(turn)) for turn in script.turns]


def _sent_as(turn: Turn) -> tuple[str | None, Id | None]:
    body = turn.cause.body
    return turn.method, body.id if isinstance(body, Request) else None


def writing(script: Script) -> set[Turn]:
    """Return the calls of tools without `readOnlyHint`, and the requests for the tasks that they began."""
    hints: dict[str, bool] = {}
    for turn in script.turns:
        result = turn.response.body.value.get("result") if turn.response and turn.method == "tools/list" else None
        for tool in member(result, "tools") or []:
            hints[str(member(tool, "name"))] = member(tool, "annotations", "readOnlyHint") is True
    skip: set[Turn] = set()
    tasks: set[str] = set()
    for turn in script.turns:
        called = turn.method == "tools/call" and not hints.get(turn.name or "", False)
        if called or (str(turn.method).startswith("tasks/") and member(turn.params, "taskId") in tasks):
            skip.add(turn)
            result = turn.response.body.value.get("result") if turn.response else None
            tasks.add(str(member(result, "task", "taskId")))
    return skip


def learned(runs: list[Replayed], rules: Rules) -> list[Ignored]:
    """Return what differs between runs of one server: it is new each time, so it is not a change of the server."""
    first = runs[0]
    found: dict[Ignored, None] = {}
    for other in runs[1:]:
        partner = dict(other.pairs)
        pairs = [(new, partner.get(old)) for old, new in first.pairs if new]
        for it in compare(first.observed, other.observed, pairs, rules):
            for difference in it.differences:
                path = tuple(map(str, difference.path))
                found[Ignored(it.method or "*", it.name or "*", path)] = None
    return list(found)
