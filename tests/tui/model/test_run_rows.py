"""A run is one row that can be unfolded."""

import os

import pytest

from mcpspy.browse.library import Library, chosen
from mcpspy.tui.model.run_rows import RunRows
from tests.transcript import WALL, abandon, begin, capture, record

SECOND = 1_000_000_000
RUN = 424242  # the pid of a client
HELLO = '> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"claude","version":"2"}}}'


@pytest.fixture
def found(tmp_path):
    """Read a directory with two runs and one more capture, and count their content."""
    for n, (name, ppid) in enumerate([("a", RUN), ("b", 7), ("c", RUN), ("d", 9), ("e", RUN), ("f", 9)]):
        capture(tmp_path / f"{name}.jsonl", HELLO, wall=WALL - n * SECOND, name=name, ppid=ppid, client_start=ppid)
    library = Library([str(tmp_path)])

    def found(words=""):
        library.look()
        while library.grow(0):
            pass
        return chosen(library.entries, words)

    return found


def shown(rows):
    return [(row.sign, "".join(it.header.name for it in row.captures)) for row in rows.rows]


def test_a_run_of_several_captures_is_one_row_until_it_is_unfolded(found):
    rows = RunRows()
    rows.choose(found())
    assert shown(rows) == [("▸", "ace"), (" ", "b"), ("▸", "df")]
    assert [it.header.name for it in rows.captures] == ["a", "c", "e", "b", "d", "f"]
    rows.unfold(rows.rows[0].run, unfold=True)
    assert shown(rows) == [("▾", "ace"), ("│", "a"), ("│", "c"), ("└", "e"), (" ", "b"), ("▸", "df")]
    assert rows.is_unfolded(rows.rows[1].run)
    rows.unfold_all(unfold=True)
    assert shown(rows)[-3:] == [("▾", "df"), ("│", "d"), ("└", "f")]
    rows.unfold_all(unfold=False)
    assert shown(rows) == [("▸", "ace"), (" ", "b"), ("▸", "df")]
    rows.choose([])
    assert rows.rows == rows.captures == []


def test_a_run_stays_unfolded_as_captures_come_and_go(found, tmp_path):
    rows = RunRows()
    rows.choose(found())
    rows.unfold(rows.rows[0].run, unfold=True)
    os.unlink(tmp_path / "c.jsonl")
    capture(tmp_path / "g.jsonl", "", wall=WALL + SECOND, name="g", ppid=RUN, client_start=RUN)
    rows.choose(found())
    assert shown(rows)[:4] == [("▾", "gae"), ("│", "g"), ("│", "a"), ("└", "e")]


def test_what_is_found_of_a_run_is_shown_as_a_run_or_alone(found):
    rows = RunRows()
    for words, expected in (("424242", ["ace"]), ("c.jsonl", ["c"])):
        rows.choose(found(words))
        assert [names for _, names in shown(rows)] == expected, words


def test_the_selected_row_is_found_again_or_the_one_of_its_run(found, tmp_path):
    rows = RunRows()
    rows.choose(found())
    run, alone = rows.rows[0].selected, rows.rows[1].selected
    assert [rows.place(run), rows.place(alone)] == [0, 1]
    rows.unfold(rows.rows[0].run, unfold=True)
    inside = rows.rows[2].selected
    assert [rows.place(run), rows.place(inside), rows.place(alone)] == [0, 2, 4]
    rows.unfold(rows.rows[0].run, unfold=False)
    assert rows.place(inside) == 0
    rows.choose(found("e.jsonl"))
    assert rows.place(run) == 0, "the capture that is left of it"
    assert rows.place(alone) is None
    assert rows.place(("", False)) is None


def test_a_run_is_summed_up(tmp_path, found):
    for name, text in (("x", "@700 > 1 tools/list"), ("y", "< | nonsense")):
        writer = begin(tmp_path / f"{name}.jsonl", wall=WALL, name="a", ppid=RUN, client_start=RUN)
        record(writer, text)
        abandon(writer)
    writer = begin(tmp_path / "live.jsonl", wall=WALL, name="l", ppid=9, client_start=9)
    rows = RunRows()
    rows.choose(found())
    live, run = (rows.rows[place].run for place in (0, 1))
    summary = run.summary()
    assert (summary.live, summary.client, summary.servers) == (False, "claude 2", ("a", "c", "e"))
    assert (summary.frames, summary.killed, summary.turns) == (5, 2, 2)
    assert summary.problems == sum(it.problems for it in run.captures) > 1
    assert summary.found == tuple(sum(it.found[name] for it in run.captures) for name in ("error", "warning", "info"))
    assert summary.size == sum(it.size for it in run.captures)
    assert (run.process, run.first.header.name) == (RUN, "e")
    assert (live.process, live.summary().live, live.summary().killed) == (9, True, 0)
    abandon(writer)
