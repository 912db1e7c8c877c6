"""Compressed captures in the sessions list and in viewers."""

import gzip
import math
from pathlib import Path

from mcpspy.browse.library import Library
from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture import copies
from mcpspy.capture.format import LOST
from mcpspy.conversation.counts import COUNTED
from tests.transcript import capture

SESSION = '= 2025-06-18\n> 1 tools/list\n< 1 = {"tools":[]}\n' + "".join(
    f'> {n} tools/call {{"name":"t{n * 7919 % 9973}"}}\n' for n in range(2, 99)
)


def listed(folder):
    library = Library([str(folder)])
    library.look()
    while library.grow(math.inf):
        pass
    return {Path(entry.path).name: entry for entry in library.entries}


def files(folder):
    path = capture(folder / "a.jsonl", SESSION)
    raw = Path(path).read_bytes()
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(raw))
    (folder / "c.jsonl.gz").write_bytes(gzip.compress(raw)[:-80])
    (folder / "d.jsonl.gz").write_bytes(gzip.compress(raw + b'{"kind":"later","t":0}\n' * (COUNTED // 20)))
    return path


def test_a_list_counts_what_is_compressed_but_not_too_much_of_it(tmp_path):
    files(tmp_path)
    found = listed(tmp_path)
    counts = {name: (it.counts.frames, it.uncounted, it.killed, it.live) for name, it in found.items()}
    plain = counts["a.jsonl"]
    assert plain == (102, False, False, False)
    assert counts["b.jsonl.gz"] == plain
    assert 50 < counts["c.jsonl.gz"][0] < 102
    assert counts["c.jsonl.gz"][1:] == (False, False, False), "its relay was not killed"
    assert counts["d.jsonl.gz"][1:] == (True, False, False)


def test_a_list_decompresses_no_more_than_it_counts(tmp_path, monkeypatch):
    files(tmp_path)
    monkeypatch.setattr(copies, "LARGEST", COUNTED + (1 << 20))
    assert listed(tmp_path)["d.jsonl.gz"].uncounted


def test_a_viewer_ends_with_the_gap(tmp_path):
    files(tmp_path)
    session = OpenCapture(str(tmp_path / "c.jsonl.gz"))
    while session.grow(1):
        pass
    assert session.state == "ended"
    assert LOST in session.index.record(session.index.rows[-1]).why
    session.close()
