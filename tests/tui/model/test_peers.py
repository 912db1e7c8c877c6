"""The self-descriptions of both peers, as facts."""

import json
from contextlib import closing

import pytest

from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.model.peers import Fact, facts
from tests.browse.test_timeline import grow, said
from tests.test_overview import HANDSHAKE, listed
from tests.timelines import GOLDEN
from tests.tui.model import test_merged

FULL = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {"listChanged": True}, "logging": {}, "experimental": {"x/y": {"a": 1}}},
    "serverInfo": {
        "name": "weather",
        "title": "Weather",
        "version": "1",
        "websiteUrl": "https://example.com",
        "icons": [{"src": "https://example.com/a.png", "mimeType": "image/png", "sizes": ["48x48"], "odd": 1}, "odd"],
        "x": [1],
    },
    "instructions": "First.\nSecond.",
}


def told(folder, text):
    """Return the facts of a transcript, without the times: title, text, and the lines that they come from."""
    with closing(grow(OpenCapture(said(folder, text)))) as session:
        return list(facts(session))[1:]


def server(folder, result):
    """Return the facts about a server with this result of `initialize`. The client requests 2025-11-25."""
    text = '> {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n'
    found = told(folder, f'{text}< {{"id":1,"result":{json.dumps(result)}}}')
    return found[next(n for n, fact in enumerate(found) if fact.title == "server") :]


@pytest.mark.parametrize("odd", [None, 3, "x", [], {}, [[]], {"name": None}])
@pytest.mark.parametrize("key", ["serverInfo", "capabilities", "instructions", "protocolVersion"])
def test_what_has_another_shape_is_no_trouble(tmp_path, key, odd):
    assert server(tmp_path, FULL | {key: odd})


def test_what_is_told_is_bounded(tmp_path):
    info = {f"k{n}": "x" * 9000 for n in range(90)}
    found = server(tmp_path, {"serverInfo": info, "capabilities": info, "instructions": "y" * 300_000})
    assert len(found) < 130
    assert sum(len(fact.text) for fact in found) < 700_000
    assert max(len(fact.text) for fact in found) == 100_001
    many = told(tmp_path, listed(1, *(f'{{"name":"t{n}"}}' for n in range(300))))
    assert many[-1].text.endswith(", t199 and 100 more")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_golden_capture_names_both_sides(path):
    with closing(grow(OpenCapture(str(path)))) as session:
        found = list(facts(session))
        assert sum(fact.title == "name" for fact in found) == sum(
            bool(peer and peer.name) for peer in (session.announced.client, session.announced.server)
        )
        assert {fact.n for fact in found if fact.n} <= set(session.index.rows)


def test_of_several_sessions_each_has_its_own_times_and_peers(tmp_path):
    call = '@0 > {"id":7,"method":"tools/call"}\n@%s < {"id":7,"result":{}}\n'
    paths = [
        test_merged.capture(tmp_path / "one.jsonl", 0, HANDSHAKE + call % 2),
        test_merged.capture(tmp_path / "two.jsonl", 0.5, call % 3),
    ]
    with closing(Merged([OpenCapture(str(path)) for path in paths])) as merged:
        found = list(facts(test_merged.grown(merged)))
        assert found[:2] == [
            Fact("waited for", "one: server 2.00 s (100%)"),
            Fact("", "two: server 3.00 s (100%)"),
        ]
        sections = [place for place, fact in enumerate(found) if fact.title == "session"]
        assert [found[place].text for place in sections] == ["one", "two"]
        assert Fact("client", "has sent no name", heading=True) in found[sections[1] :]
        (introduced,) = [fact.n for fact in found[: sections[1]] if fact.title == "server"]
        assert merged.index.source(introduced) == (merged.sessions[0], 6)
