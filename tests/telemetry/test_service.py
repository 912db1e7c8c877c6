"""From captures to a collector that is reachable, unreachable, or reachable again (T-05)."""

import os
import sys
from contextlib import closing
from subprocess import PIPE

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.telemetry.captured import Measure
from mcpspy.telemetry.followed import Batch, Claims, FollowedTelemetry, WatchedCaptures
from mcpspy.telemetry.service import AT_ONCE, TelemetryService
from tests import limits
from tests.transcript import capture

CALL = '> {{"id":{0},"method":"ping"}}\n< {{"id":{0},"result":{{}}}}'


class FakeReceiver:
    """Accepts or refuses each batch as its script says; after the script, it accepts every batch."""

    def __init__(self, *script):
        self.script = list(script)
        self.spans, self.measures, self.sizes = [], 0, []

    def send(self, batch, resource, started):
        assert resource["mcpspy.server"] == "weather"
        assert started > 0
        if self.script and not self.script.pop(0):
            return "nobody is there"
        self.spans += [span.context.span for span in batch.spans]
        self.sizes.append(sum(map(len, batch)))
        return None

    def measure(self, batch, resource):
        self.measures += len(batch.measures)


@pytest.fixture
def run(tmp_path):
    def start(receiver, *paths, follow=False, waits=(), each=lambda: None):
        pauses, told, waited, place = list(waits), [], [], str(tmp_path / "otel")
        watched = WatchedCaptures(paths, told.append, follow=follow)

        def wait(seconds):
            each()
            if not seconds:
                return False
            waited.append(seconds)
            return pauses.pop(0) if pauses else True

        with closing(Claims(place)) as claims:
            service = TelemetryService(receiver, claims, wait, told.append)
            whole = service.run(watched.look, lambda path: FollowedTelemetry(path, place, str, None), follow=follow)
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
        "nobody is there; trying again until the collector accepts telemetry",
        "the collector accepts telemetry again",
    ]


def test_who_does_not_follow_does_not_wait_for_a_collector(tmp_path, run):
    path = capture(tmp_path / "a.jsonl", CALL.format(1))
    assert run(FakeReceiver(False), path) == (False, [], [])
    receiver = FakeReceiver()
    assert run(receiver, path)[0]
    assert len(receiver.spans) == 1  # no span was acknowledged before


def test_it_ends_while_the_collector_is_away(tmp_path, run):
    path = capture(tmp_path / "a.jsonl", CALL.format(1))
    assert not run(FakeReceiver(False, False), path, follow=True, waits=[False, True])[0]


class GrowingCapture:
    """A live capture with a given number of new measures at each look, then always one."""

    ended = False
    started = 1
    place = "growing"

    def __init__(self, *sizes):
        self.sizes = list(sizes)

    def begin(self):
        return True

    def take(self, most):
        size = min(self.sizes.pop(0) if self.sizes else 1, most)
        return Batch([], [], [Measure("mcpspy.bytes", 1)] * size)

    def resource(self):
        return {"mcpspy.server": "weather"}

    def acknowledge(self, batch):
        pass

    def close(self):
        pass


def test_captures_that_never_rest_are_looked_at_from_time_to_time_until_it_is_time_to_end(tmp_path):
    waited, receiver, looks = [], FakeReceiver(), [["a.jsonl"], [], []]

    def wait(seconds):
        waited.append(seconds)
        return bool(seconds) and not looks

    with closing(Claims(str(tmp_path))) as claims:
        service = TelemetryService(receiver, claims, wait, print)
        growing = GrowingCapture(AT_ONCE + 1, AT_ONCE - 1)
        assert service.run(lambda: looks.pop(0), lambda _: growing, follow=True)
    assert receiver.sizes == [AT_ONCE, AT_ONCE - 1, 1]
    assert [pause for pause in waited if pause] == [0.25, 0.25]  # no pause while more telemetry is ready


def test_captures_that_never_rest_do_not_keep_others_waiting(tmp_path):
    receiver, looks = FakeReceiver(), [[f"{number}.jsonl" for number in range(40)], [], [], []]
    opened = []

    def open_capture(path):
        opened.append(path)
        return GrowingCapture()

    with closing(Claims(str(tmp_path))) as claims:
        service = TelemetryService(receiver, claims, lambda seconds: bool(seconds) and not looks, print)
        assert service.run(lambda: looks.pop(0), open_capture, follow=True)
    assert len(opened) == 40


def test_what_is_no_capture_is_named_and_the_others_go_on(tmp_path, run):
    (tmp_path / "b.jsonl").write_text("hello\n")
    (tmp_path / "c.jsonl").write_text('{"mcpspy":99}\n')
    capture(tmp_path / "a.jsonl", CALL.format(1))
    receiver = FakeReceiver()
    whole, _, told = run(receiver, str(tmp_path))
    assert (whole, len(receiver.spans), len(told)) == (True, 1, 2)
    assert "has format 99" in "".join(told)


def test_few_captures_are_open_at_a_time(tmp_path, run):
    for number in range(60):
        capture(tmp_path / f"{number}.jsonl", CALL.format(1))
    before, most = len(os.listdir("/dev/fd")), []
    receiver = FakeReceiver()
    assert run(receiver, str(tmp_path), each=lambda: most.append(len(os.listdir("/dev/fd"))))[0]
    assert len(receiver.spans) == 60
    assert max(most) - before < 40


def test_a_capture_that_another_process_sends_is_left_to_it(tmp_path, run):
    """T-04."""
    path, place = capture(tmp_path / "a.jsonl", CALL.format(1)), str(tmp_path / "otel")
    words = (
        "import sys; from mcpspy.telemetry.followed import Claims, file_of; "
        f"print(Claims({place!r}).take(file_of({place!r}, {Capture(path).header.id!r})), flush=True); sys.stdin.read()"
    )
    with limits.Popen([sys.executable, "-c", words], stdin=PIPE, stdout=PIPE) as other:
        assert other.stdout.readline() == b"True\n"
        receiver = FakeReceiver()
        assert run(receiver, path) == (True, [], [f"another mcpspy sends {path}, so this one does not"])
        assert not receiver.spans
        other.communicate()
    assert run(receiver, path)[0]
    assert len(receiver.spans) == 1


def test_it_ends_although_there_is_more_to_send(tmp_path):
    path, place = capture(tmp_path / "a.jsonl", "\n".join(CALL.format(n) for n in range(3000))), str(tmp_path / "otel")
    receiver = FakeReceiver()
    with closing(Claims(place)) as claims:
        service = TelemetryService(receiver, claims, lambda _: len(receiver.sizes) > 1, print)
        watched = WatchedCaptures([path], print, follow=True)
        assert not service.run(watched.look, lambda it: FollowedTelemetry(it, place, str, None), follow=True)
    assert len(receiver.sizes) == 2
