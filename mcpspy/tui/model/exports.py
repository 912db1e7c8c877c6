"""An export as a person asks for it in the command line or the palette: which captures, which rows, into which file.

To share is to export as an HTML page without secrets (`mcpspy.sharing`).

It knows no screen. The work is done by `written`, which takes as long as reading the captures does and belongs into a
thread.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, count

from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture.reader import Capture
from mcpspy.errors import UsageError
from mcpspy.exporters import FORMATS, export
from mcpspy.exporters.source import ExportSource
from mcpspy.filters import Filter, parse
from mcpspy.output_file import output_file
from mcpspy.sharing.page.writer import is_too_large, refuse_too_large, scrubbed, write_page
from mcpspy.sharing.scrub import Scrub, ScrubOptions
from mcpspy.text import plural
from mcpspy.tui.model.commands import nearest
from mcpspy.tui.model.merged import Merged


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What is to be written."""

    form: str
    """The name of the format, or SHARE."""
    paths: tuple[str, ...]
    """The captures."""
    filter: str
    """As it was typed; empty for all rows."""
    path: str
    """The file."""


SHARE = "share"
"""In place of a format: the page that `mcpspy share` writes."""


def requested(
    argument: str, session: OpenCapture | Merged, selected: OpenCapture | Merged, filtered: str
) -> ExportRequest:
    """The export that `FORMAT [FILE]` means; without a file it gets a name that is free in this directory.

    Of several sessions a format that holds one gets the `selected` one. Raises UsageError.
    """
    form, _, file = argument.partition(" ")
    if form != SHARE and form not in FORMATS:
        what = f"no format {form!r}" if form else "export needs a format"
        raise UsageError(f"{what}; {nearest(form, list(FORMATS))}")
    shown = session if form != SHARE and FORMATS[form].joins else selected
    paths = [it.path for it in shown.sessions] if isinstance(shown, Merged) else [shown.path]
    suffix = ".html" if form == SHARE else FORMATS[form].suffix
    path = os.path.expanduser(file.strip()) or _free(ExportSource(Capture(paths[0])).name, suffix)
    if os.path.lexists(path):
        raise UsageError(f"{path} exists; give another name")
    if form != SHARE:
        export(form, [ExportSource(Capture(it)) for it in paths])  # says so if the format cannot hold them
    return ExportRequest(form, tuple(paths), filtered, path)


def written(request: ExportRequest, read: Callable[[int], None]) -> str:
    """Write the file, and tell in a sentence what became of it.

    `read` gets the number of bytes of each chunk that was read, and may raise to end the work. Raises McpspyError; then
    nothing is left of the file.
    """
    where = os.path.abspath(request.path)
    if request.form == SHARE:
        return f"shared as {where}; {_share(request, read)}"
    with output_file(request.path, replace=False) as file:
        file.writelines(export(request.form, [_source(path, request.filter, read) for path in request.paths]))
    return f"exported to {where}"


def _source(path: str, text: str, read: Callable[[int], None]) -> ExportSource:
    capture = Capture(path)
    return ExportSource(capture, _filter(capture, text), read)


def _filter(capture: Capture, text: str) -> Filter | None:
    return parse(text, capture.header.started) if text else None


def _share(request: ExportRequest, read: Callable[[int], None]) -> str:
    """Write the page of a capture; returns what a person has to know of it."""
    (path,) = request.paths
    capture = Capture(path)
    wanted = _filter(capture, request.filter)
    if wanted is None and is_too_large(capture):
        refuse_too_large(capture, None)
    scrub = Scrub(path, ScrubOptions(), read)
    with output_file(request.path, replace=False) as file:
        write_page(scrubbed(path, scrub, wanted), file, read)
    left = plural(len(scrub.leftovers), "word")
    doubt = f"{left} in it look random: read the page before you share it" if scrub.leftovers else "read it first"
    return f"{plural(len(scrub.replaced), 'value')} replaced; {doubt}"


def _free(name: str, suffix: str) -> str:
    """The first name in this directory that is not taken."""
    names = (f"{name}{number}{suffix}" for number in chain([""], (f"-{n}" for n in count(2))))
    return next(it for it in names if not os.path.lexists(it))
