"""The captures of a directory: which there are, which are live, and deleting the others."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from mcpspy.capture.location import SUFFIX
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Header
from mcpspy.errors import CaptureError
from mcpspy.text import plural

try:
    import fcntl
except ImportError:  # Windows: a file that is open there cannot be deleted anyway
    fcntl = None  # type: ignore[assignment]


_NAMED = 3  # files that are named in a sentence


@dataclass(frozen=True, slots=True)
class Listed:
    """One capture of a directory."""

    capture: Capture
    size: int
    """Bytes of all its files."""
    live: bool
    started: float
    """Seconds since the epoch."""
    ended: float
    """When it was written last; infinite while it is live."""

    @property
    def header(self) -> Header:
        """Its header."""
        return self.capture.header


Refused = dict[str, str]
"""Why files cannot be read as captures, by their paths."""


def captures(folder: str, refused: Refused | None = None) -> list[Listed]:
    """The captures in `folder`, live ones first, then the newest; what is not one is passed over, into `refused`."""
    found = list(_captures(folder, {} if refused is None else refused))
    joined = {path for _, paths in found for path in paths[1:]}
    alone = [listed for listed, _ in found if listed.capture.path not in joined]
    return sorted(alone, key=lambda listed: (not listed.live, -listed.started))


def omitted(refused: Refused) -> str:
    """One sentence about files that are not shown as captures; empty if there are none."""
    if not refused:
        return ""
    paths = sorted(refused)
    reasons = [refused[path].replace(path, os.path.basename(path)) for path in paths[:_NAMED]]
    if len(paths) > _NAMED:
        reasons.append(f"and {len(paths) - _NAMED} more")
    return f"{plural(len(paths), 'file')} not shown: {'; '.join(reasons)}"


def _captures(folder: str, refused: Refused) -> Iterator[tuple[Listed, list[str]]]:
    """The captures in `folder` with the paths of their files, those among them that go on from another one too."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CaptureError(f"cannot list {folder}: {error.strerror}") from error
    for name in names:
        path = os.path.join(folder, name)
        if not name.endswith(SUFFIX) or not os.path.isfile(path):
            continue
        try:
            capture = Capture(path)
            started = datetime.fromisoformat(capture.header.started).timestamp()
            paths = capture.paths
            size = sum(map(os.path.getsize, paths))
            live = capture.live
            ended = math.inf if live else os.path.getmtime(paths[-1])
            yield Listed(capture, size, live, started, ended), paths
        except CaptureError as error:
            if os.path.lexists(path):  # not deleted meanwhile
                refused[path] = str(error)
        except OSError:  # deleted meanwhile
            continue


def delete(listed: Listed) -> bool:
    """Delete a capture with all its files, unless it is live by now; tells whether it did."""
    try:
        first, *others = listed.capture.paths
    except CaptureError:  # it was deleted
        return False
    return not listed.capture.live and all(map(_delete, [*others, first]))


def _delete(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        if fcntl:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError as error:
        raise CaptureError(f"cannot delete {path}: {error.strerror}") from error
    finally:
        os.close(fd)
    return True
