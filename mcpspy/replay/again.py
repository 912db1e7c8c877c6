"""Requests of a capture that are sent again: which ones, what the server needs before them, and their edited text.

A server may refuse a call, or answer it in another way, without what came before it. So these messages of the same
session are sent too: the handshake, the last listing of what the request is about, subscriptions, the level of log
messages, and each request whose answer issued a value that the request returns (a cursor, a task, a `requestState`).
Other calls are not sent: they may write.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import orjson

from mcpspy.capture.format import to_json
from mcpspy.capture.reader import Capture
from mcpspy.capture.user_key import doubt, with_proof
from mcpspy.errors import UsageError
from mcpspy.foreign_file import open_foreign
from mcpspy.json_values import member
from mcpspy.replay.issued_values import issued, returned
from mcpspy.replay.script import Script, Turn, accept
from mcpspy.text import printable
from mcpspy.wire.jsonrpc import Id, Request, Result, parse

QUESTION = "Send it? [y/N]"
"""Asked before anything is sent. No line with captured text begins like this."""
_OPENS = frozenset(("initialize", "notifications/initialized", "server/discover"))
_SUBSCRIBES = frozenset(("resources/subscribe", "subscriptions/listen", "logging/setLevel"))
_LISTINGS = {
    "tools": ("tools/list",),
    "prompts": ("prompts/list",),
    "resources": ("resources/list", "resources/templates/list"),
    "completion": ("prompts/list", "resources/templates/list"),
}
"""The listings that belong to a request, by the part of its method before the slash."""


def requests_of(script: Script, rows: Iterable[int]) -> list[Turn]:
    """Return the requests of the client in these rows, each given by itself or by its response, in their order.

    Raises UsageError for a row that has none.
    """
    found: dict[Turn, None] = {}
    for row in rows:
        here = [turn for turn in script.turns if turn.exchange and row in _rows(turn)]
        if not here:
            raise UsageError(_refusal(script, row))
        found |= dict.fromkeys(here)
    return sorted(found, key=script.turns.index)


def _rows(turn: Turn) -> Iterator[int]:
    yield turn.cause.n
    if turn.response:
        yield turn.response.n


def _refusal(script: Script, row: int) -> str:
    requests = [turn for turn in script.turns if turn.exchange]
    what = f"#{row} is neither a request of the client nor the answer to one"
    if not requests:
        return f"{what}, and the capture has none"
    near = min(requests, key=lambda turn: abs(turn.cause.n - row))
    return f"{what}; the nearest is #{near.cause.n}, {printable(str(near), 100)}"


def narrowed(script: Script, wanted: Sequence[Turn]) -> Script:
    """Return a script of these requests, with what the server needs before them.

    Of the server's requests those stay that it sent during these, because only their answers belong to them: who has
    accepted one call has not accepted another. Roots stay in any case.
    """
    needed = dict.fromkeys(wanted)
    waiting = [*wanted]
    while waiting:
        more = [turn for turn in _before(script, waiting.pop()) if turn not in needed]
        needed |= dict.fromkeys(more)
        waiting += more
    sessions = {id(turn.cause.session) for turn in wanted}
    part = Script(script.header, complete=script.complete, lost=script.lost)
    part.turns = [turn for turn in script.turns if turn in needed]
    part.opening = [line for line in script.opening if id(line.message.session) in sessions]
    kept = {id(message) for turn in part.turns for message in _messages(turn)}
    kept |= {id(line.message) for line in part.opening}
    kept |= {
        id(message) for message in script.asked if id(message.session) in sessions and message.method == "roots/list"
    }
    part.messages = [message for message in script.messages if id(message) in kept]
    return part


def _messages(turn: Turn) -> Iterator[object]:
    yield turn.cause
    yield from (line.message for line in turn.said)


def _before(script: Script, wanted: Turn) -> Iterator[Turn]:
    """Yield what a server needs before a request."""
    own = (turn for turn in script.turns if turn.cause.session is wanted.cause.session)
    earlier = [turn for turn in own if turn.cause.n < wanted.cause.n and not turn.changed]
    yield from (turn for turn in earlier if turn.method in _OPENS | _SUBSCRIBES)
    for method in _LISTINGS.get((wanted.method or "").partition("/")[0], ()):
        if method != wanted.method:
            yield from _last_listing([turn for turn in earlier if turn.method == method])
    values = returned(wanted.method or "", wanted.params, wanted.cause.body.value)
    yield from (turn for turn in earlier if values & _issues(turn))


def _last_listing(pages: list[Turn]) -> list[Turn]:
    """Return the pages of the last listing: from the last one that was asked for without a cursor."""
    starts = [place for place, turn in enumerate(pages) if member(turn.params, "cursor") is None]
    return pages[starts[-1] :] if starts else pages


def _issues(turn: Turn) -> set[object]:
    said = (line.message.body.value for line in turn.said)
    return {value for message in said for value in issued(turn.method or "", turn.params, message)}


def edit(turn: Turn, text: str) -> None:
    """Replace the text of a request. Raises UsageError as `edited_request` does."""
    turn.cause.body, turn.cause.part = edited_request(text, turn.cause.id), 0
    turn.cause.frame = replace(turn.cause.frame, raw=text.encode())


def edited_request(text: str, number: Id | None) -> Request:
    """Return the request with this id that a text contains. Raises UsageError, with the reason, if there is none."""
    found = parse(text.encode("utf-8", "replace"))
    body = found[0] if len(found) == 1 else None
    if not isinstance(body, Request):
        raise UsageError("the text is not a request: a JSON object with jsonrpc, id and method")
    if body.id != number:
        raise UsageError(f"the id must stay {number}: the answer is recognised by it")
    return body


def repeats_names(text: str) -> bool:
    """Return whether an object in a JSON text has a name twice: then servers may disagree about what the text says."""
    found = []

    def members(pairs: list[tuple[str, object]]) -> None:
        if len({name for name, _ in pairs}) < len(pairs):
            found.append(pairs)

    try:
        json.loads(text, object_pairs_hook=members)
    except (ValueError, RecursionError):
        return True
    return bool(found)


def not_comparable(turn: Turn) -> str | None:
    """Return why the answer to a request cannot be compared with the recorded one; None if it can be."""
    if turn.changed:
        return "not compared, because the recorded answer is to what a gate made of the request"
    if turn.response is None:
        return "not compared, because the capture has no answer"
    if turn.exchange and turn.exchange.cancelled:
        return "not compared, because the client cancelled the recorded request"
    return None


def succeeded(turn: Turn | None) -> bool:
    """Return whether a request got a result that is no error of a tool."""
    body = turn.response.body if turn and turn.response else None
    return isinstance(body, Result) and member(body.result, "isError") is not True


def name_origin(path: str, capture: str, rows: Sequence[int], target: str) -> None:
    """Write the new capture at `path` to `target`, with its origin: the capture and the rows that were sent again.

    Raises CaptureError.
    """
    with tempfile.TemporaryDirectory(prefix="mcpspy-") as folder:
        named = os.path.join(folder, "named.jsonl")
        with open_foreign(path) as old, open(named, "wb") as new:
            header = old.readline().rstrip(b"\n")
            sign = with_proof if doubt(header) is None else bytes  # somebody else may have replaced the file
            fields = orjson.loads(header)
            fields.pop("proof", None)
            again = {"id": Capture(capture).header.id, "file": os.path.basename(capture), "rows": [*rows]}
            new.write(sign(to_json(fields | {"again": again})) + b"\n")
            shutil.copyfileobj(old, new)
        accept(named, target)
