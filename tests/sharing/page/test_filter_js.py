"""The page's filter.js agrees with `mcpspy.filters`: the same rows, and the same mistakes at the same columns."""

import functools
import json
import random
import shutil
import subprocess
from pathlib import Path

import orjson
import pytest

from mcpspy.capture.reader import Capture
from mcpspy.errors import FilterError
from mcpspy.filters import parse
from mcpspy.filters.terms import row_text
from mcpspy.moments import moment
from mcpspy.sharing.page.contents import page_row
from mcpspy.timeline import Row, final_rows, wall_time
from tests import NIGHTLY
from tests.filters.test_cases import CASES, STARTED
from tests.sharing.page.sources import PAGE
from tests.timelines import CAPTURES
from tests.transcript import capture
from tests.zones import zone

HERE = Path(__file__).parent
ODD = """
    @0.001 > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
    @0.003 < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}
    @0.005 ! Ready on C:\\new \u212aelvin \u0130stanbul STRASSE straße \u01c5 ΟΔΟΣ
    @1.000 > {"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"get_forecast"}}
    @1.250 < {"jsonrpc":"2.0","id":"1","result":{"isError":true,"content":[{"text":"caf\\u00e9 \\"Brygge\\""}]}}
    @2.000 > {"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"Search \U0001f326 [a]"}}
    @4.000 < {"jsonrpc":"2.0","id":1.0,"error":{"code":-32601,"message":"Method \\ud83c\\udf26 not \\/ found"}}
    @4.500 > {"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}
    @4.600 > {"jsonrpc":"2.0","id":null,"method":"ping"}
    @4.700 > {"jsonrpc":"2.0","id":1e3,"method":"ping"}
    @4.800 > {"jsonrpc":"2.0","id":-0,"method":"ping"}
    @5.000 < | Listening on port 5
    @5.100 < |
    @6.000 > [{"jsonrpc":"2.0","id":3,"method":"tools/list"},{"jsonrpc":"2.0","id":true,"method":"x"}]
"""
FILTERS = ODD.replace("@", "").split() + """
    id:1 id:1.0 id:12345678901234567890 id:12345678901234567891 id:null id:1e3 id:1000 id:true id:"1" id:NaN -id:*
    id:0 id:-0 latency:1constructor size:1constructor latency:1valueof
    kelvin kelVin \u212aelvin \u0130stanbul istanbul strasse straße STRASSE \u01c5 ǆ οδοσ οδος ΟΔΟΣ café caf\u00c9 🌦
    name:*🌦* name:????????? name:*[a] name:search* name:Search* "C:\\new" \\n \\ud83c size:0 size:<=2.5b size:0.5b
    time:>=4.0 time:1.0..2.00 time:16:00 time:2025-11-24 time:>2025-11-24T16:00:02.5Z time:<17:00+01:00
    rule:*json* severity:>=* kind:invalid kind:gap kind:end kind:* method:? method:x method:*l*t* ""
    name:"" a\x1cb a\ufeffb
""".split()  # fmt: skip
JOINS = [" ", " ", " or ", " and ", " -", " not ", "(", ")", ",", ":", '"', "", " (", ") ", "..", ">", "\u3000", "'"]
needs_node = pytest.mark.needs("node")


@functools.cache
def session(name, path):
    """Return the start of a capture, its rows, and the values that the page gets for them."""
    read = Capture(path)
    rows = list(final_rows(read.records, live=False))
    given = {
        "started": wall_time(read.header, 0),
        "rows": [orjson.loads(orjson.dumps(page_row(row, read.header))) for row in rows],
        "texts": [row_text(row) for row in rows],
    }
    return read.header.started, rows, given


