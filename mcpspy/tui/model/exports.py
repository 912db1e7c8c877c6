"""Exports requested in the command line or the palette: which captures, which rows, into which file.

Sharing is an export as an HTML page without secrets (`mcpspy.sharing`).

The module has no screen. `written` does the work: call it in a thread, because it reads the whole captures.
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
    """The captures, rows, format and file of an export."""

    form: str
    """The name of the format, or SHARE for a page."""
    paths: tuple[str, ...]
    """The captures."""
    filter: str
    """The filter as typed; empty for all rows."""
    path: str
    """The file to write."""


SHARE = "share"
"""Used in place of a format name for the page that `mcpspy share` writes."""


def requested(
    argument: str, session: OpenCapture | Merged, selected: OpenCapture | Merged, filtered: str
) -> ExportRequest:
    """Return the export that `FORMAT [FILE]` requests; without a file, choose an unused name in this directory.

    If the format can hold only one of several sessions, the `selected` one is exported. Raises UsageError.
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
        export(form, [ExportSource(Capture(it)) for it in paths])  # raises if the format cannot hold them
    return ExportRequest(form, tuple(paths), filtered, path)


def written(request: ExportRequest, read: Callable[[int], None]) -> str:
    """Write the file, and return a sentence about the result.

    `read` is called with the number of bytes of each chunk that is read, and may raise to stop the work. Raises
    McpspyError; in that case the file is removed.
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
    """Write the page of a capture. Returns a message about it for the user."""
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
    """Return the first unused name in this directory."""
    names = (f"{name}{number}{suffix}" for number in chain([""], (f"-{n}" for n in count(2))))
    return next(it for it in names if not os.path.lexists(it))
