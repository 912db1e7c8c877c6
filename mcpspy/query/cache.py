"""Where the tables of captures are kept between two queries: one folder for each state of each capture.

A folder is named after the id and the path of a capture, and the one in it after what the capture was when it was read:
the sizes and times of its files, whether it was live, and which version of mcpspy read it (another may find other
things in it). It is made under another name and renamed when it is whole, so there is nothing to lock, and a folder
that is there is never changed. One that is damaged, by a disk that was full or a machine that went down, counts as not
there. Of one capture the newest two stay, since another process may be reading the older one; what belongs to captures
that are gone is deleted.

The tables hold what the captures hold, so folders and files are readable by the user alone.
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

from mcpspy import __version__
from mcpspy.capture.location import make_directory
from mcpspy.capture.reader import Capture
from mcpspy.errors import CaptureError, UsageError
from mcpspy.query.tables import SCHEMA, TABLES

_KEPT = 2  # states of one capture
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,80}")
_PARTIAL = ".part"
_LONG = 86_400  # seconds after which who writes a folder is taken to have been killed
_SOURCE = "capture.path"  # the file that says which capture a folder is of
_END = b"PAR1"  # of a Parquet file


@dataclass(slots=True)
class CapturedTables:
    """The tables of one capture, as it is now."""

    capture: Capture
    id: str
    """That of its header; of its path where it has none."""
    size: int
    """Bytes of all its files."""
    live: bool
    folder: str
    """Where its tables are, or will be."""
    fresh: bool = field(init=False)
    """They are there, and whole."""

    def __post_init__(self) -> None:
        self._look()

    def _look(self) -> None:
        self.fresh = all(_is_whole(self.file(table)) for table in TABLES)

    def file(self, table: str) -> str:
        """The file of a table."""
        return os.path.join(self.folder, f"{table}.parquet")

    @contextmanager
    def made(self) -> Iterator[str]:
        """A folder to write the tables to, that becomes theirs once the block has ended without an exception."""
        above = os.path.dirname(self.folder)
        made = f"{self.folder}.{token_hex(6)}{_PARTIAL}"
        try:
            make_directory(above)
            with open(os.path.join(above, _SOURCE), "wb", opener=partial(os.open, mode=0o600)) as file:
                file.write(os.fsencode(os.path.abspath(self.capture.path)))
            os.mkdir(made, 0o700)
            yield made
            self._look()
            if not self.fresh:
                shutil.rmtree(self.folder, ignore_errors=True)  # damaged
                with suppress(OSError):  # another process was quicker
                    os.rename(made, self.folder)
        except OSError as error:
            raise UsageError(f"cannot write {error.filename or made}: {error.strerror or error}") from error
        finally:
            shutil.rmtree(made, ignore_errors=True)
        self.fresh = True
        _forget_older(above)


def root() -> str:
    """The folder of all tables that are kept."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    cache = given if os.path.isabs(given) else os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "mcpspy", "sql", f"v{SCHEMA}")


def tables_of(path: str) -> CapturedTables:
    """The tables of the capture at `path`, as it is now. Raises CaptureError."""
    capture = Capture(path)
    live = capture.live
    try:
        states = [os.stat(part) for part in capture.paths]
    except OSError as error:
        raise CaptureError(f"cannot read {path}: {error.strerror}") from error
    place = os.path.realpath(path)
    known = capture.header.id or _digest(place)
    known_by = [(it.st_size, it.st_mtime_ns, it.st_ctime_ns) for it in states]
    state = _digest(repr((known_by, live, __version__)))
    folder = os.path.join(root(), _digest(f"{known}\0{place}"), state)
    return CapturedTables(capture, known, sum(it.st_size for it in states), live, folder)


def file_name(capture_id: str) -> str:
    """The name of the files of a capture among those of others: its id, where that can be the name of a file."""
    return capture_id if _PLAIN.fullmatch(capture_id) else _digest(capture_id)


def forget_gone() -> None:
    """Delete the tables of captures that are not there any more."""
    for folder in _folders(root()):
        try:
            with open(os.path.join(folder, _SOURCE), "rb") as file:
                path = file.read()
        except OSError:
            path = b""
        if path and not os.path.lexists(path):  # without a path another process is making it
            shutil.rmtree(folder, ignore_errors=True)


def _is_whole(path: str) -> bool:
    """Whether a file ends as a Parquet file does."""
    try:
        with open(path, "rb") as file:
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
