"""A search finds the rows that match the filter, however the file grows, and reads little of most rows."""

import functools
import json
import os
import random
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import accumulate, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.browse.search import search, verdict
from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture.index import Index
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Open
from mcpspy.filters import parse
from mcpspy.timeline import Row, final_rows, rows_alone
from tests.capture.test_index import write_in_pieces
from tests.each import each
from tests.timelines import CAPTURES, GOLDEN
from tests.transcript import begin, capture, finish, record

EACH = pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
FILTERS = [
    "",
    "method:tools/call",
    "-method:tools/*",
    "status:error,tool-error,unanswered",
    "status:failed or status:refused",
    "status:ok result",
    "latency:>1ms",
    "severity:>=warning",
    "rule:schema or text:ping",
    "name:*",
    "id:1",
    "from:server data",
    "time:>1s json",
    "revision:2025-*",
    "session:* from:client",
    "size:>200b -text",
    "kind:stderr,http,event,gap,end",
    "no such text",
    "tools/call",
    "JSON or -ping",
    '-"\\"id\\":" result',
    "(text:tools,resources -kind:result) or from:mcpspy",
    "id:1 or tool",
]
SPELLINGS = (
    json.dumps,
    lambda value: json.dumps(value, ensure_ascii=False),
    lambda value: json.dumps(value, ensure_ascii=False).replace("/", "\\/"),
    lambda value: json.dumps([value, {"jsonrpc": "2.0", "method": "other"}]),
    lambda value: json.dumps(json.dumps(value)),
    lambda value: json.dumps(value) + "\xff",  # not UTF-8
    lambda value: json.dumps(value)[:-9],
    lambda _: "",
)
WORDS = (
    "needle",
    "Needle",
    "NEEDLE",
    "tools/call",
    "café",
    "CAFÉ",
    "İ",
    "\u212a",
    "天気",
    "🌍",
    '"',
    "\\",
    "\n",
    "u00e9",
    "eNd-2026",
    "end-2026",
    "2026",
    "method",
)
HEAD = {"method": "POST", "target": "/mcp", "headers": [["content-type", "application/json"]]}
STRANGE_LINES = (
    b'{"kind":"frame","ch":1,"t":9,"raw":"needle',
    b'{"kind":"frame","ch":1,"t":9,"raw":"needle"}x',
    b'{"kind":"frame","ch":1,"t":9,"raw":"needle"}}',
    b'{"kind":"frame","ch":01,"t":9,"raw":"needle"}',
    b'{"kind":"frame","ch":1,"t":9,"raw":"needle","raw":"other"}',
    b'{"kind":"frame","ch":1,"t":9,"raw":"x","sent":"needle","by":"gate needle"}',
    b'{"kind":"frame","ch":1,"t":9,"raw":"\\u006eeedle"}',
    b'{"kind":"frame","ch":1,"t":9,"raw":"\\\\u006eeedle"}',
    b'{"kind": "frame","ch":1,"t":9,"raw":"needle"}',
    b'{"kind":"frame","ch":1,"t":9,"raw":""}',
    b'{"kind":"frame","ch":1,"t":9,"raw":null}',
    b'{"kind":"later","ch":1,"t":9,"raw":"needle"}',
    b'{"kind":"gap","t":9,"lost":2,"why":"needle"}',
    b"needle",
    b"",
)


