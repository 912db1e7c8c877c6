"""What was taken is known after a restart (T-04)."""

import os
import stat

import pytest

from mcpspy.errors import UsageError
from mcpspy.telemetry.checkpoint import Checkpoint, folder, load, save


def test_what_is_saved_is_loaded(tmp_path):
    path = str(tmp_path / "otel" / "a.json")
    kept = Checkpoint(7, {(9, 0), (9, 1)}, 3, 1000)
    save(path, kept)
    assert load(path) == kept
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert os.listdir(tmp_path / "otel") == ["a.json"]


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"below":"x","taken":[],"logs":0,"size":null}', "\0"])
def test_a_damaged_file_is_as_none(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    assert load(str(path)) == load(str(tmp_path / "missing")) == Checkpoint()


def test_spans_above_the_bound_are_known_one_by_one():
    checkpoint = Checkpoint()
    checkpoint.take([(5, 0), (9, 1)], 6)
    assert [checkpoint.has(*place) for place in ((5, 1), (6, 0), (9, 0), (9, 1))] == [True, False, False, True]
    assert checkpoint.taken == {(9, 1)}
    checkpoint.take([], 3)  # a bound never falls
    assert checkpoint.has(5, 0)


def test_where_it_cannot_be_written_that_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write the checkpoint"):
        save(str(tmp_path / "file" / "a.json"), Checkpoint())


def test_each_endpoint_has_checkpoints_of_its_own():
    assert folder("http://a:4318") == folder("http://a:4318") != folder("http://b:4318")
