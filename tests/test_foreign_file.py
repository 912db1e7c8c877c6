"""A-18: a file of others is read up to a size, and a path to a pipe, a device or a directory is an error at once."""

import os
import socket
import subprocess
import sys

import pytest

from mcpspy.capture import user_key
from mcpspy.capture.live import LiveFolder, live_directory
from mcpspy.capture.reader import Capture
from mcpspy.clients import apply, checks, places, routes
from mcpspy.clients.places import Found
from mcpspy.clients.servers import Server
from mcpspy.clients.table import BY_ID
from mcpspy.contract import expectations, lock
from mcpspy.errors import ConfigError, McpspyError
from mcpspy.foreign_file import LARGEST, NotRegular, open_foreign, read_foreign, similar
from mcpspy.gate_files import file as gate_file
from mcpspy.importers import forms
from mcpspy.network.access import Access
from mcpspy.recording.copy import write_with_sessions
from mcpspy.relay.http.heads import Address
from mcpspy.relay.http.route import Upstream
from mcpspy.relay.mitm import authority
from mcpspy.replay import settings
from mcpspy.report import waivers
from tests import limits
from tests.each import each


@pytest.fixture
def odd(tmp_path):
    """Return a path of each kind that is not a regular file, and one of a file that is too large."""
    found = {kind: str(tmp_path / kind) for kind in ("pipe", "device", "directory", "socket", "link", "large")}
    os.mkfifo(found["pipe"])
    os.symlink("/dev/zero", found["device"])
    os.mkdir(found["directory"])
    os.symlink("link", found["link"])
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(found["socket"])
    with open(found["large"], "wb") as file:
        file.truncate(1 << 40)
    return found


def test_what_is_no_regular_file_is_named(odd):
    """A-18."""
    told = {}
    for kind, path in odd.items():
        with pytest.raises(OSError) as raised:  # noqa: PT011 (the table below has the texts)
            limits.within(read_foreign, path)
        told[kind] = raised.value.strerror
        assert raised.value.filename in (None, path)
    assert told == {
        "pipe": "it is not a regular file but a pipe (FIFO)",
        "device": "it is not a regular file but a device",
        "directory": "Is a directory",
        "socket": "it is not a regular file but a socket",
        "link": "Too many levels of symbolic links",
        "large": "it is larger than 16 MiB",
    }


def test_a_file_of_the_largest_size_is_read_and_one_byte_more_is_not(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * (1 << 20))
    assert read_foreign(str(path), 1 << 20) == b"x" * (1 << 20)
    path.write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(OSError, match="it is larger than 1 MiB"):
        read_foreign(str(path), 1 << 20)


def test_a_file_that_has_no_size_of_its_own_is_read_up_to_the_limit():
    """Files below /proc have the size 0."""
    assert b"Name:" in read_foreign("/proc/self/status")


def test_a_path_that_is_replaced_by_a_pipe_meanwhile_does_not_wait(odd, monkeypatch, tmp_path):
    """The kind is checked on the opened file too."""
    plain = os.stat(__file__)
    monkeypatch.setattr(os, "stat", lambda *_, **__: plain)
    with pytest.raises(NotRegular):
        limits.within(read_foreign, odd["pipe"])
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        with pytest.raises(NotRegular):
            limits.within(read_foreign, odd["pipe"])
    assert len(os.listdir("/dev/fd")) == before


def test_a_link_is_refused_if_it_must_not_be_followed(tmp_path):
    (tmp_path / "link").symlink_to(__file__)
    with pytest.raises(NotRegular, match="a link"):
        open_foreign(str(tmp_path / "link"), follow=False)
    open_foreign(str(tmp_path / "link")).close()


def test_a_null_byte_in_a_path_is_an_error_of_the_file():
    with pytest.raises(OSError, match="null byte"):
        read_foreign("a\0b")


def test_a_pipe_that_a_shell_has_opened_is_read_if_the_user_names_it():
    """`--lock <(command)`: bounded too."""
    for size, wanted in ((10, b"x" * 10), (LARGEST + 1, "larger than")):
        with limits.Popen(["head", "-c", str(size), "/dev/zero"], stdout=subprocess.PIPE) as child:
            path = f"/dev/fd/{child.stdout.fileno()}"
            with pytest.raises(NotRegular):
                limits.within(read_foreign, path)
            if isinstance(wanted, bytes):
                assert limits.within(lambda path=path: read_foreign(path, named=True)) == b"\0" * size
            else:
                with pytest.raises(OSError, match=wanted):
                    limits.within(lambda path=path: read_foreign(path, named=True))
            child.kill()


def test_standard_input_is_read_if_the_user_names_it():
    """`cat waivers.toml | mcpspy check CAPTURE --waivers /dev/stdin`."""
    program = "from mcpspy.foreign_file import read_foreign; print(read_foreign('/dev/stdin', named=True))"
    done = limits.run([sys.executable, "-c", program], input=b"piped", capture_output=True, check=True)
    assert done.stdout == b"b'piped'\n"


def test_a_named_pipe_in_a_directory_is_refused_even_if_the_user_names_it(odd):
    with pytest.raises(NotRegular):
        limits.within(lambda: read_foreign(odd["pipe"], named=True))