class Searched:
    """A capture that is indexed, and folded as far as a test wants."""

    def __init__(self, path):
        self.index = Index(str(path))
        self.columns = None
        self._path = str(path)
        self.revised = []
        self._rows = []  # the final rows of the current file
        self._known = {}  # by line number: its rows, as the fold knows them so far
        self._folded = 0
        self._placed = 0
        self.moved = []
        self.look()

    @property
    def complete(self):
        return self._folded == len(self._rows)

    def look(self):
        """Index all that the file has."""
        grown = [True for _ in iter(self.index.grow, False)]
        if grown:
            self._rows = list(final_rows(Capture(self._path).records, live=self.index.live))
            lines = self.index.read(0, self.index.size).split(b"\n")
            self._starts = list(accumulate((len(line) + 1 for line in lines), initial=0))

    def fold(self, rows=1 << 30):
        """Fold some more rows, by default all of them. Their findings are known when all rows are folded."""
        for row in self._rows[self._folded : self._folded + rows]:
            self._folded += 1
            early = replace(row, findings=())
            if row.kind == "request":
                early.status, early.response, early.latency = "pending", None, None
            self._known.setdefault(row.n, []).append(early)
            if row.kind == "end-of-stream":
                self.index.insert(row.n, self._placed)
                self.moved.append(row.n)
            elif row.part == 0 and self.index.put(row.n, self._placed):
                self.moved.append(row.n)
            self._placed += row.part == 0
        if self.complete:
            for n in self._known:
                final = [row for row in self._rows if row.n == n]
                if final != self._known[n]:
                    self._known[n] = final
                    self.revised.append(n)

    def known(self, n):
        row, *more = self._known.get(n, (None,))
        if more:
            return Row(n, row.t, "batch", row.sender)
        return row and replace(row, raw=b"", text=None, value=None)

    def messages(self, place):
        n = self.index.rows[place]
        return self._known.get(n) or self._alone(self.index.record(n))

    def _alone(self, record):
        """Return the rows that follow from the record alone."""
        ch = record.answers if getattr(record, "answers", None) is not None else getattr(record, "ch", None)
        answered = isinstance(record, Open) and record.answers is None
        return list(rows_alone(record, None if ch is None or answered else self.index.channel(ch)))


@pytest.fixture
def opened():
    """Open captures without folding any row, and close them at the end."""
    with ExitStack() as stack:

        def open_(path):
            found = Searched(path)
            stack.callback(found.index.close)
            return found

        yield open_


@pytest.fixture
def folded(opened):
    """Open a capture and fold all of it."""

    def fold(path):
        found = opened(path)
        found.fold()
        return found

    return fold


def filter_of(session, text):
    return parse(text, session.index.header.started)


def found(session, text):
    """Return what a search finds until it has nothing left to read."""
    return hits_of(search(session, filter_of(session, text)))


def hits_of(searching):
    """Return what the next steps find until there is nothing left to read."""
    hits = []
    for step in islice(searching, 1000):
        assert not set(step.hits) & set(hits)
        hits = [n for n in hits + step.hits if n not in step.gone]
        if step.idle:
            return hits
    raise AssertionError("a search goes on for ever")


@functools.cache
def rows_of(path):
    """Return the final rows of a finished capture."""
    return list(final_rows(Capture(str(path)).records, live=False))


def wanted(path, text):
    """Return the numbers of the lines whose rows match a filter, in order."""
    test = parse(text, Capture(str(path)).header.started)
    return list(dict.fromkeys(row.n for row in rows_of(path) if test(row)))


@EACH
def test_a_search_finds_what_the_filter_wants_of_the_final_rows(folded, path):
    session = folded(path)

    @each("text", FILTERS)
    def agree(text):
        assert sorted(found(session, text)) == sorted(wanted(path, text))

    agree()


@given(data=st.data())
def test_a_search_finds_the_same_while_the_file_is_folded(tmp_path_factory, data):
    text = data.draw(st.sampled_from(FILTERS))
    steps = data.draw(st.lists(st.integers(1, 40), max_size=20))
    path = data.draw(st.sampled_from(sorted(CAPTURES.glob("f*.jsonl"))))
    session = Searched(path)
    with closing(session.index):
        searching = search(session, filter_of(session, text))
        hits = set()
        for step in [0, *steps, 1 << 30]:
            session.fold(step)
            for _ in range(100 if session.complete else 1):
                found = next(searching)
                assert not hits & set(found.hits)
                assert hits >= set(found.gone)
                hits = (hits | set(found.hits)) - set(found.gone)
        assert found.idle
        assert sorted(hits) == sorted(wanted(path, text))


def test_texts_are_found_before_the_fold_and_the_rest_waits_for_it(tmp_path, opened):
    text = '> {"id":1,"method":"tools/call","params":{"name":"needle"}}\n' * 10
    session = opened(capture(tmp_path / "a", text))
    assert len(found(session, "needle")) == 10
    assert found(session, "needle name:needle") == []
    session.fold()
    assert len(found(session, "needle name:needle")) == 10