def ask(tmp_path, sessions, questions):
    """Return the answers of filter.js; all questions go to one process."""
    for source in PAGE.glob("*.js"):
        shutil.copy(source, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    given = json.dumps({"sessions": sessions, "questions": questions})
    command = ["node", str(HERE / "run_filters.mjs"), str(tmp_path / "filter.js")]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def expected(name, path, text):
    """Return the answer of `mcpspy.filters`: the indices of the rows, or the mistake."""
    started, rows, _ = session(name, path)
    try:
        wanted = parse(text, started)
    except FilterError as error:
        return {"error": str(error), "column": error.column}
    return {"rows": [place for place, row in enumerate(rows) if wanted(row)]}


@needs_node
def test_every_case_gives_its_rows_or_its_mistake(tmp_path):
    names = {case["capture"] for case in CASES if "rows" in case}
    sessions = {name: session(name, str(CAPTURES / name))[2] for name in names}
    sessions[""] = {"started": STARTED, "rows": [], "texts": []}
    for name in {case.get("zone", "UTC") for case in CASES}:
        cases = [case for case in CASES if case.get("zone", "UTC") == name]
        with zone(name):
            answers = ask(tmp_path, sessions, [(case.get("capture", ""), case["filter"]) for case in cases])
        for case, answer in zip(cases, answers, strict=True):
            if "rows" in case:
                rows = sessions[case["capture"]]["rows"]
                assert [rows[place]["n"] for place in answer["rows"]] == case["rows"], case
            else:
                assert (answer["error"], answer["column"]) == (case["error"], case["column"]), case


@needs_node
@pytest.mark.parametrize("started", ["2026-03-28T21:00:00Z", "2026-10-24T21:00:00Z"])
def test_a_day_on_which_clocks_change_has_23_or_25_hours_and_a_time_that_they_skip_is_later(tmp_path, started):
    rows = [Row(n, n * 1800 * 10**9, "stderr", "server") for n in range(60)]
    given = {"started": started, "rows": [{"t": row.t / 1e9} for row in rows], "texts": [""] * len(rows)}
    day = "2026-03-29" if "-03-" in started else "2026-10-25"
    values = [day, f"{day}T02:30", f">={day}T03:00", f"{day}T02:00..{day}T03:00", f"{day}T03:00", f"{day}T01:30"]
    values += [f"{sign}{day}T02:30{offset}" for sign in ("<", "<=", ">", ">=") for offset in ("", "+02:00")]
    values += [f"{day}T02:30..{day}T02:30", f"{day}T02:59:59.5"]
    texts = [f"time:{value}" for value in values]
    with zone("Europe/Oslo"):
        answers = ask(tmp_path, {"": given}, [("", text) for text in texts])
        found = [[row.n for row in rows if parse(text, started)(row)] for text in texts]
    assert [answer["rows"] for answer in answers] == found
    assert [len(found[0]), found[1]] == ([46, [9]] if "-03-" in started else [50, [7, 9]])


@needs_node
@pytest.mark.parametrize(
    ("name", "started"),
    [("Australia/Lord_Howe", "2026-04-04T12:00:00Z"), ("Antarctica/Troll", "2026-10-24T23:00:00Z"),
     ("America/Havana", "2026-11-01T02:00:00Z"), ("America/New_York", "2026-11-01T03:00:00Z")],
)  # fmt: skip
def test_local_times_in_the_night_in_which_clocks_are_put_back_are_the_same_moments(tmp_path, name, started):
    rows = [Row(n, n * 300 * 10**9, "stderr", "server") for n in range(100)]
    given = {"started": started, "rows": [{"t": row.t / 1e9} for row in rows], "texts": [""] * len(rows)}
    with zone(name):
        clocks = [moment(started, row.t) for row in rows]
        texts = [f"time:{clock:%Y-%m-%dT%H:%M}" for clock in clocks]
        answers = ask(tmp_path, {"": given}, [("", text) for text in texts])
        found = [[row.n for row in rows if parse(text, started)(row)] for text in texts]
    assert [answer["rows"] for answer in answers] == found
    local = [clock.replace(tzinfo=None) for clock in clocks]
    assert found == [[n for n, other in enumerate(local) if other == clock] for clock in local]
    assert max(map(len, found)) == 2


@needs_node
def test_any_text_is_the_same_filter_or_the_same_mistake(tmp_path):
    """Python and JavaScript differ in capitals, spaces, words and numbers, so many odd texts are tried."""
    path = capture(tmp_path / "odd.jsonl", ODD)
    with open(path, "a") as file:
        file.write("a damaged line\n")
    chosen = random.Random(21)  # noqa: S311 (the same in every run)
    parts = FILTERS + [case["filter"] for case in CASES]
    texts = parts + [
        "".join(part for _ in range(chosen.randint(1, 4)) for part in (chosen.choice(parts), chosen.choice(JOINS)))
        for _ in range(20_000 if NIGHTLY else 2_000)
    ]
    texts += ["".join(chosen.choice(text) for _ in range(len(text))) for text in parts if text]
    texts = [text for text in texts if len(text) < 2000]
    answers = ask(tmp_path, {"odd": session("odd", str(path))[2]}, [("odd", text) for text in texts])
    for text, answer in zip(texts, answers, strict=True):
        answer.pop("words", None)
        assert answer == expected("odd", str(path), text), text


@needs_node
def test_the_words_of_a_filter_are_what_it_looks_for_and_not_what_it_leaves_out(tmp_path):
    sessions = {"": {"started": STARTED, "rows": [], "texts": []}}
    texts = ['a "b c" text:d,e -f not (g) kind:error', "--a"]
    answers = ask(tmp_path, sessions, [("", text) for text in texts])
    assert [answer["words"] for answer in answers] == [["a", "b c", "d", "e"], []]
