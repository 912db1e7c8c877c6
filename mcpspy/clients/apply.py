"""Changing a configuration on the disk, and keeping its original.

The rules. A configuration is replaced as a whole and atomically, by a file with the same mode and owner. If it is a
symbolic link, its target is replaced, not the link. Before that, the old content is kept in `~/.mcpspy/install`, which
only the user can read, because configurations contain secrets. So if mcpspy is killed at any point, the configuration
has its old or its new content, and the original exists before it is needed. Changes that another program makes
meanwhile are never overwritten.
"""

import glob
import hashlib
import json
import os
import shutil
import stat
from dataclasses import dataclass

from mcpspy.capture.location import home, make_directory
from mcpspy.errors import ConfigError
from mcpspy.foreign_file import read_foreign
from mcpspy.json_values import parsed

LARGEST = 64 << 20
"""Maximum size in bytes; a larger file is not a configuration."""


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration as it was read."""

    path: str
    """The path that the client uses."""
    real: str
    """The path with symbolic links resolved."""
    raw: bytes
    text: str


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered of a configuration that mcpspy changed."""

    original: bytes
    """Its bytes before the first edit by mcpspy."""
    left: str
    """A hash of its bytes after the latest edit by mcpspy."""

    def unchanged(self, config: Config) -> bool:
        """Return whether no other program has changed it since."""
        return self.left == _hash(config.raw)


def load(path: str) -> Config:
    """Read a configuration. Raises ConfigError."""
    real = os.path.realpath(path)
    try:
        raw = read_foreign(real, LARGEST)
        return Config(path, real, raw, raw.decode())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"cannot read {path}: line {line}: not UTF-8") from error


def check_writable(config: Config) -> None:
    """Raise ConfigError if the configuration must not, or cannot, be replaced."""
    try:
        status = os.stat(config.real)
    except OSError as error:
        raise ConfigError(f"cannot change {config.path}: {error.strerror}") from error
    folder = os.path.dirname(config.real)
    if not status.st_mode & 0o222 or not os.access(config.real, os.W_OK):
        raise ConfigError(f"cannot change {config.path}: it is read-only")
    if not os.access(folder, os.W_OK):
        raise ConfigError(f"cannot change {config.path}: the directory {folder} is read-only")
    if status.st_nlink > 1:
        raise ConfigError(
            f"cannot change {config.path}: it has other names (hard links), which would keep the old text"
        )


def replace(config: Config, content: bytes) -> None:
    """Replace the configuration by `content`. Raises ConfigError if it has changed since it was read."""
    try:
        draft = _write(config.real, content)
        try:
            _like(draft, config.real)
            if load(config.path).raw != config.raw:
                raise ConfigError(f"{config.path} was changed by another program just now; try again")
            os.replace(draft, config.real)
        except BaseException:
            os.unlink(draft)
            raise
    except OSError as error:
        raise ConfigError(f"cannot change {config.path}: {error.strerror}") from error


def remember(config: Config, original: bytes, content: bytes) -> None:
    """Keep the original of a configuration before `content` replaces it. Raises ConfigError."""
    path = _memory_path(config)
    write_private(f"{path}.original", original)
    write_private(f"{path}.json", json.dumps({"path": config.real, "left": _hash(content)}).encode() + b"\n")


def recall(config: Config) -> Memory | None:
    """Return what is remembered of a configuration; None if there is nothing, or if it is unusable."""
    path = _memory_path(config)
    try:
        return Memory(read_foreign(f"{path}.original", LARGEST), parsed(read_foreign(f"{path}.json"))["left"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def forget(config: Config) -> None:
    """Delete what is remembered of a configuration that contains no edit by mcpspy any more."""
    for ending in (".json", ".original"):
        try:
            os.unlink(_memory_path(config) + ending)
        except FileNotFoundError:
            continue


def write_private(path: str, content: bytes) -> None:
    """Write `content` to `path` atomically, readable only by the user, and create directories. Raises ConfigError."""
    try:
        make_directory(os.path.dirname(path))
        draft = _write(path, content)
        try:
            os.replace(draft, path)
        except OSError:
            os.unlink(draft)
            raise
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def _write(path: str, content: bytes) -> str:
    """Write a new file beside `path`, readable only by the user, and flush it to the disk; return its path."""
    _sweep(path)
    draft = f"{path}.mcpspy-{os.getpid()}"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(draft)
        raise
    return draft


def _sweep(path: str) -> None:
    """Delete the drafts of `path` that killed processes left."""
    for draft in glob.glob(f"{glob.escape(path)}.mcpspy-*"):
        pid = draft.rpartition("-")[2]
        if pid.isdecimal() and (int(pid) == os.getpid() or not _lives(int(pid))):
            os.unlink(draft)


def _lives(pid: int) -> bool:
    if os.name != "posix":  # on other systems, os.kill(pid, 0) would kill it
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _like(draft: str, real: str) -> None:
    """Give `draft` the mode, the attributes and the owner of the file that it will replace."""
    shutil.copystat(real, draft)
    os.utime(draft)
    there, here = os.stat(real), os.stat(draft)
    if (there.st_uid, there.st_gid) != (here.st_uid, here.st_gid) and hasattr(os, "chown"):
        os.chown(draft, there.st_uid, there.st_gid)
        os.chmod(draft, stat.S_IMODE(there.st_mode))  # a change of owner removes set-id bits


def _memory_path(config: Config) -> str:
    key = hashlib.sha256(os.fsencode(config.real)).hexdigest()[:16]
    return os.path.join(home(), "install", f"{os.path.basename(config.real)}-{key}")


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
