"""Temporary folders of running queries."""

import os
import stat

import pytest

from mcpspy.errors import UsageError
from mcpspy.query.scratch import scratch


def test_a_folder_is_the_users_alone_and_gone_in_the_end(cache):
    with scratch() as folder:
        assert os.path.dirname(folder) == str(cache / "running")
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert not os.listdir(cache / "running")


def test_what_a_killed_process_has_left_goes_with_the_next_query(cache):
    with scratch() as running:
        killed, new = cache / "running" / "killed", cache / "running" / "new"
        for folder in (killed, new):
            folder.mkdir()
            (folder / "lock").touch()
            (folder / "spilled").write_bytes(b"x")
        for folder in (killed, running):
            os.utime(folder, (0, 0))
        with scratch():
            assert [os.path.exists(folder) for folder in (killed, new, running)] == [False, True, True]


def test_a_folder_that_cannot_be_made_is_one_line(cache, tmp_path):
    (tmp_path / "cache").write_text("")
    with pytest.raises(UsageError, match=r"^cannot write [^\n]*cache[^\n]*: [^\n]+$"), scratch():
        pass