def env_file(path):
    """Check a server with this envFile as `doctor` does."""
    found = Found(BY_ID["cursor"], BY_ID["cursor"].places[0], __file__)
    here = places.Machine.here()
    server = Server(found, "x", "x", ["true"], env_file=path)
    raise ConfigError(str([check.text for check in checks.of_server(server, here, named=True)]))


READERS = {
    "a configuration of a client": apply.load,
    "an envFile": env_file,
    "a lock file": lock.read,
    "expectations": expectations.read,
    "a gate file": lambda path: gate_file.compile_file(path, "stdio"),
    "waivers": waivers.read,
    "settings of a replay": settings.read,
    "an import": lambda path: forms.bring(path, {}),
    "a capture": Capture,
    "a capture that grows": lambda path: write_with_sessions(path, [], f"{path}.new"),
    "certificates": authority.certificates,
    "certificates of a server": lambda path: Upstream(Address("https://localhost"), Access(ca=path)),
}


@each("name, read", READERS.items(), ids=lambda case: case[0])
@pytest.mark.parametrize("kind", ["pipe", "device", "directory"])
def test_every_reader_refuses_what_is_no_file_at_once(odd, kind, name, read):
    """A-18: the error has the path and what is there."""
    with pytest.raises((McpspyError, OSError)) as raised:
        limits.within(read, odd[kind])
    wanted = {"pipe": "a pipe (FIFO)", "device": "a device", "directory": "Is a directory"}[kind]
    assert wanted in str(raised.value)
    assert odd[kind] in str(raised.value)


@pytest.mark.parametrize("kind", ["pipe", "device", "directory"])
def test_a_reader_that_only_looks_does_not_wait_either(odd, kind, tmp_path, monkeypatch):
    """A-18: a launcher whose first line names an interpreter; a configuration that may name a route."""
    monkeypatch.setenv("HOME", str(tmp_path))
    os.chmod(odd["pipe"], 0o700)
    assert limits.within(checks.stale, [odd[kind]]) == ("" if kind == "pipe" else "no longer exists")
    routes.save({"x": routes.Route("http://localhost:1", {"cursor": (odd[kind],)})})
    assert limits.within(routes.routes_of, "cursor") == []


def test_a_working_tree_with_odd_files_does_not_stop_a_command(odd, tmp_path, monkeypatch):
    """A-18: the `.git` file of a directory, and the `commondir` that it leads to."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "linked").mkdir()
    (tmp_path / ".git").write_text("gitdir: linked\n")
    commondir = tmp_path / "linked" / "commondir"
    for target in (odd["pipe"], odd["device"], odd["large"], odd["directory"], odd["socket"]):
        commondir.unlink(missing_ok=True)
        commondir.symlink_to(target)
        assert limits.within(places.repository, str(tmp_path)) == ("", "")
    (tmp_path / ".git").unlink()
    os.mkfifo(tmp_path / ".git")
    assert limits.within(places.repository, str(tmp_path)) == ("", "")


@pytest.mark.parametrize("target", ["pipe", "device", "large"])
def test_discovered_configurations_do_not_stop_a_command(odd, tmp_path, target):
    """A-18: whatever `.cursor/mcp.json` is, the commands that look for clients end with a line about it."""
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").symlink_to(odd[target])
    environ = os.environ | {"HOME": str(tmp_path), "PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}
    for command in (("install",), ("install", "cursor", "--dry-run"), ("status",), ("doctor",)):
        done = limits.run(
            [sys.executable, "-m", "mcpspy", *command], cwd=tmp_path, env=environ, capture_output=True, check=False
        )
        assert b"mcp.json" in done.stdout + done.stderr
        assert b"Traceback" not in done.stderr


def test_the_key_of_the_user_is_replaced_by_a_temporary_one_if_it_is_a_pipe(tmp_path, monkeypatch):
    """A-18: `wrap` reads it while the server starts."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".mcpspy").mkdir(mode=0o700)
    os.mkfifo(tmp_path / ".mcpspy" / "key")
    assert len(limits.within(user_key.user_key)) == 32


def test_a_live_directory_with_odd_files_does_not_wait(odd, tmp_path):
    """A-18: a relay reads it while traffic passes."""
    place = live_directory(str(tmp_path / "capture.jsonl"), "ab")
    os.mkdir(place, 0o700)
    for number, path in enumerate(odd.values()):
        os.link(path, os.path.join(place, f"gates-{number}.json")) if not os.path.isdir(path) else None
        os.symlink(path, os.path.join(place, f"{number}.order.json"))
    gates, orders, faults = limits.within(LiveFolder(place).read)
    assert (gates, orders) == ([], [])
    assert all("order" in fault for fault in faults)


def test_a_similar_name_is_looked_for_in_a_part_of_a_large_directory(tmp_path):
    """A-18: a directory may have any number of files; comparing 100,000 names would take three seconds."""
    assert similar(str(tmp_path / "none")) == ""
    assert similar(str(tmp_path / "none" / "none")) == ""
    assert similar("a\0b") == ""
    (tmp_path / "capture.jsonl").touch()
    assert similar(str(tmp_path / "captur.jsonl")) == str(tmp_path / "capture.jsonl")
    for number in range(20_000):
        (tmp_path / f"20261129T0116Z-server-{number}-abcd.txt").touch()
    with limits.proportionate(0.4):
        similar(str(tmp_path / "20261129T0116Z-servr-1-abcd.jsonl"))
