"""Records are kept until an exchange is recognised as MCP; the bytes are forwarded at once (M-04)."""

from mcpspy.recording.http_exchange import MOST_PENDING, Pending
from mcpspy.recording.recording import Recording
from tests.recording.recorder import Recorder

CALL = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


class Begun:
    """A function that returns the recording of a capture, and counts its calls."""

    def __init__(self):
        self.count = 0
        self.recorder = Recorder()
        self.recording = Recording([].append, sink=self.recorder)

    def __call__(self):
        self.count += 1
        return self.recording


def test_nothing_reaches_the_capture_before_the_sign():
    begun = Begun()
    pending = Pending(begun, "the capture of h")
    pending.open(1, 0, "client", "request", "body", {"head": {}})
    pending.open(2, 1, "server", "response", "body", {"answers": 1})
    assert begun.count == 0
    assert pending.path == "the capture of h"
    begun.recording.number()  # another exchange has number 1
    pending.frame(1, 2, CALL, False, False)
    pending.close(1, 3, "eof")
    assert begun.recorder.calls == [
        ("open", 2, 0, "client", "request", "body", {"head": {}}),
        ("open", 3, 1, "server", "response", "body", {"answers": 2}),
        ("frame", 2, 2, CALL, False, False, None),
        ("close", 2, 3, "eof", None),
    ]
    assert (begun.count, pending.path, pending.discarded) == (1, "a.jsonl", False)


def test_a_sign_may_lie_across_two_pieces():
    for cut in range(1, len(CALL)):
        begun = Begun()
        pending = Pending(begun, "")
        pending.open(1, 0, "client", "request", "body")
        pending.frame(1, 1, CALL[:cut], True, False)
        pending.frame(1, 2, CALL[cut:], False, False)
        assert [call[3] for call in begun.recorder.calls[1:]] == [CALL[:cut], CALL[cut:]]


def test_what_is_kept_is_bounded():
    begun = Begun()
    pending = Pending(begun, "")
    pending.open(1, 0, "client", "request", "body")
    for _ in range(MOST_PENDING // 1000 + 1):
        pending.frame(1, 1, b"x" * 1000, True, False)
    assert pending.discarded
    pending.frame(1, 2, CALL, False, False)
    pending.accept()
    assert begun.count == 0


def test_what_was_discarded_stays_so_and_what_was_released_too():
    begun = Begun()
    pending = Pending(begun, "")
    pending.accept()
    pending.discard()
    pending.open(1, 0, "client", "request", "body")
    assert len(begun.recorder.calls) == 1
    assert not pending.discarded
    gone = Pending(begun, "")
    gone.discard()
    gone.accept()
    assert gone.discarded


def test_a_capture_that_could_not_be_begun_takes_nothing():
    pending = Pending(lambda: Recording([].append), "")
    pending.open(1, 0, "client", "request", "body")
    pending.accept()
    pending.frame(1, 1, CALL, False, False)
    assert pending.discarded


def test_what_became_of_a_held_frame_waits_for_the_sign_too():
    """M-04: a gate may hold frames before MCP is recognised; these keep the numbers that the gate gave them."""
    begun = Begun()
    recording = Recording([].append, sink=Pending(begun, ""))
    recording.record(lambda sink: sink.open(1, 0, "client", "request", "body"))
    recording.record(lambda sink: sink.frame(1, 1, b"{}", False, False, {"by": "gate g", "held": 7}))
    recording.release(2, 7, "edited", {"sent": b"[]", "by": "gate g"})
    assert begun.count == 0
    recording.record(lambda sink: sink.frame(1, 3, CALL, False, False))
    recording.release(4, 8, "expired", {})
    assert [call for call in begun.recorder.calls if call[0] == "release"] == [
        ("release", 2, 7, "edited", {"sent": "[]", "by": "gate g"}),
        ("release", 4, 8, "expired", {}),
    ]


def test_kept_releases_are_bounded_too():
    begun = Begun()
    pending = Pending(begun, "")
    for number in range(MOST_PENDING // 64 + 1):
        pending.release(1, number, "expired", {})
    assert pending.discarded


def test_gates_wait_for_the_sign_too():
    begun = Begun()
    recording = Recording([].append, sink=Pending(begun, ""))
    recording.record(lambda sink: sink.open(1, 0, "client", "request", "body"))
    recording.gates(1, [{"name": "slow"}], "file")
    recording.record(lambda sink: sink.frame(1, 3, CALL, False, False))
    recording.gates(4, [], "viewer")
    assert [call for call in begun.recorder.calls if call[0] == "gates"] == [
        ("gates", 1, [{"name": "slow"}], "file"),
        ("gates", 4, [], "viewer"),
    ]


def test_a_channel_that_came_whole_is_kept_as_its_records_are():
    one, other = Begun(), Begun()
    whole, apart = Pending(one, ""), Pending(other, "")
    for pending in (whole, apart):
        pending.open(1, 0, "client", "request", "body")
    whole.whole(2, 1, "server", "response", {"answers": 1}, CALL)
    whole.whole(3, 2, "client", "request", {}, b"")
    apart.open(2, 1, "server", "response", "body", {"answers": 1})
    apart.frame(2, 1, CALL, False, False)
    apart.close(2, 1, "eof")
    apart.open(3, 2, "client", "request", "body", {})
    apart.close(3, 2, "eof")
    assert one.recorder.calls == other.recorder.calls
    assert len(one.recorder.calls) == 6
