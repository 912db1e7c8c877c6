"""What commands that write a report share: the file that it goes to, and notices about waivers."""

import io
import os
import sys
from collections.abc import Iterable, Sequence

from mcpspy.cli.output import say
from mcpspy.errors import UsageError
from mcpspy.output_file import OutputBytes, WriteError
from mcpspy.report.waivers import Waived


def refuse_to_overwrite(option: str, output: str, read: Sequence[str]) -> None:
    """Raise UsageError if the output would overwrite a file that is read."""
    for path in read:
        if os.path.exists(output) and os.path.exists(path) and os.path.samefile(output, path):
            raise UsageError(f"{option} {output} is the file {path} that is read here; give another one")


def write_report(chunks: Iterable[str], output: str | None) -> None:
    """Print a report, or write it to the file `output`."""
    if output is None:
        sys.stdout.writelines(chunks)
        return
    try:
        raw = OutputBytes(output, "wb")
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from error
    try:
        with io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", newline="\n") as file:
            file.writelines(chunks)
    except WriteError as error:
        if os.path.isfile(output):  # an incomplete report could be taken for a complete one
            os.unlink(output)
        raise UsageError(f"cannot write {output}: {error.strerror}") from error


def say_unused(waived: Waived) -> None:
    """Name the waivers that have expired, and those that nothing matches."""
    for waiver in waived.expired:
        say(f"the waiver has expired on {waiver.expires}: {waiver}")
    for waiver in waived.stale:
        say(f"the waiver is stale, no finding matches it: {waiver}")
