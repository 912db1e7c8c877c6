"""The targets of a command line: captures, directories of captures, and filters for their rows."""

import os
from collections.abc import Iterator, Sequence

from mcpspy.capture.listing import Refused, newest, omitted
from mcpspy.capture.location import PACKED, STANDARD_INPUT, SUFFIX, SUFFIXES, directory, shown
from mcpspy.capture.reader import Capture
from mcpspy.cli.output import explain, say
from mcpspy.errors import CaptureError, FilterError, NewerFormat, NotACapture, UsageError
from mcpspy.filters import Filter, parse
from mcpspy.foreign_file import similar
from mcpspy.text import printable

Skipped = tuple[type[CaptureError], ...]


def readable_paths(named: Sequence[str]) -> Iterator[str]:
    """Yield the same as `capture_paths`, but in directories also skip captures of a later mcpspy: for counts."""
    return capture_paths(named, (NotACapture, NewerFormat))


def capture_paths(named: Sequence[str], skipped: Skipped = (NotACapture,)) -> Iterator[str]:
    """Yield the named captures, and the captures in named directories, sorted by name within a directory.

    In directories, files that fail with an error in `skipped` are skipped, with a notice on stderr.
    """
    for name in named:
        if name == STANDARD_INPUT or not os.path.isdir(name):
            yield existing_path(name)
            continue
        try:
            found = sorted(entry for entry in os.listdir(name) if entry.endswith(SUFFIXES))
        except OSError as error:
            raise CaptureError(f"cannot list {name}: {error.strerror}") from error
        paths = _captures([os.path.join(name, entry) for entry in found], skipped)
        if not paths:
            raise CaptureError(f"there is no capture (*{SUFFIX}) in {name}")
        yield from paths


def _captures(paths: Sequence[str], skipped: Skipped) -> list[str]:
    """Return the captures among some files, each by its first file. Raises CaptureError if one cannot be read."""
    found, continued = [], set()
    for path in paths:
        try:
            if os.path.isdir(path):
                raise NotACapture(f"{path} is a directory")
            continued.update(Capture(path).paths[1:])
        except skipped as error:
            say(f"skipped: {error}")
        else:
            found.append(path)
    return [path for path in found if path not in continued]


def newest_capture() -> str:
    """Return the capture in the capture directory that started last.

    Its name, and newer files that are not captures, are printed to stderr.
    """
    folder = directory(None, os.environ)
    refused: Refused = {}
    found = newest(folder, refused)
    if found is None:
        advice = "'mcpspy wrap -- COMMAND' records one, 'mcpspy demo' a sample"
        raise CaptureError("; ".join(filter(None, [f"no captures in {folder}", omitted(refused), advice])))
    if passed := omitted({path: why for path, why in refused.items() if _modified(path) >= found.started}):
        say(passed)
    say(f"newest capture: {found.capture.path}")
    return found.capture.path


def _modified(path: str) -> float:
    try:
        return os.path.getmtime(path)
    except OSError:  # the file was deleted meanwhile
        return 0.0


def existing_path(path: str) -> str:
    """Return the path if it exists or is standard input. Raises CaptureError with the nearest name in its directory."""
    if path == STANDARD_INPUT or os.path.lexists(path):
        return path
    near = similar(path)
    hint = f"; did you mean {near}?" if near else ""
    raise CaptureError(f"cannot read {path}: no such file{hint}")


def is_file_of(path: str, capture: Capture) -> bool:
    """Return whether a path is a file of a capture, which output must not overwrite."""
    return os.path.exists(path) and any(os.path.samefile(path, part) for part in capture.paths)


def refuse_to_follow(path: str) -> None:
    """Raise UsageError for `--follow` with a capture to which nobody adds."""
    if Capture(path).copied:
        what = f"{shown(path)} is read as a copy, which does not grow"
        raise UsageError(f"{what}: --follow needs the file that a relay writes")


def parsed_filter(text: str, started: str) -> Filter:
    """Parse the filter of the command line; the error shows the position of a mistake."""
    try:
        return parse(text, started)
    except FilterError as error:
        before = len(printable(text[: error.column - 1], 2000))
        explain(f"  {text}", f"  {' ' * before}^")
        raise


def refuse_new(new: str | None, capture: str) -> None:
    """Raise UsageError before anything is sent if the new session cannot be written to the file of `-o`."""
    if new and new.endswith(PACKED):
        _refuse_to_replace(new)
    if new and is_file_of(new, Capture(capture)):
        raise UsageError("-o would overwrite the capture before it is compared; --update accepts the new session")
    if new and not os.path.isdir(os.path.dirname(new) or "."):
        raise UsageError(f"cannot write a capture to {new}: there is no such directory")


def _refuse_to_replace(path: str) -> None:
    """Raise UsageError before the server starts if the new session could not be compressed into a file."""
    if os.path.lexists(path):
        Capture(path)  # raises if it is another file
    folder = os.path.dirname(path) or "."
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {path}: there is no directory {folder}, or it is not writable")
