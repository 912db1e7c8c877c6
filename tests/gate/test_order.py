"""The order of frames behind held ones."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.gate.gate import PASS, CloseStream, Drop, Hold, Pass, Reply, Send
from mcpspy.gate.messages import read
from mcpspy.gate.order import BYTES, FRAMES, FrameOrder, GatedFrame

URGENT = Pass(overtakes=True)


def held(until, then=PASS, how="expired"):
    return Hold(until, "gate g", how, then)


def call(number):
    return b'{"id":%d,"method":"tools/call"}' % number


@pytest.fixture
def order():
    return FrameOrder(count(1), "lines")


def feed(order, raw, verdict=PASS):
    return [frame.raw for frame in order.feed(GatedFrame(raw, 0, verdict))]


def gone(frames):
    return [(frame.raw, frame.held, frame.how, type(frame.verdict)) for frame in frames]


def test_while_nothing_is_held_all_goes_at_once(order):
    for verdict in (PASS, Drop("x"), Send((b"b",), "x"), URGENT):
        assert feed(order, b"a", verdict) == [b"a"]
    assert len(order) == 0
    assert order.until is None


def test_what_stands_behind_a_held_frame_waits_with_it(order):
    assert feed(order, b"a", held(50)) == []
    assert feed(order, b"b") == []
    assert feed(order, b"c", Drop("gate other")) == []
    assert order.until == 50
    assert order.expire(49) == []
    assert gone(order.expire(50)) == [
        (b"a", 1, "expired", Pass),
        (b"b", 2, "delayed", Pass),
        (b"c", 3, "delayed", Drop),
    ]
    assert feed(order, b"d") == [b"d"]


def test_a_second_held_frame_holds_from_its_own_time(order):
    feed(order, b"a", held(50))
    feed(order, b"b", held(80, Drop("gate g"), "delayed"))
    feed(order, b"c")
    assert gone(order.expire(60)) == [(b"a", 1, "expired", Pass)]
    assert order.until == 80
    assert [frame.raw for frame in order.expire(80)] == [b"b", b"c"]


def test_pings_overtake(order):
    feed(order, b"a", held(50))
    assert feed(order, b"ping", URGENT) == [b"ping"]
    assert len(order) == 1


def test_a_ping_that_a_gate_holds_waits(order):
    assert feed(order, b"ping", held(50, URGENT)) == []


def test_a_released_frame_goes_in_its_turn(order):
    feed(order, b"a", held(50))
    feed(order, b"b", held(50))
    assert order.release(2, "edited", b"B") == []
    found = order.release(1, "continued")
    assert gone(found) == [(b"a", 1, "continued", Pass), (b"b", 2, "edited", Send)]
    assert order.release(1, "continued") == [], "it has gone"


def test_a_cancellation_drops_itself_and_the_request_that_is_held(order):
    feed(order, call(1), held(50))
    feed(order, call(2))
    cancellation = GatedFrame(b"cancel", 0, Pass(overtakes=True, cancels=("number", "1")))
    found = order.feed(cancellation)
    assert gone(found) == [
        (call(1), 1, "cancelled", Drop),
        (call(2), 2, "delayed", Pass),
        (b"cancel", None, "delayed", Drop),
    ]
    assert cancellation.verdict.by == "gate g"


def test_a_cancellation_drops_also_a_request_behind_a_held_one(order):
    feed(order, call(1), held(50))
    feed(order, call(2))
    found = order.feed(GatedFrame(b"cancel", 0, Pass(overtakes=True, cancels=("number", "2"))))
    assert gone(found) == [(b"cancel", None, "delayed", Drop)]
    assert gone(order.expire(50))[1] == (call(2), 2, "cancelled", Drop)


@pytest.mark.parametrize("key", [("string", "1"), ("number", "1.0"), ("number", "7"), None])
def test_a_cancellation_of_another_request_overtakes(order, key):
    feed(order, call(1), held(50))
    assert feed(order, b"cancel", Pass(overtakes=True, cancels=key)) == [b"cancel"]
    assert len(order) == 1


def test_a_cancellation_of_a_request_in_a_batch_that_waits_follows_it(order):
    feed(order, b"[" + call(1) + b"," + call(2) + b"]", held(50))
    assert feed(order, b"cancel", Pass(overtakes=True, cancels=("number", "2"))) == []
    assert [frame.raw for frame in order.expire(50)][-1] == b"cancel"


def test_at_the_end_all_goes_in_its_order_and_nothing_is_held_any_more(order):
    feed(order, b"a", held(50))
    feed(order, b"b", held(99, Reply(b"{}", "gate g")))
    feed(order, b"c", held(99))
    order.release(3, "dropped")
    assert gone(order.end("closed")) == [
        (b"a", 1, "closed", Pass),
        (b"b", 2, "closed", Reply),
        (b"c", 3, "dropped", Drop),
    ]
    (frame,) = order.feed(GatedFrame(b"d", 0, held(500)))
    assert (frame.held, frame.verdict) == (None, PASS)


def test_it_says_when_nothing_more_should_be_read():
    for size, many in ((10, FRAMES), (BYTES // 4, 4)):
        order = FrameOrder(count(1), "lines")
        feed(order, b"x" * size, held(50))
        for _ in range(many - 2):
            feed(order, b"x" * size)
        assert not order.full
        feed(order, b"x" * size)
        assert order.full
        order.expire(50)
        assert not order.full


VERDICTS = st.one_of(
    st.sampled_from([PASS, Drop("g"), Send((b"x", b"y"), "g"), Reply(b"{}", "g"), CloseStream("g")]),
    st.builds(held, st.integers(0, 30), st.sampled_from([PASS, Drop("g")]), st.sampled_from(["expired", "delayed"])),
)
STEPS = st.one_of(
    st.tuples(st.just("feed"), VERDICTS),
    st.tuples(st.just("release"), st.integers(1, 20)),
    st.tuples(st.just("expire"), st.integers(0, 5)),
)


@given(st.lists(STEPS, max_size=40))
def test_the_order_is_kept_whatever_the_verdicts_and_nothing_is_lost(steps):
    order, went, fed, now = FrameOrder(count(1), "lines"), [], 0, 0
    for what, value in steps:
        if what == "feed":
            went += order.feed(GatedFrame(call(fed), now, value))
            fed += 1
        elif what == "release":
            went += order.release(value, "continued")
        else:
            now += value
            went += order.expire(now)
            assert order.until is None or order.until > now, "who waits until then does not wait in vain"
    went += order.end("closed")
    assert [read(frame.raw, "lines")[0].id[1] for frame in went] == [str(number) for number in range(fed)]
    numbers = [frame.held for frame in went if frame.held]
    assert numbers == sorted(set(numbers))


def test_a_frame_that_is_held_with_reorder_lets_those_behind_it_go(order):
    first, second = Hold(50, "gate g", "delayed", PASS, reorder=True), Hold(30, "gate h", "delayed", PASS)
    assert feed(order, b"a", first) == []
    assert feed(order, b"b") == [b"b"]
    assert feed(order, b"c", second) == []
    assert feed(order, b"d") == [], "the second hold lets nothing pass"
    assert order.until == 30
    assert gone(order.expire(30)) == [(b"c", 2, "delayed", Pass), (b"d", 3, "delayed", Pass)]
    assert order.until == 50
    assert gone(order.expire(50)) == [(b"a", 1, "delayed", Pass)]


def test_frames_held_with_reorder_go_when_each_is_due_and_in_order_at_the_end(order):
    for raw, until in ((b"a", 50), (b"b", 30), (b"c", 90), (b"d", 80)):
        feed(order, raw, Hold(until, "gate g", "delayed", PASS, reorder=True))
    assert [frame.raw for frame in order.expire(50)] == [b"a", b"b"]
    assert [frame.raw for frame in order.end("closed")] == [b"c", b"d"]
