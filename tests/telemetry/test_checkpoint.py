"""Accepted spans are still known after a restart (T-04)."""

import os
import stat
import sys
from subprocess import PIPE, run

import pytest

from mcpspy.errors import UsageError
from mcpspy.telemetry.checkpoint import Checkpoint, Claims, file_of, folder, load, save

FUTURE = '{"below":1e300,"open":{},"taken":[[1,2,3]],"logs":[0],"size":1,"new":1}'


def test_what_is_saved_is_loaded(tmp_path):
    path = str(tmp_path / "otel" / "a.json")
    kept = Checkpoint(7, {(2, 0)}, {(9, 0), (9, 1)}, 3, 1000)
    save(path, kept)
    assert load(path) == kept
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert os.listdir(tmp_path / "otel") == ["a.json"]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"below":"x","open":[],"taken":[],"logs":0,"size":null}', "\0", FUTURE]
)
def test_a_damaged_file_is_as_none(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    assert load(str(path)) == load(str(tmp_path / "missing")) == Checkpoint()


def test_spans_above_the_bound_are_known_one_by_one():
    checkpoint = Checkpoint()
    checkpoint.take([(5, 0), (9, 1)], [], 6)
    assert [checkpoint.has(place) for place in ((5, 1), (6, 0), (9, 0), (9, 1))] == [True, False, False, True]
    assert checkpoint.taken == {(9, 1)}
    checkpoint.take([], [(2, 0)], 3)  # a bound never decreases, and a request that is read again is not open again
    assert checkpoint.has((5, 0))
    assert checkpoint.has((2, 0))


def test_a_request_that_stays_open_costs_one_entry():
    checkpoint = Checkpoint()
    for n in range(2, 20_000, 100):
        checkpoint.take([(it, 0) for it in range(n, n + 100)], [(1, 0)], n - 50)
    assert checkpoint.open == {(1, 0)}
    assert len(checkpoint.taken) <= 150
    assert not checkpoint.has((1, 0))
    checkpoint.take([(1, 0)], [], 19_000)
    assert checkpoint.has((1, 0))
    assert not checkpoint.open


@pytest.mark.parametrize("capture", ["../../../x", "a/b", "x" * 5000, "a\0b", "", "\ud800"])
def test_the_id_of_a_capture_may_be_any_text(tmp_path, capture):
    path = file_of(str(tmp_path), capture)
    save(path, Checkpoint(7))
    assert load(path) == Checkpoint(7)
    assert [str(tmp_path / name) for name in os.listdir(tmp_path)] == [path]


def test_one_process_sends_a_capture(tmp_path):
    """T-04."""
    claims, path = Claims(str(tmp_path)), file_of(str(tmp_path), "a")
    assert claims.take(path)
    other = f"from mcpspy.telemetry.checkpoint import Claims; print(Claims({str(tmp_path)!r}).take({path!r}))"
    assert run([sys.executable, "-c", other], stdout=PIPE, check=True).stdout == b"False\n"
    claims.release(path)
    assert run([sys.executable, "-c", other], stdout=PIPE, check=True).stdout == b"True\n"
    claims.close()


def test_where_it_cannot_be_written_that_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write the checkpoint"):
        save(str(tmp_path / "file" / "a.json"), Checkpoint())
    with pytest.raises(UsageError, match="cannot write the checkpoints"):
        Claims(str(tmp_path / "file" / "otel"))


def test_each_endpoint_has_checkpoints_of_its_own():
    assert folder("http://a:4318") == folder("http://a:4318") != folder("http://b:4318")
