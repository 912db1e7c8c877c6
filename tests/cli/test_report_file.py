"""The file that a report is written to."""

import errno
import os

import pytest

from mcpspy.cli.report_file import refuse_to_overwrite, write_report
from mcpspy.errors import UsageError
from mcpspy.output_file import WriteError
from tests.report.captures import fine


def test_what_is_read_is_not_written(tmp_path):
    path = fine(tmp_path / "a.jsonl")
    os.link(path, tmp_path / "b")
    with pytest.raises(UsageError, match=r"-o .*b is the file"):
        refuse_to_overwrite("-o", str(tmp_path / "b"), [str(path)])
    refuse_to_overwrite("-o", str(tmp_path / "c"), [str(path)])


def test_a_report_is_printed_or_written(tmp_path, capsys):
    write_report(["a\n", "b\n"], None)
    assert capsys.readouterr().out == "a\nb\n"
    write_report(["a\n"], str(tmp_path / "a"))
    assert (tmp_path / "a").read_text() == "a\n"
    with pytest.raises(UsageError, match="cannot write"):
        write_report([], str(tmp_path / "no" / "a"))


def test_a_22_an_error_of_the_input_is_not_reported_as_one_of_the_report(tmp_path):
    def chunks():
        yield "a\n"
        os.stat(tmp_path / "missing")

    with pytest.raises(FileNotFoundError, match="missing"):
        write_report(chunks(), str(tmp_path / "a"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_22_a_report_that_cannot_be_written_is_named():
    with pytest.raises(UsageError, match="cannot write /dev/full: No space left on device"):
        write_report(["a\n"], "/dev/full")


def test_a_report_that_cannot_be_finished_leaves_no_file(tmp_path):
    """A-21: half a report could be taken for a whole one."""

    def chunks():
        yield "a\n"
        raise WriteError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UsageError, match=r"cannot write .*: No space left on device"):
        write_report(chunks(), str(tmp_path / "a"))
    assert list(tmp_path.iterdir()) == []
