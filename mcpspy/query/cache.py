"""The folders of queries: where the tables of captures are kept between two queries, and what one needs while it runs.

The folder of a capture is named after its id and path. In it is a folder for each state in which the capture was read:
the sizes and times of its files, whether it was live, and the version of mcpspy (another version may find other
things). A folder is created under a temporary name and renamed when it is complete. So no lock is needed, and a
complete folder never changes. A damaged folder, after a full disk or a crash, counts as missing. The two newest states
of a capture are kept, because another process may still read the older one. Folders of deleted captures are deleted.
The tables contain what the captures contain, so only the user can read the folders and files.

A query needs a folder for what does not fit into memory, and for a result file. It has a file that is locked while the
query runs, like a live capture. So the next query recognizes what a killed process has left, and deletes it: it can be
gigabytes.
"""

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from secrets import token_hex
from tempfile import mkdtemp

from mcpspy import __version__
from mcpspy.capture.format import is_live, take
from mcpspy.capture.location import STANDARD_INPUT, make_directory
from mcpspy.capture.reader import Capture
from mcpspy.errors import CaptureError, UsageError
from mcpspy.foreign_file import open_foreign, read_foreign
from mcpspy.query.tables import SCHEMA, TABLES

_KEPT = 2  # states of one capture that are kept
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,80}")
_PARTIAL = ".part"
_LONG = 86_400  # seconds after which the writer of an unfinished folder counts as killed
_SOURCE = "capture.path"  # the file with the path of the capture
_END = b"PAR1"  # the end of a Parquet file


@dataclass(slots=True)
class CapturedTables:
    """The tables of one capture in its current state."""

    capture: Capture
    id: str
    """The id in its header, or a hash of its path if there is none."""
    size: int
    """The size of its content, in bytes."""
    live: bool
    folder: str
    """The folder of its tables, which may not exist yet."""
    fresh: bool = field(init=False)
    """Whether the tables exist and are complete."""

    def __post_init__(self) -> None:
        self._look()

    def _look(self) -> None:
        self.fresh = all(_is_whole(self.file(table)) for table in TABLES)

    def file(self, table: str) -> str:
        """Return the file of a table."""
        return os.path.join(self.folder, f"{table}.parquet")

    @contextmanager
    def made(self) -> Iterator[str]:
        """Yield a folder for writing the tables. It becomes theirs when the block ends without an exception."""
        above = os.path.dirname(self.folder)
        made = f"{self.folder}.{token_hex(6)}{_PARTIAL}"
        try:
            make_directory(above)
            os.mkdir(made, 0o700)
            source = os.path.join(made, _SOURCE)
            with open(source, "wb", opener=partial(os.open, mode=0o600)) as file:
                file.write(os.fsencode(os.path.abspath(self.capture.path)))
            os.replace(source, os.path.join(above, _SOURCE))
            yield made
            self._look()
            if not self.fresh:
                shutil.rmtree(self.folder, ignore_errors=True)  # damaged
                with suppress(OSError):  # another process was faster
                    os.rename(made, self.folder)
        except OSError as error:
            raise UsageError(f"cannot write {error.filename or made}: {error.strerror or error}") from error
        finally:
            shutil.rmtree(made, ignore_errors=True)
        self.fresh = True
        _forget_older(above)


def root() -> str:
    """Return the folder of all cached tables."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    cache = given if os.path.isabs(given) else os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "mcpspy", "sql", f"v{SCHEMA}")


def tables_of(path: str, temporary: str = "") -> CapturedTables:
    """Return the tables of the capture at `path` in its current state. Raises CaptureError.

    Those of standard input, which cannot be read again, are in the folder `temporary`, which is deleted at the end.
    """
    capture = Capture(path)
    live = capture.live
    try:
        states = [os.stat(part) for part in capture.paths]
    except OSError as error:
        raise CaptureError(f"cannot read {path}: {error.strerror}") from error
    if path == STANDARD_INPUT:
        folder = os.path.join(temporary, "standard-input", "tables")
        return CapturedTables(capture, capture.header.id or path, capture.size, live, folder)
    place = os.path.realpath(path)
    known = capture.header.id or _digest(place)
    known_by = [(it.st_size, it.st_mtime_ns, it.st_ctime_ns) for it in states]
    state = _digest(repr((known_by, live, __version__)))
    folder = os.path.join(root(), _digest(f"{known}\0{place}"), state)
    return CapturedTables(capture, known, capture.size, live, folder)


def file_name(capture_id: str) -> str:
    """Return the name for files of a capture among those of others: its id, if that is a valid file name."""
    return capture_id if _PLAIN.fullmatch(capture_id) else _digest(capture_id)


def forget_gone() -> None:
    """Delete the tables of captures that no longer exist."""
    for folder in _folders(root()):
        try:
            path = read_foreign(os.path.join(folder, _SOURCE))
        except OSError:
            path = b""
        if path and not os.path.lexists(path):  # without a path, another process is creating it
            shutil.rmtree(folder, ignore_errors=True)


def _is_whole(path: str) -> bool:
    """Return whether a file ends like a Parquet file."""
    try:
        with open_foreign(path) as file:
            file.seek(-2 * len(_END), os.SEEK_END)
            return file.read().endswith(_END)
    except OSError:
        return False


def _forget_older(above: str) -> None:
    folders = sorted(_folders(above), key=_changed)
    unfinished = [folder for folder in folders if folder.endswith(_PARTIAL)]
    whole = [folder for folder in folders if folder not in unfinished]
    killed = [folder for folder in unfinished if _changed(folder) < time.time() - _LONG]
    for folder in (*whole[:-_KEPT], *killed):
        shutil.rmtree(folder, ignore_errors=True)


def _folders(above: str) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(above) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=12).hexdigest()


_LOCK = "lock"
_NEW = 60  # seconds in which a new folder may have no lock yet


@contextmanager
def scratch() -> Iterator[str]:
    """Yield a folder that only the user can read, and delete it at the end. Raises UsageError."""
    above = os.path.join(root(), "running")
    try:
        make_directory(above)
        _forget_killed(above)
        folder = mkdtemp(dir=above)
    except OSError as error:
        raise UsageError(f"cannot write {error.filename or above}: {error.strerror or error}") from error
    try:
        with open(os.path.join(folder, _LOCK), "xb") as lock:
            take(lock.fileno())
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _forget_killed(above: str) -> None:
    """Delete the folders of processes that ended without deleting them."""
    for entry in os.scandir(above):
        if entry.stat(follow_symlinks=False).st_mtime < time.time() - _NEW and not _in_use(entry.path):
            shutil.rmtree(entry.path, ignore_errors=True)


def _in_use(folder: str) -> bool:
    try:
        with open_foreign(os.path.join(folder, _LOCK)) as lock:
            return is_live(lock.fileno(), without_locks=True)
    except OSError:
        return False
