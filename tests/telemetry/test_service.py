"""From captures to a collector that is there, away, or back again (T-05)."""

import pytest

from mcpspy.telemetry.followed import FollowedTelemetry
from mcpspy.telemetry.service import AT_ONCE, TelemetryService, followed
from tests.transcript import capture

CALL = '> {{"id":{0},"method":"ping"}}\n< {{"id":{0},"result":{{}}}}'


class FakeReceiver:
    """Takes a batch as its script says, once for each; then always."""

    def __init__(self, *script):
        self.script = list(script)
        self.spans, self.measures, self.sizes = [], 0, []

    def send(self, batch, resource, started):
        assert resource["mcpspy.server"] == "weather"
        assert started > 0
        if self.script and not self.script.pop(0):
            return False
        self.spans += [span.context.span for span in batch.spans]
        self.sizes.append(sum(map(len, batch)))
        return True

    def measure(self, batch, resource):
        self.measures += len(batch.measures)


@pytest.fixture
def run(tmp_path):
    def start(receiver, *paths, follow=False, waits=()):
        pauses, told, known = list(waits), [], set()
        waited = []

        def wait(seconds):
            waited.append(seconds)
            return pauses.pop(0) if pauses else True

        service = TelemetryService(receiver, wait, told.append)
        whole = service.run(
            lambda: followed(
                paths, lambda path: FollowedTelemetry(path, str(tmp_path / "otel"), str, lambda _: {}), known
            ),
            follow=follow,
        )
        return whole, waited, told

    return start


def test_all_of_several_captures_is_sent_once(tmp_path, run):
    paths = [capture(tmp_path / f"{name}.jsonl", "\n".join(CALL.format(n) for n in range(5))) for name in "ab"]
    receiver = FakeReceiver()
    assert run(receiver, *paths)[0]
    assert len(receiver.spans) == len(set(receiver.spans)) == 10
    assert receiver.measures
    again = FakeReceiver()
    assert run(again, *paths)[0]
    assert not again.spans


def test_a_long_capture_is_sent_in_batches(tmp_path, run):
    path = capture(tmp_path / "a.jsonl", "\n".join(CALL.format(n) for n in range(400)))
    receiver = FakeReceiver()
    assert run(receiver, path)[0]
    assert len(receiver.spans) == 400
    assert max(receiver.sizes) <= AT_ONCE


def test_a_collector_that_is_away_gets_the_batch_when_it_is_back(tmp_path, run):
    path = capture(tmp_path / "a.jsonl", CALL.format(1))
    receiver = FakeReceiver(False, False, False, True)
    whole, waited, told = run(receiver, path, follow=True, waits=[False] * 3)
    assert whole
    assert waited[:3] == [1.0, 2.0, 4.0]
    assert len(receiver.spans) == 1
    assert told == [
        "the collector takes no telemetry; trying again until it does",
        "the collector takes telemetry again",
    ]


def test_who_does_not_follow_does_not_wait_for_a_collector(tmp_path, run):
    path = capture(tmp_path / "a.jsonl", CALL.format(1))
    assert run(FakeReceiver(False), path) == (False, [], [])
    receiver = FakeReceiver()
    assert run(receiver, path)[0]
    assert len(receiver.spans) == 1  # nothing was acknowledged before


def test_it_ends_while_the_collector_is_away(tmp_path, run):
    path = capture(tmp_path / "a.jsonl", CALL.format(1))
    assert not run(FakeReceiver(False, False), path, follow=True, waits=[False, True])[0]


def test_what_is_no_capture_is_passed_over(tmp_path, run):
    (tmp_path / "b.jsonl").write_text("hello\n")
    assert run(FakeReceiver(), str(tmp_path / "b.jsonl"), str(tmp_path / "missing.jsonl"))[0]
