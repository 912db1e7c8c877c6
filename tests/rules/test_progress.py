"""Progress: cases that the rule examples do not cover."""

import pytest

from tests.conversation.http import SSE, Exchange, request, result
from tests.rules.examples import judged, records, told
from tests.rules.notation import META

SLOW = """
    = 2025-06-18
    > 2 tools/call {"name":"slow","_meta":{"progressToken":"t"}}
"""


def report(value, token='"t"'):  # noqa: S107 (a progress token)
    return f'< notifications/progress {{"progressToken":{token},"progress":{value}}}\n'


def test_a_token_is_not_unknown_after_so_many_that_some_were_forgotten(monkeypatch):
    monkeypatch.setattr("mcpspy.conversation.bounds.FACTS", 300)
    others = "".join(
        f'> {n} tools/call {{"name":"a","_meta":{{"progressToken":{n}}}}}\n< {n} = {{"content":[]}}\n'
        for n in range(3, 320)
    )
    assert told(SLOW + others + report(1), "progress/") == []
    assert told(SLOW + others + report(2) + report(1), "progress/") == ["#640 progress/not-increasing"]  # still known
    assert told(SLOW + others + report(1, token='"never"'), "progress/") == []


def test_two_clients_on_http_with_one_token_are_told_apart_by_their_streams():
    """2026-07-28: nothing else distinguishes two equal clients (seen with two clients of the Python SDK)."""
    http = Exchange()
    streams = []
    for number in (1, 2):
        meta = META | {"progressToken": 7}
        asked = http.ask(request(number, "tools/call", name="slow", _meta=meta), mcp_name="slow")
        streams.append(http.answer(asked, kind=SSE, end=False))
    first, second = streams
    for stream, value in ((second, 50), (first, 10), (second, 60), (first, 20)):
        http.event(stream, progress(value))
    http.event(second, result(2, resultType="complete", content=[]))
    http.event(first, progress(30))
    assert [it.rule for it in judged(http.records) if it.rule.startswith("progress/")] == []
    http.event(first, progress(30))
    http.event(second, progress(70))
    found = [it.rule for it in judged(http.records) if it.rule.startswith("progress/")]
    assert found == ["progress/after-completion"]  # none on the first stream: its token was reused


def progress(value):
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7, "progress": value}}


@pytest.mark.parametrize(("later", "found"), [(0.5, []), (1.5, ["progress/after-completion"])])
def test_a_report_on_another_stream_may_cross_the_answer(later, found):
    """2025-11-25, over HTTP: no side is blamed for the order in which two streams are read."""
    http = Exchange()
    http.answer(http.ask(request(0, "initialize", protocolVersion="2025-11-25")), result(0), mcp_session_id="s")
    stream = http.answer(http.ask(method="GET", mcp_session_id="s"), kind=SSE, end=False)
    asked = http.ask(request(1, "tools/call", name="a", _meta={"progressToken": 7}), mcp_session_id="s")
    http.answer(asked, result(1, content=[]))
    http.wait(int(later * 1e9))
    http.event(stream, progress(1))
    assert [it.rule for it in judged(http.records) if it.rule.startswith("progress/")] == found


def calls(count):
    """Return consecutive calls with one token, recorded in another order than the order of their times.

    The calls alternate: in order, a response before its request, a request before the previous response.
    """
    lines, held, t = [], "", 1.0
    for number in range(2, count + 2):
        said = [
            f'> {number} tools/call {{"name":"slow","_meta":{{"progressToken":"t"}}}}',
            *(report(value).strip() for value in (1, 2)),
            f'< {number} = {{"content":[]}}',
        ]
        asked, *reports, answered = (f"@{t + step / 20_000:.6f} {line}" for step, line in enumerate(said))
        t += len(said) / 20_000
        lines += {
            0: (asked, *reports, answered),
            1: (*reports, answered, asked),
            2: (asked, *reports),
            3: (asked, held, *reports, answered),
        }[number % 4]
        held = answered
    return "= 2025-06-18\n" + "\n".join(lines)


def test_calls_that_reuse_a_token_one_after_the_other_are_judged_by_their_times():
    """R-01: in the order of the lines of the file, there would be many findings."""
    found = records(calls(1500))
    assert judged(found) == []
    by_line = judged(sorted(found[:999], key=lambda record: record.n))
    assert len([it for it in by_line if it.severity in ("error", "warning")]) > 100
