"""The number of unread bytes in a pipe."""

import os

from mcpspy.process.pipes import waiting
from tests import limits


def test_bytes_wait_until_they_are_read():
    out, into = os.pipe()
    assert waiting(out) == 0
    os.write(into, b"x" * 1000)
    assert waiting(out) == 1000
    limits.read(out, 999)
    assert waiting(out) == 1
    os.close(into)
    os.close(out)


def test_nothing_waits_where_nobody_can_tell(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    os.close(fd)
    assert waiting(fd) == 0
