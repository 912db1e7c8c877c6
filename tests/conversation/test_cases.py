"""Which response answers which request, and the revision of each message: `cases/`, in the form of `tests/cases.py`.

The outcome of a transcript is that of `tests.transcript.told`, with the revision of each message that has one.
"""

from pathlib import Path

import pytest

from tests import transcript
from tests.cases import check

FILES = sorted((Path(__file__).parent / "cases").glob("*.txt"))


def told(text, _):
    revisions = dict(line.split(" ") for line in transcript.revisions(text))
    known = {place: revision for place, revision in revisions.items() if revision != "unknown"}
    return [
        line + (f", {known[place]}" if (place := line.split(" ")[0]) in known else "") for line in transcript.told(text)
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_message_is_paired_like_this(path):
    check(path, told)
