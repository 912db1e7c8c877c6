"""The pauses of a run, and the spells between them."""

from mcpspy.conversation.counts import PAUSE, add_message, turns
from mcpspy.conversation.model import Message
from tests.transcript import events

SECOND = 1_000_000_000


def spells(text):
    found = []
    for event in events(text):
        if isinstance(event, Message):
            add_message(found, event)
    return found


def told(text):
    """Return for each spell its first line, start and end in seconds, frames and exchanges."""
    return [(it.n, it.start / SECOND, it.end / SECOND, it.frames, it.exchanges) for it in spells(text)]


def test_a_pause_of_five_minutes_divides():
    assert PAUSE == 300 * SECOND
    assert told("""
        @0 > 1 tools/list
        @1 < 1 = {}
        @300.9 > 2 tools/list
        @301 < 2 = {}
        @601 > 3 tools/list
    """) == [(1, 0, 301, 4, 2), (5, 601, 601, 1, 1)]


def test_an_answer_belongs_to_its_request_however_late_it_comes():
    assert told("""
        @0 > 1 tools/list
        @900 < 1 = {}
        @901 > 2 tools/list
    """) == [(1, 0, 901, 3, 2)]


def test_pings_and_stderr_neither_begin_nor_end_a_pause():
    assert told("""
        @0 > 1 tools/list
        @200 < 1 ping
        @200 > 1 = {}
        @250 ! warming up
        @400 > 2 tools/list
    """) == [(1, 0, 0, 1, 1), (5, 400, 400, 1, 1)]
    assert told("@0 < 1 ping") == []


def test_messages_of_a_batch_are_one_frame():
    assert told('@0 > [{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]') == [
        (1, 0, 0, 1, 2)
    ]


def test_a_hostile_capture_has_a_bounded_number_of_spells():
    found = spells("\n".join(f"@{300 * n} > {n} tools/list" for n in range(1, 1200)))
    assert len(found) == 1000
    assert sum(it.frames for it in found) == 1199


def test_the_turns_of_a_run_are_those_of_all_its_captures():
    one = spells("@0 > 1 tools/list\n@500 > 2 tools/list\n@2000 > 3 tools/list")
    two = spells("@100 > 1 tools/list\n@1200 > 2 tools/list")
    start = 7_000_000 * SECOND
    found = turns([(start, one), (start + 150 * SECOND, two)])
    assert [((it.start - start) / SECOND, (it.end - start) / SECOND, it.frames, it.first) for it in found] == [
        (0, 500, 3, (0, 1)), (1350, 1350, 1, (1, 2)), (2000, 2000, 1, (0, 3)),
    ]  # fmt: skip
    assert turns([]) == turns([(0, [])]) == []


def test_a_long_call_keeps_a_turn_together_that_other_captures_have_pauses_in():
    slow = spells("@0 > 1 tools/call\n@1000 < 1 = {}")
    other = spells("@500 > 1 tools/list")
    assert [(it.frames, it.exchanges) for it in turns([(0, slow), (0, other)])] == [(3, 2)]
