"""The actions of a gate on the frames that it names.

    drop          true                   forward nothing
    repeat        2                      forward it this number of times in all
    answer        JSON text              an object with `result` or `error`: sent back; the peer gets no request
    answer-from   {"file", "miss"}       the same with a recorded answer; an `answerer` finds it
    send          a text, or several     forward these instead; in an event stream, as the data of the event
    edit          a JSON Patch           RFC 6902, on the message of the frame
    cut           100                    forward only the first 100 bytes of the message
    garble        not-json, invalid-utf8 or bom: remove the last byte, insert a byte that is not UTF-8, put a byte order
                                         mark in front
    close         true                   end the stream
    status        503                    answer the HTTP request with this status
    exit          1                      kill the server
    hold          nanoseconds            wait for a decision of a person, at most this long
    throttle      bytes per second       delay frames as a line of this speed would
    delay         nanoseconds            wait this long; alone, or with one of the others

The transport of a relay limits the actions: `status` needs HTTP, `exit` needs a server that the relay has started.
"""

from mcpspy.gate.check import TRUE, VALUES, bounded, check, is_answer, is_patch, is_sent, one_of
from mcpspy.gate.gate import PASS, CloseStream, Drop, Exit, Hold, Refuse, Reply, Send
from mcpspy.gate.messages import changed, edited, json_of, with_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mcpspy.gate.check import Allowed
    from mcpspy.gate.gate import AtOnce, Facts, Verdict

_SECOND = 1_000_000_000


class GateAction:
    """The action of one gate; `answerer` returns the answers of `answer-from`."""

    def __init__(
        self,
        by: str,
        action: "dict[str, Any]",
        answerer: "Callable[[bytes], bytes | None] | None",
        *,
        reorder: bool,
    ) -> None:
        """Raises ValueError with the name of the gate, `by`, if the action is invalid."""
        check(by, "action.", action, _ACTIONS)
        names = [name for name in action if name != "delay"] or list(action)
        if len(names) != 1:
            raise ValueError(f"{by} needs exactly one action; only delay may be added to it")
        self._by = by
        self._name = names[0]
        self._value = action[self._name]
        self._delay = action.get("delay", 0)
        self._reorder = reorder
        self._answerer = answerer
        self._free = 0  # when a throttled line has transmitted all earlier frames

    def verdict(self, frame: bytes, facts: "Facts", t: int) -> "Verdict":
        """Return the verdict on a frame that was read at `t`. Raises ValueError if the action cannot be applied."""
        if self._name == "hold":
            return self._hold(t + self._value + self._delay, "expired", PASS)
        if self._name == "throttle":
            self._free = max(t + self._delay, self._free) + len(frame) * _SECOND // self._value
            return self._hold(self._free, "delayed", PASS)
        verdict = self._at_once(frame, facts)
        return self._hold(t + self._delay, "delayed", verdict) if self._delay else verdict

    def _hold(self, until: int, how: str, then: "AtOnce") -> Hold:
        return Hold(until, self._by, how, then, reorder=self._reorder)

    def _at_once(self, frame: bytes, facts: "Facts") -> "AtOnce":
        name, value, by = self._name, self._value, self._by
        if name == "drop":
            return Drop(by)
        if name == "repeat":
            return Send((frame,) * value, by)
        if name == "send":
            texts = [text.encode() for text in ([value] if isinstance(value, str) else value)]
            if facts.framing == "sse":
                texts = [with_message(frame, "sse", text) for text in texts]
            return Send(tuple(texts), by)
        if name in ("edit", "cut", "garble"):
            other = self._changed(frame, facts)
            return Send((other,), by) if other != frame else PASS
        if name in ("answer", "answer-from"):
            return self._answered(frame, facts)
        if name == "status":
            return Refuse(value, by)
        if name == "exit":
            return Exit(value, by)
        return CloseStream(by) if name == "close" else PASS

    def _changed(self, frame: bytes, facts: "Facts") -> bytes:
        """Return the frame with its message edited or damaged."""
        if self._name == "edit":
            return edited(frame, facts.framing, self._value)
        change = _GARBLED[self._value] if self._name == "garble" else lambda message: message[: self._value]
        return changed(frame, facts.framing, change)

    def _answered(self, frame: bytes, facts: "Facts") -> "AtOnce":
        ids = [message.id if message.kind == "request" else None for message in facts.messages]
        if len(ids) != 1 or ids[0] is None:
            raise ValueError("only a single request can be answered")
        if self._name == "answer":
            members = self._value.translate(_ONE_LINE).strip()[1:].encode()
            return Reply(b'{"jsonrpc":"2.0","id":' + json_of(ids[0]) + b"," + members, self._by)
        if self._answerer is None:
            raise ValueError("nobody has been given who finds the answers")
        answer = self._answerer(frame)
        return PASS if answer is None else Reply(answer, self._by)


_ONE_LINE = {ord("\n"): " ", ord("\r"): " "}  # JSON strings contain neither
_GARBLED: "dict[str, Callable[[bytes], bytes]]" = {
    "not-json": lambda message: message.rstrip()[:-1],
    "invalid-utf8": lambda message: message.rstrip()[:-1] + b"\xff" + message.rstrip()[-1:],
    "bom": lambda message: b"\xef\xbb\xbf" + message,
}


def _is_recording(value: "Any") -> bool:
    return type(value) is dict and value.get("miss") in ("forward", "nearest") and type(value.get("file")) is str


_ACTIONS: "dict[str, Allowed]" = {
    "drop": TRUE,
    "repeat": bounded("repeat"),
    "answer": (is_answer, "the JSON text of an object with result or error, without id and jsonrpc"),
    "answer-from": (_is_recording, "an object with file and miss (forward or nearest)"),
    "send": (is_sent, f"a text, or several, at most {VALUES}"),
    "edit": (is_patch, f"the operations of a JSON Patch (RFC 6902), at most {VALUES}"),
    "cut": bounded("cut"),
    "garble": one_of("not-json", "invalid-utf8", "bom"),
    "close": TRUE,
    "status": bounded("status"),
    "exit": bounded("exit"),
    "hold": bounded("hold"),
    "throttle": bounded("throttle"),
    "delay": bounded("delay"),
}
