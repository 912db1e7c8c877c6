import pytest

from mcpspy.cli.targets import capture_paths, existing_path, parsed_filter
from mcpspy.errors import CaptureError, FilterError
from tests.transcript import capture


def test_a_directory_stands_for_its_captures(tmp_path, capsys):
    paths = [capture(str(tmp_path / f"{name}.jsonl"), "> 1 ping") for name in "ba"]
    (tmp_path / "c.jsonl").write_text("no capture")
    assert list(capture_paths([str(tmp_path), paths[0]])) == [*sorted(paths), paths[0]]
    assert "skipped: " in capsys.readouterr().err


def test_a_directory_without_a_capture_is_refused(tmp_path):
    with pytest.raises(CaptureError, match="there is no capture"):
        list(capture_paths([str(tmp_path)]))


def test_a_name_that_is_not_there_has_the_nearest_one(tmp_path):
    path = capture(str(tmp_path / "weather.jsonl"), "> 1 ping")
    with pytest.raises(CaptureError, match=f"the nearest: {path}"):
        existing_path(str(tmp_path / "wether.jsonl"))


def test_a_mistake_in_a_filter_is_pointed_at(capsys):
    with pytest.raises(FilterError):
        parsed_filter("status:eror", "2026-01-01T00:00:00Z")
    assert capsys.readouterr().err.endswith("^\n")
