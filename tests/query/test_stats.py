"""The sums over captures by server, tool and client, from transcripts."""

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.query import stats as module
from mcpspy.query.stats import OTHER_CLIENTS, Stats
from mcpspy.timeline import final_rows
from tests.test_overview import HANDSHAKE, called, listed
from tests.timelines import GOLDEN
from tests.transcript import capture


@pytest.fixture
def stats(tmp_path):
    """Return a function that counts transcripts, each as a capture of a server named `server`."""

    def count(*texts):
        found = Stats()
        for number, text in enumerate(texts):
            found.add(Capture(capture(str(tmp_path / f"{number}.jsonl"), text)))
        return found

    return count


def only(found):
    (value,) = found.values()
    return value


def test_tools_have_the_sums_of_all_captures(stats):
    first = listed(1, '{"name":"a"}') + called(2, "a", seconds=0.5) + called(3, "a", '{"isError":true}', 0.1)
    server = only(stats(first, called(1, "a", seconds=0.3) + called(2, "b")).servers)
    assert (server.captures, server.requests, server.errors) == (2, 5, 1)
    a, b = server.tools["a"], server.tools["b"]
    assert (a.calls, a.errors, a.size, a.results) == (3, 1, len('{"name":"a"}'), 2 * 14 + 16)
    assert a.latencies.quantiles(0.5, 1) == [pytest.approx(300_000_000, rel=0.001), 500_000_000]
    assert (b.calls, b.arguments) == (1, 0)


def test_arguments_are_measured_as_compact_json(stats):
    text = '> {"id":1,"method":"tools/call","params":{"name":"a","arguments":{ "x" : "é" }}}'
    assert only(only(stats(text).servers).tools).arguments == len('{"x":"é"}'.encode())


def test_a_client_is_known_by_its_name_and_version(stats):
    other = HANDSHAKE.replace('"2.1"', '"2.2"')
    found = stats(HANDSHAKE, HANDSHAKE + called(1, "a"), other, "> 1 ping")
    assert [(name, client.sessions, client.requests) for name, client in found.clients.items()] == [
        (("cursor", "2.1"), 2, 3),
        (("cursor", "2.2"), 1, 1),
        (("", ""), 1, 1),
    ]
    client = found.clients["cursor", "2.1"]
    assert (client.revisions, client.capabilities) == ({"2025-06-18": 2}, {"roots(listChanged)": 2, "sampling": 2})


def test_a_request_that_was_cancelled_is_given_up_after_the_time_that_it_waited(stats):
    text = """
    @1 > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}
    @31 > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
    """
    client = stats(HANDSHAKE + text).clients["cursor", "2.1"]
    assert (client.given_up, client.waits.quantiles(1)) == ({"tools/call": 1}, [30_000_000_000])


def test_a_request_that_the_server_cancels_is_not_given_up_by_the_client(stats):
    text = """
    < {"jsonrpc":"2.0","id":1,"method":"ping"}
    < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
    """
    assert not stats(HANDSHAKE + text).clients["cursor", "2.1"].given_up


def test_clients_beyond_a_bound_are_one(stats, monkeypatch):
    monkeypatch.setattr(module, "CLIENTS", 1)
    found = stats(HANDSHAKE, HANDSHAKE.replace('"2.1"', '"2.2"'), HANDSHAKE.replace('"2.1"', '"2.3"'))
    assert {name: client.sessions for (name, _), client in found.clients.items()} == {"cursor": 1, OTHER_CLIENTS: 2}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_counts_of_a_golden_capture_are_those_of_show(path):
    found = Stats()
    found.add(Capture(str(path)))
    server = only(found.servers)
    rows = list(final_rows(Capture(str(path)).records, live=False))
    requests = [row for row in rows if row.kind == "request" and row.sender == "client"]
    assert server.requests == len(requests)
    assert server.errors == sum(row.status in ("error", "tool-error") and row.latency is not None for row in requests)
    assert server.failed == sum(row.counts_as_failed for row in rows) > 0
    assert server.found == sum(len(row.findings) for row in rows)
    calls = [row for row in requests if row.method == "tools/call"]
    assert sum(tool.calls for tool in server.tools.values()) == len(calls)
    assert sum(client.requests for client in found.clients.values()) == len(requests)
