"""The state that both directions of `wrap` share while a gate is in force: the gate, and the requests of viewers.

A request of a viewer has an id of ours, a string that begins with `mcpspy-`. Its response is recognised by that id. It
is recorded and not forwarded, because the client did not send the request.

Imported on the `wrap` path if a gate may come: no heavy imports here.
"""

from _thread import allocate_lock

from mcpspy.capture.format import OWN_ID
from mcpspy.gate.gate import PASS, Hold, Refuse
from mcpspy.gate.messages import json_of, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable

    from mcpspy.gate.gate import Facts, Gate, Verdict
    from mcpspy.gate.messages import Key

_ESCAPE = b"\\u00"  # may encode a letter of the id


class GatedSession:
    """A gate in force; `end_server` kills the server, and `wrap` then ends with the given status."""

    def __init__(self, gate: "Gate", report: "Callable[[str], None]", end_server: "Callable[[int], None]") -> None:
        self.gate = gate
        self.report = report
        self.end_server = end_server
        self.deciding = allocate_lock()
        """Hold it to use the gate."""
        self._asked: set[Key] = set()  # the ids of requests of viewers that have no response yet
        self._reported: set[str] = set()

    def decide(self, line: bytes, facts: "Facts", t: int) -> "Verdict":
        """Return the verdict on a line that was read at `t`; never raises."""
        try:
            with self.deciding:
                verdict = self.gate.decide(line, facts, t)
        except Exception as error:
            self._report_once(f"the gate failed ({type(error).__name__}: {error}); traffic passes unchanged")
            return PASS
        if verdict is PASS:
            return PASS
        action = verdict.then if isinstance(verdict, Hold) else verdict
        if isinstance(action, Refuse):
            self._report_once(f"{action.by}: status works over HTTP only; frames on stdio pass unchanged")
            return PASS
        return verdict

    def asks(self, frame: bytes) -> bytes | None:
        """Return a viewer's request in one line; if its id is not one of ours, report that and return None."""
        messages = read(frame, "lines")
        key = messages[0].id if len(messages) == 1 and messages[0].kind == "request" else None
        if key is None or key[0] != "string" or not key[1].startswith(OWN_ID):
            what = "it must be one JSON-RPC request, its id a string"
            self._report_once(f"a viewer's request was not sent: {what} {OWN_ID}…")
            return None
        self._asked.add(key)
        return one_line(frame)

    def is_answer(self, line: bytes) -> bool:
        """Return whether a line is the response to a viewer's request; true only once per request."""
        if not self._asked or not (OWN_ID.encode() in line or _ESCAPE in line):
            return False
        messages = read(line, "lines")
        if len(messages) != 1 or not messages[0].answers or messages[0].id not in self._asked:
            return False
        self._asked.discard(messages[0].id)
        return True

    def begins_answer(self, start: bytes) -> bool:
        """Return whether a long line that begins with `start` is the response to a viewer's request.

        The id is found only if it precedes the result or error.
        """
        head = min(start.partition(b'"result"')[0], start.partition(b'"error"')[0], key=len)
        found = [key for key in list(self._asked) if b'"id":' + json_of(key) in head.replace(b'"id": ', b'"id":')]
        self._asked.difference_update(found)
        return bool(found)

    def _report_once(self, sentence: str) -> None:
        if sentence not in self._reported:
            self._reported.add(sentence)
            self.report(sentence)


def signal(lock: "LockType") -> None:
    """Wake the thread that waits for the lock."""
    try:
        lock.release()
    except RuntimeError:  # it was released already
        pass


def one_line(message: bytes) -> bytes:
    """Replace the line ends of a JSON text by spaces; its strings contain none."""
    return message.replace(b"\r", b" ").replace(b"\n", b" ")