def test_a_request_that_was_recorded_after_its_response_is_found_though_rows_change_places(
    tmp_path, opened, monkeypatch
):
    pairs = "".join(
        f'@{n}.002 < {{"id":{n},"result":{{"x":"needle"}}}}\n@{n}.001 > {{"id":{n},"method":"needle"}}\n'
        for n in range(1, 200)
    )
    session = opened(capture(tmp_path / "a", '> {"id":0,"method":"needle"}\n' + pairs))
    monkeypatch.setattr("mcpspy.browse.search.MOST_BYTES", len(session.index.block(5, 68, 1 << 20)[0]))
    searching = search(session, filter_of(session, "needle"))
    hits = next(searching).hits
    assert hits[-1] == session.index.rows[63] == 68
    session.fold()
    assert session.index.rows[63:65].tolist() == [69, 68], "where the search has come to"
    hits += hits_of(searching)
    assert sorted(hits) == list(range(5, 6 + 2 * 199))


def test_a_search_goes_on_where_a_live_capture_grows(tmp_path, opened):
    writer = begin(tmp_path / "a")
    record(writer, '> {"id":1,"method":"ping"}\n< {"id":1,"result":{}}')
    session = opened(tmp_path / "a")
    session.fold()
    searching = search(session, filter_of(session, "method:ping kind:result"))
    assert next(searching) == (2, [6], [], False)
    assert next(searching) == (2, [], [], True)
    writer.frame(1, 10**9, b'{"id":2,"method":"ping"}', False, False)
    writer.frame(2, 2 * 10**9, b'{"id":2,"result":{}}', False, False)
    session.look()
    session.fold()
    assert next(searching) == (4, [8], [], False)
    finish(writer, 3 * 10**9)


def test_a_row_that_changes_later_is_looked_at_again(tmp_path, opened):
    writer = begin(tmp_path / "a")
    record(writer, '> {"id":1,"method":"ping"}')
    session = opened(tmp_path / "a")
    session.fold()
    pending, answered = (search(session, filter_of(session, f"kind:request status:{it}")) for it in ("pending", "ok"))
    assert next(pending) == (1, [5], [], False)
    assert next(answered) == (1, [], [], False)
    writer.frame(2, 2 * 10**9, b'{"jsonrpc":"2.0","id":1,"result":{}}', False, False)
    session.look()
    session.fold()
    assert next(pending) == (2, [], [5], False)
    assert next(answered) == (2, [5], [], False)
    finish(writer, 3 * 10**9)


def test_a_text_in_a_frame_in_pieces_is_found_wherever_it_stands(tmp_path, folded):
    path = tmp_path / "a"
    writer = begin(path)
    writer.open(1, 0, "client", "stdin", "lines")
    raw = b'{"id":1,"method":"x","params":"%s needle %s"}' % (b"a" * 100_000, b"b" * 100_000)
    write_in_pieces(writer, 1, raw)
    write_in_pieces(writer, 2, raw.replace(b"needle", b"noodle"))
    finish(writer, 3)
    session = folded(path)
    assert found(session, "needle") == wanted(path, "needle")
    assert len(found(session, "needle")) == 1
    assert len(found(session, "-needle method:x")) == 1


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_text_at_the_end_of_megabytes_is_found(tmp_path, transport):
    writer = begin(tmp_path / "a", transport=transport)
    writer.open(1, 0, "client", "request", "body", {"head": HEAD} if transport == "http" else None)
    write_in_pieces(writer, 1, b'{"id":1,"method":"x","params":"%s needle"}' % (b"a line\\n" * 400_000))
    write_in_pieces(writer, 2, b'{"id":2,"method":"x","params":"%s needle"}' % (b"a line\\n" * 1_200_000))
    finish(writer, 3)
    session = OpenCapture(str(tmp_path / "a"))
    with closing(session):
        while session.grow(1):
            pass
        assert found(session, "needle") == [n for n in session.index.rows if session.index.in_pieces(n)]
        assert found(session, "-needle method:x") == []


def test_a_step_of_a_search_ends_after_one_large_row(tmp_path):
    writer = begin(tmp_path / "a")
    writer.open(1, 0, "client", "stdin", "lines")
    for t in range(3):
        write_in_pieces(writer, t, b'{"id":1,"method":"x","params":"%s needle"}' % (b"a" * 100_000))
    finish(writer, 3)
    session = OpenCapture(str(tmp_path / "a"))
    with closing(session):
        while session.grow(1):
            pass
        steps = list(islice(search(session, filter_of(session, "needle")), 4))
        assert [len(step.hits) for step in steps] == [1, 1, 1, 0]


