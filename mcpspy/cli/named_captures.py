"""The captures that a command line names, and the file that a report goes to."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from mcpspy.capture.location import SUFFIX
from mcpspy.capture.reader import Capture
from mcpspy.errors import CaptureError, NotACapture, UsageError
from mcpspy.text import printable


def named_captures(named: Sequence[str]) -> Iterator[str]:
    """The captures that were named; of a directory those in it, by name. What is none there is skipped, and named."""
    for name in named:
        if not os.path.isdir(name):
            yield existing(name)
            continue
        try:
            found = sorted(entry for entry in os.listdir(name) if entry.endswith(SUFFIX))
        except OSError as error:
            raise CaptureError(f"cannot list {name}: {error.strerror}") from error
        captures = _captures([os.path.join(name, entry) for entry in found])
        if not captures:
            raise CaptureError(f"there is no capture (*{SUFFIX}) in {name}")
        yield from captures


def _captures(paths: Sequence[str]) -> list[str]:
    """The captures among some files, each by its first file. Raises CaptureError where one cannot be read."""
    found, continued = [], set()
    for path in paths:
        try:
            if os.path.isdir(path):
                raise NotACapture(f"{path} is a directory")
            continued.update(Capture(path).paths[1:])
        except NotACapture as error:
            print(f"mcpspy: skipped: {printable(str(error), 1000)}", file=sys.stderr)
        else:
            found.append(path)
    return [path for path in found if path not in continued]


def existing(path: str) -> str:
    """The path, if something is there. Raises CaptureError with the nearest name in its directory."""
    if os.path.lexists(path):
        return path
    folder, name = os.path.split(path)
    try:
        near = get_close_matches(name, os.listdir(folder or "."), n=1)
    except OSError:
        near = []
    hint = f"; the nearest: {os.path.join(folder, near[0])}" if near else ""
    raise CaptureError(f"cannot read {path}: no such file{hint}")


def refuse_to_overwrite(option: str, output: str, read: Sequence[str]) -> None:
    """Raises UsageError where the report what is written would take the place of what is read."""
    for path in read:
        if os.path.exists(output) and os.path.exists(path) and os.path.samefile(output, path):
            raise UsageError(f"{option} {output} is the file {path} that is read here; give another one")


def write_report(chunks: Iterable[str], output: str | None) -> None:
    """Print a report, or write it to the file `output`."""
    if output is None:
        sys.stdout.writelines(chunks)
        return
    try:
        with open(output, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(chunks)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from error
