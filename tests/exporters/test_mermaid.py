import json

import pytest

from mcpspy.exporters.mermaid import MOST, text
from tests.exporters.consumers import exported
from tests.exporters.gated import gated
from tests.timelines import GOLDEN
from tests.transcript import capture

HOSTILE = (
    "a;b #59; end \"q\" 'x' <img src=x onerror=window.ran=1> -->> :: %% {c} $$x$$ \\ `end` loop & #x; #lt; </text>",
    "first\nend\nserver->>client: forged",
    "END",
    "\u202eright to left\x1b[31m",
    "x" * 10_000,
    "中文 émoji 🦊",
    "=1+1",
    ";",
)


def call(number, name):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name}})


def diagram(tmp_path, transcript, wants=None):
    path = capture(str(tmp_path / "made.jsonl"), transcript)
    return exported("mermaid", path, wants=wants).decode().splitlines()


@pytest.mark.needs(".peers/node", "chromium", "chromedriver")
def test_mermaid_accepts_the_diagram_of_every_golden_capture_and_refuses_a_broken_one(mermaid):
    for path in GOLDEN:
        assert mermaid.parse(exported("mermaid", str(path)).decode()) == "", path
    assert "Parse error" in mermaid.parse("sequenceDiagram\n    client->>: #35;1 ping\n")


@pytest.mark.needs(".peers/node", "chromium", "chromedriver")
def test_mermaid_shows_hostile_words_as_text(tmp_path, mermaid):
    for place, words in enumerate(HOSTILE):
        folder = tmp_path / str(place)
        folder.mkdir()
        drawn = mermaid.drawn("\n".join(diagram(folder, f"> {call(1, words)}\n< 1 = {{}}")))
        [shown] = [it for it in drawn if it.startswith("#5 ")]
        assert shown.startswith("#5 tools/call ")
        plain = words.isprintable() and len(words) < 50
        assert not plain or shown.startswith(f"#5 tools/call {words}")
        assert len([it for it in drawn if it.startswith("#")]) == 3, drawn
    assert mermaid.browser.script("return window.ran ?? null") is None


def test_what_a_gate_did_and_what_is_missing_is_shown(tmp_path):
    lines = exported("mermaid", gated(tmp_path / "gated.jsonl")).decode().splitlines()
    assert [line.strip() for line in lines[2:]] == [
        "participant client as client",
        "participant mcpspy as mcpspy",
        "participant server as server",
        "client-xserver: #35;4 tools/call a #91;answered by gate slow#93;",
        "mcpspy-->>client: #35;5 ok answers #35;4 after 1.0 ms #91;sent by gate slow#93;",
        "mcpspy->>server: #35;6 tools/call a #91;sent by a viewer#93;",
        "server-->>client: #35;7 ok answers #35;6 after 1.0 ms",
        "Note over client,server: #35;8 x #91;sent by gate slow#93;",
        "client->>server: #35;9 tools/call a #91;held 3.0 ms by gate slow#93;",
        "server-->>client: #35;11 ok answers #35;9 after 3.0 ms",
        "server-)client: #35;11 y ✗ schema/unknown-method",
        "Note over client,server: #35;12 gap#58; 3 lost#58; disk#59; #35;59#59;",
        "Note over client,server: #35;13 signal#58; SIGTERM to the process group",
        "Note over client,server: #35;14 gates#58; a (set by the gate file)",
        "Note over client,server: #35;15 gap#58; 1 lost#58; a damaged line",
    ]


def test_a_filter_leaves_rows_out_and_brings_stderr_in(tmp_path):
    lines = diagram(tmp_path, "> 1 ping\n! warming up\n< 1 = {}", wants=lambda row: row.kind == "stderr")
    assert lines[4:] == ["    Note right of server: #35;6 stderr#58; warming up"]


def test_a_diagram_has_a_bounded_number_of_arrows_and_says_how_many_are_missing(tmp_path):
    lines = diagram(tmp_path, "\n".join(f"> {call(n, 'a')}" for n in range(MOST + 20)))
    assert len(lines) == 4 + MOST + 1
    assert lines[-1].endswith(": 21 rows more#59; export fewer with a filter, such as method#58;tools/call")


def test_a_diagram_is_short_enough_for_mermaid_however_long_its_labels_become(tmp_path):
    lines = diagram(tmp_path, "\n".join(f"> {call(n, ';' * 300)}" for n in range(MOST)))
    assert len("\n".join(lines)) < 50_000
    assert " rows more" in lines[-1]


@pytest.mark.parametrize(("words", "shown"), [("end", "#101;nd"), ("ENDS", "ENDS"), ("a;b", "a#59;b"), ("#", "#35;")])
def test_what_is_syntax_becomes_an_entity(words, shown):
    assert text(words) == shown