def test_lines_searched_together_are_decided_as_each_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr("mcpspy.browse.search.MOST_BYTES", 4000)
    chance = random.Random(20261124)  # noqa: S311
    path = tmp_path / "a"
    writer = begin(path)
    for ch, (sender, role) in enumerate((("client", "stdin"), ("server", "stdout"), ("server", "stderr")), 1):
        writer.open(ch, 0, sender, role, "lines")
    for n in range(300):
        params = {"name": "".join(chance.choices(WORDS, k=3)), "x": chance.choice(WORDS)}
        spoken = (
            {"id": n, "method": chance.choice(WORDS), "params": params} if n % 2 else {"id": n - 1, "result": params}
        )
        raw = chance.choice(SPELLINGS)({"jsonrpc": "2.0"} | spoken).encode(
            "latin-1" if n % 50 == 0 else "utf-8", "replace"
        )
        writer.frame(2 - n % 2 if n % 9 else 3, n, raw, False, False)
    begins = '{"id":900,"method":"café tools/call 2026","params":"'
    write_in_pieces(writer, 300, begins.encode() + b"a" * 196_700 + b'"}')  # its last piece is a short line
    finish(writer, 301)
    lines = path.read_bytes().split(b"\n")
    for strange in STRANGE_LINES:
        lines.insert(chance.randrange(5, len(lines) - 8), strange)
    path.write_bytes(b"\n".join(lines) + b'{"kind":"frame","ch":1,"t":999,"raw":"needle"}x')
    session = OpenCapture(str(path))
    with closing(session):
        while session.grow(1):
            pass
        for _ in range(60):
            terms = [quoted(word) for word in chance.choices(WORDS, k=3)] + [
                "kind:result",
                "from:server",
                "id:7",
                "severity:error",
            ]
            chosen = [chance.choice(("", "", "-")) + term for term in chance.sample(terms, chance.randint(1, 3))]
            text = chosen[0] + "".join(chance.choice((" ", " or ")) + term for term in chosen[1:])
            wanted = filter_of(session, text)
            each = [n for at, n in enumerate(session.index.rows) if verdict(session, wanted, wanted.keys, at)]
            assert sorted(found(session, text)) == sorted(each), text


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def test_messages_of_a_batch_are_found(tmp_path, folded):
    text = '> [{"id":1,"method":"ping"},{"id":2,"method":"tools/call","params":{"name":"a"}}]\n> {"id":3,"method":"x"}'
    session = folded(capture(tmp_path / "a", text))
    assert found(session, "name:a") == [5]
    assert found(session, "method:ping,x") == [5, 6]
    assert found(session, "method:ping name:a") == []


def test_each_step_is_small_and_columns_alone_need_no_line(tmp_path, folded, monkeypatch):
    session = folded(capture(tmp_path / "a", '> {"id":1,"method":"ping"}\n' * 1000))
    monkeypatch.setattr(session.index, "line", pytest.fail)
    monkeypatch.setattr(session, "messages", pytest.fail)
    steps = list(islice(search(session, filter_of(session, "method:ping kind:request")), 20))
    assert [step.place for step in steps[:3]] == [64, 128, 192]
    assert steps[-1].place == len(session.index.rows)
    assert sum(len(step.hits) for step in steps) == 1000


def test_lines_without_the_text_are_not_decoded(tmp_path, folded, monkeypatch):
    session = folded(capture(tmp_path / "a", '> {"id":1,"method":"ping"}\n' * 100))
    decoded = []
    monkeypatch.setattr(session.index, "record", lambda n, _: decoded.append(n))
    monkeypatch.setattr(session, "messages", lambda place: decoded.append(session.index.rows[place]) or [])
    assert found(session, "needle") == []
    assert set(decoded) == {session.index.rows[-1]}, "only the end, which is no frame"


def test_a_file_that_is_cut_short_ends_a_search_without_an_error(tmp_path, folded):
    path = capture(tmp_path / "a", '> {"id":1,"method":"ping"}\n' * 100)
    session = folded(path)
    os.truncate(path, 2000)
    assert found(session, "ping")
    assert len(found(session, "method:ping")) == 100
