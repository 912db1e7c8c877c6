import json

import pytest

from mcpspy.replay.tolerance import Rules, Tolerance
from mcpspy.report.differences import Latency, changes_json, changes_text, examine
from tests.each import each
from tests.replay.scripts import call, result, script
from tests.report.captures import HOSTILE

LISTED = '> {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n< {"jsonrpc":"2.0","id":1,"result":{"tools":[TOOL]}}'


def listing(**tool):
    return script(LISTED.replace("TOOL", json.dumps(tool)))


def test_listings_and_handshakes_are_no_calls():
    report = examine(listing(name="a"), listing(name="b"), Rules())
    assert [(it.kind, it.name, it.change) for it in report.changes] == [
        ("tools", "a", "removed"),
        ("tools", "b", "added"),
    ]
    assert report.compared == []
    assert report.differs


def test_a_change_counts_if_any_of_it_is_not_ignored():
    old, new = listing(name="a", title="A", description="A"), listing(name="a", title="B", description="B")
    title, both = (Tolerance.parse("ignore", it) for it in ("tools/list /result/tools/*/title", "/result/tools/a"))
    assert examine(old, new, Rules((title,))).differs
    assert not examine(old, new, Rules((both,))).differs
    assert not examine(
        listing(name="a"), listing(name="b"), Rules((Tolerance.parse("ignore", "tools/list /result/tools/*"),))
    ).differs


def test_latencies_are_medians_by_method_and_name():
    def session(*seconds):
        lines, now = [], 0.0
        for number, it in enumerate(seconds):
            lines += [f"@{now} > {call(number, 'a')}", f"@{now + it} < {result(number, 'A')}"]
            now += 10
        return script("\n".join(lines))

    report = examine(session(0.1, 0.2, 0.9), session(0.1, 0.4, 0.5), Rules())
    (latency,) = report.latencies
    assert (latency.method, latency.name) == ("tools/call", "a")
    assert (latency.recorded, latency.observed) == (pytest.approx(2e8), pytest.approx(4e8))
    assert not report.differs
    assert "· tools/call a: 200.0 ms became 400.0 ms" in changes_text(report)


@each(
    "recorded, observed, notable",
    [(1e6, 4e6, False), (1e6, 5e6, True), (5e6, 1e6, True), (10e6, 19e6, False), (0, 6e6, True)],
)
def test_a_latency_is_notable_if_it_has_doubled_and_is_no_noise(recorded, observed, notable):
    assert Latency("ping", None, recorded, observed).notable is notable


def test_what_peers_say_breaks_no_report():
    report = examine(listing(name=HOSTILE, title="A"), listing(name=HOSTILE, title=HOSTILE), Rules())
    assert "\x1b" not in changes_text(report)
    assert json.loads(changes_json(report))["tools"][0]["name"] == HOSTILE
