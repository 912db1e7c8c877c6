"""The meaning of keys for the rows of a session, where the golden captures of `cases.json` have no such rows."""

import re

import pytest

from mcpspy.errors import FilterError
from mcpspy.filters import KEYS, parse
from mcpspy.rules import FORMER
from mcpspy.timeline import Row, final_rows
from tests.transcript import records

STARTED = "2026-11-20T23:59:58.5Z"
SESSION = """
    @0.001 > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
    @0.003 < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}
    @0.004 > {"jsonrpc":"2.0","method":"notifications/initialized"}
    @0.005 ! Ready on C:\\new
    @1.000 > {"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"get_forecast"}}
    @1.250 < {"jsonrpc":"2.0","id":"1","result":{"isError":true,"content":[{"text":"caf\\u00e9 \\"Brygge\\""}]}}
    @2.000 > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Search"}}
    @4.000 < {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}
    @5.000 < | Listening on port 5
    @6.000 > {"jsonrpc":"2.0","id":3,"method":"tools/list"}
"""
ROWS = list(final_rows(lambda: records(SESSION), live=False))


def lines(text):
    """Return the lines of the transcript that match a filter, counted from 1."""
    wanted = parse(text, STARTED)
    return [row.n for row in ROWS if wanted(row)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("method:tools/call", [5, 6, 7, 8]),
        ("name:search", [7, 8]),
        ("name:SEARCH", []),
        ("id:1", [7, 8]),
        ('id:"1"', [5, 6]),
        ("status:error,unanswered", [5, 6, 7, 8, 10]),
        ("status:tool-error", [5, 6]),
        ("status:failed", [5, 6, 7, 8]),
        ("status:in-doubt", [10]),
        ("latency:>250ms", [7, 8]),
        ("latency:>=250ms", [5, 6, 7, 8]),
        ("latency:250.0ms", [5, 6]),
        ("latency:<5ms,>1s", [1, 2, 7, 8]),
        ("size:19", [9]),
        ("size:<0.02kb", [4, 9]),
        ("size:>=0.01kib size:<0.02kib", [4, 9]),
        ("time:1", [5, 6]),
        ("time:>=4.0", [8, 9, 10]),
        ("time:23:59", [1, 2, 3, 4, 5, 6]),
        ("time:23:59:58.5", [1, 2, 3, 4]),
        ("time:<23:59:58.503", [1]),
        ("time:2026-11-21", [7, 8, 9, 10]),
        ("time:>=2026-11-21T00:00:03Z", [9, 10]),
        ("time:>=2026-11-21T02:00:03+02:00", [9, 10]),
        ("time:2026-11-21T00:00", [7, 8, 9, 10]),
        ("time:23:59:59..2026-11-21T00:00:01", [5, 6, 7]),
        ("Method", [8]),
        ("not found", [1, 2, 3, 4, 5, 6, 7, 9, 10]),
        ('"not found"', [8]),
        (r'"C:\new"', [4]),
        ("café", [6]),
        ('"\\"brygge\\""', [6]),
        (r"caf\u00e9", [6]),
        ("rule:framing/not-json", [9]),
        ("rule:pairing/unanswered,framing", [9, 10]),
        ("severity:error from:server kind:invalid", [9]),
        ("severity:>=info from:server kind:invalid", [9]),
        ("severity:<error kind:invalid", []),
        ("method:tools/call (status:error or name:get_forecast) -kind:request", [6, 8]),
    ],
)
def test_a_filter_wants_the_rows_that_it_describes(text, wanted):
    assert lines(text) == wanted


def test_every_severity_is_compared_from_the_worst_down():
    by_severity = {"error": set(), "warning": set(), "info": set()}
    for row in ROWS:
        for finding in row.findings:
            by_severity[finding.severity].add(row.n)
    error, warning, info = by_severity.values()
    assert error
    assert warning | info
    for text, wanted in {
        "severity:error": error,
        "severity:>=warning": error | warning,
        "severity:>info": error | warning,
        "severity:<=warning": warning | info,
        "severity:warning,info": warning | info,
        "severity:*": error | warning | info,
    }.items():
        assert lines(text) == sorted(wanted), text


@pytest.mark.parametrize(
    ("text", "session", "wanted"),
    [("session:abc*", "ABCdef", True), ("session:abc*", None, False), ("-session:abc*", None, True)],
)
def test_a_session_is_named_by_its_id(text, session, wanted):
    assert parse(text, STARTED)(Row(1, 0, "request", "client", session=session)) is wanted


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        *(
            (f"{key}:{'9' * digits}", "that is too large: 18 digits are the most")
            for key in ("size", "time")
            for digits in (19, 23, 5000)
        ),
        (f"size:>{'9' * 19}kb", "that is too large: 18 digits are the most"),
    ],
)
def test_a_number_that_is_too_large_is_a_mistake(text, hint):
    with pytest.raises(FilterError, match=re.escape(hint)):
        parse(text, STARTED)


def test_the_keys_are_those_of_the_language():
    keys = "method name id from kind status revision session rule severity latency size time text"
    assert list(KEYS) == keys.split()


def test_a_rule_is_found_by_the_id_that_it_had_before(monkeypatch):
    monkeypatch.setitem(FORMER, "lines/garbage", "framing/not-json")
    assert lines("rule:lines/garbage") == lines("rule:framing/not-json") == [9]
