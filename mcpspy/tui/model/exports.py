"""An export as a person asks for it in the command line or the palette: which captures, which rows, into which file.

It knows no screen. The work is done by `written`, which takes as long as reading the captures does and belongs into a
thread.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, count

from mcpspy.capture.reader import Capture
from mcpspy.errors import UsageError
from mcpspy.exporters import FORMATS, export
from mcpspy.exporters.source import ExportSource
from mcpspy.filters import parse
from mcpspy.output_file import output_file
from mcpspy.tui.model.commands import nearest
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.model.timeline import OpenCapture


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What is to be written."""

    form: str
    """The name of the format."""
    paths: tuple[str, ...]
    """The captures."""
    filter: str
    """As it was typed; empty for all rows."""
    path: str
    """The file."""


def requested(
    argument: str, session: OpenCapture | Merged, selected: OpenCapture | Merged, filtered: str
) -> ExportRequest:
    """The export that `FORMAT [FILE]` stands for; without a file it gets a name that is free in this directory.

    Of several sessions a format that holds one gets the `selected` one. Raises UsageError.
    """
    form, _, file = argument.partition(" ")
    if form not in FORMATS:
        what = f"no format {form!r}" if form else "export needs a format"
        raise UsageError(f"{what}; {nearest(form, list(FORMATS))}")
    kind = FORMATS[form]
    shown = session if kind.joins else selected
    paths = [it.path for it in shown.sessions] if isinstance(shown, Merged) else [shown.path]
    path = os.path.expanduser(file.strip()) or _free(ExportSource(Capture(paths[0])).name, kind.suffix)
    if os.path.lexists(path):
        raise UsageError(f"{path} exists; give another name")
    export(form, [ExportSource(Capture(it)) for it in paths])  # says so if the format cannot hold them
    return ExportRequest(form, tuple(paths), filtered, path)


def written(request: ExportRequest, read: Callable[[int], None]) -> None:
    """Write the file; `read` gets the number of bytes of each chunk that was read, and may raise to end the work.

    Raises McpspyError; then nothing is left of the file.
    """
    sources = []
    for path in request.paths:
        capture = Capture(path)
        wants = parse(request.filter, capture.header.started) if request.filter else None
        sources.append(ExportSource(capture, wants, read))
    with output_file(request.path, replace=False) as file:
        file.writelines(export(request.form, sources))


def _free(name: str, suffix: str) -> str:
    """The first name in this directory that is not taken."""
    names = (f"{name}{number}{suffix}" for number in chain([""], (f"-{n}" for n in count(2))))
    return next(it for it in names if not os.path.lexists(it))
