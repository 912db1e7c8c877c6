import gzip
import tracemalloc
from itertools import islice, repeat

import pytest

from mcpspy.importers.exchange import RequestTimes, blocks, decoded, placed

WHERE = "https://mcp.example.com"


def answer(number):
    return b'data: {"jsonrpc":"2.0","id":%d,"result":{}}\n\n' % number


def note():
    return b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n'


def request(number):
    return b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % number


@pytest.fixture
def asked():
    """Requests at 10, 20 and 30 with the ids 1, 2 and 1; at another URL, id 3 at 15."""
    asked = RequestTimes()
    for wall, number in ((20, 2), (30, 1), (10, 1), (10, 1)):
        asked.note(WHERE, wall, request(number))
    asked.note("https://other.example", 15, request(3))
    asked.note(WHERE, 5, b"no JSON")
    return asked


def walls(asked, *events, since=8, until=100, to_a_request=False):
    return [wall for wall, _ in placed(list(events), WHERE, since, until, asked, to_a_request=to_a_request)]


def test_an_answer_came_after_its_request_and_what_follows_after_the_answer(asked):
    assert walls(asked, note(), answer(1), note(), answer(2), note()) == [8, 11, 11, 21, 21]


def test_of_requests_with_one_id_the_first_since_the_stream_began_counts(asked):
    assert walls(asked, answer(1), since=11) == [31]
    assert walls(asked, answer(1), since=31) == [31], "it was asked before: this stream takes up another"


def test_answers_out_of_order_stay_in_the_order_of_the_stream(asked):
    assert walls(asked, answer(2), answer(1)) == [21, 21]


def test_the_last_event_of_what_a_request_opened_ended_it(asked):
    assert walls(asked, note(), note(), answer(2), to_a_request=True) == [8, 8, 100]


def test_nothing_comes_after_the_end(asked):
    assert walls(asked, answer(1), answer(2), until=15) == [11, 15]


def test_a_request_of_another_server_is_none(asked):
    assert walls(asked, answer(3)) == [8]


def test_what_is_no_message_has_no_cause(asked):
    assert walls(asked, b": comment\n\n", b"event: endpoint\ndata: /x\n\n", b'data: {"id":1}\n\n') == [8, 8, 8]


STREAM = b"\xef\xbb\xbf: hi\r\n\r\n\r\ndata: a\rdata: b\r\rid: 1\ndata: " + b"c" * 200_000 + b"\n\ndata: torn"


@pytest.mark.parametrize(("encoding", "raw"), [("", STREAM), ("gzip", gzip.compress(STREAM))], ids=["plain", "gzip"])
def test_a_stream_is_cut_into_its_events(encoding, raw):
    assert list(blocks(decoded(raw, encoding, 10**6))) == [
        b"\xef\xbb\xbf: hi\r\n\n",
        b"data: a\rdata: b\r\n",
        b"id: 1\ndata: " + b"c" * 200_000 + b"\n\n",
        b"data: torn",
    ]


@pytest.mark.parametrize(
    ("encoding", "raw"),
    [("gzip", b"none"), ("gzip", gzip.compress(STREAM)[:-9]), ("unknown", STREAM), ("gzip", gzip.compress(STREAM * 9))],
    ids=["damaged", "torn", "unknown", "too much"],
)
def test_what_cannot_be_decoded_stays_whole(encoding, raw):
    assert decoded(raw, encoding, 10**6) is None


def test_events_are_made_when_they_are_asked_for(asked):
    """A file of some megabytes may contain millions of events."""
    tracemalloc.start()
    assert sum(1 for _ in blocks(b":\n\n" * 50_000)) == 50_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20, "as a list they took 7 MB"
    times = placed(repeat(note()), WHERE, 8, 100, asked, to_a_request=True)
    assert [wall for wall, _ in islice(times, 3)] == [8, 8, 8]
