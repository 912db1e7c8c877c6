"""Output files are written completely or not at all."""

import os
import resource
from contextlib import contextmanager, suppress

import pytest

from mcpspy.errors import UsageError
from mcpspy.output_file import output_file


def write(path, content=b"new", *, replace=False):
    with output_file(str(path), replace=replace) as file:
        file.write(content)


def test_a_file_that_exists_stays_unless_it_may_be_replaced(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(UsageError, match="a exists; --force replaces it"):
        write(path)
    assert path.read_bytes() == b"old"
    write(path, replace=True)
    assert path.read_bytes() == b"new"


def test_a_file_that_was_made_meanwhile_stays(tmp_path):
    path = tmp_path / "a"

    def write_while_another_program_does():
        with output_file(str(path), replace=False):
            path.write_bytes(b"of another program")

    with pytest.raises(UsageError, match="exists"):
        write_while_another_program_does()
    assert path.read_bytes() == b"of another program"
    assert os.listdir(tmp_path) == ["a"]


def test_where_the_block_fails_nothing_is_left_and_the_old_file_stays(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with suppress(KeyError), output_file(str(path), replace=True) as file:
        file.write(b"half")
        raise KeyError
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("name", "why"),
    [("missing/a", "No such file or directory"), ("", "is a directory"), ("a\0b", "null (byte|character)")],
)
def test_what_cannot_be_written_is_one_sentence(tmp_path, name, why):
    with pytest.raises(UsageError, match=why):
        write(f"{tmp_path}/{name}", replace=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_never_replaced_also_not_through_a_link(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(UsageError, match="is a device, a pipe or a socket"), output_file(str(path), replace=True):
            pass
    assert pipe.is_fifo()
    assert sorted(it.name for it in tmp_path.iterdir()) == ["link", "pipe"]


@contextmanager
def file_size_limit(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_22_an_output_that_grows_too_large_is_named(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(UsageError, match=f"cannot write {path}: File too large"), file_size_limit(1000):
        write(path, b"x" * 100_000)
    assert os.listdir(tmp_path) == []


def test_a_22_another_error_while_an_output_is_written_stays_what_it_is(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(FileNotFoundError, match="missing"), output_file(str(path), replace=False):
        os.stat(tmp_path / "missing")
    assert os.listdir(tmp_path) == []
