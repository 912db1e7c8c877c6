import json

import pytest

from mcpspy.overview import ToolUse
from mcpspy.query.stats import ServerUse, Stats
from mcpspy.text import columns
from tests.test_overview import HANDSHAKE, called, listed
from tests.transcript import CHANNELS, begin, capture, finish, record

CANCELLED = """
@40 > {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"a"}}
@50 > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}
"""


@pytest.fixture
def made(tmp_path):
    text = (
        HANDSHAKE + listed(1, '{"name":"a"}') + called(2, "a", seconds=0.5) + called(3, "b", seconds=0.25) + CANCELLED
    )
    return capture(str(tmp_path / "made.jsonl"), text)


def test_without_an_argument_the_capture_directory_is_read(made, tmp_path, mcpspy, monkeypatch):
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path))
    assert mcpspy("stats")[1] == mcpspy("stats", made)[1]


def test_bars_are_for_terminals(made, mcpspy, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    _, _, _, _, a, b, *_ = mcpspy("stats", made)[1].splitlines()
    assert ("█" * 6 in a, b.count("█")) == (True, 3)


def test_a_narrow_terminal_goes_without_some_columns(made, mcpspy, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    _, _, _, heading, a, *_, last = mcpspy("stats", made)[1].splitlines()
    assert heading.split() == ["tool", "calls", "errors", "p50", "p95", "context", "result"]
    assert a.split()[-2:] == ["3", "3"]
    assert len(heading) == len(a) < 80
    assert last == "a wider terminal shows more columns, and --json all of them"


def test_a_capture_that_is_named_twice_is_counted_once(made, tmp_path, mcpspy):
    assert mcpspy("stats", made, made, str(tmp_path))[1] == mcpspy("stats", made)[1]


def test_tools_that_were_not_called_and_tools_that_servers_share_are_named(tmp_path, mcpspy):
    same = '{"name":"a","description":"Does it.","inputSchema":{}}'
    texts = {"one": listed(1, same, '{"name":"b"}'), "two": listed(1, same, '{"name":"b"}') + called(2, "b")}
    texts["three"] = listed(1, same.replace('"a"', '"c"'))
    paths = [capture(str(tmp_path / f"{name}.jsonl"), text, name=name) for name, text in texts.items()]
    out = mcpspy("stats", *paths)[1]
    assert "  never called: a, b\n" in out
    assert "  never called: a\n" in out
    shared = out.split("tools that a model can mistake for one another:\n")[1].split("\n\n")[0].splitlines()
    assert shared == [
        "  a of two, a of one: identical definitions",
        "  b of two, b of one: different definitions",
        "  a of two, a of one, c of three: identical definitions",
    ]
    objects = [json.loads(line) for line in mcpspy("stats", "--json", *paths)[1].splitlines()]
    assert [it["identical"] for it in objects if it["kind"] == "duplicate"] == [True, False, True]
    assert objects[-2]["tools"] == [{"server": "two", "name": "b"}, {"server": "one", "name": "b"}]


def answered(number, name, result, arguments="{}"):
    """A call and its result."""
    params = f'{{"name":{json.dumps(name)},"arguments":{arguments}}}'
    return (
        f'> {{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{params}}}\n'
        f'< {{"jsonrpc":"2.0","id":{number},"result":{json.dumps(result)}}}\n'
    )


IMAGE = {"content": [{"type": "image", "data": "A" * 40_000, "mimeType": "image/png"}]}


def test_v_05_the_base64_of_an_image_is_not_counted_as_tokens(tmp_path, mcpspy):
    path = capture(str(tmp_path / "a.jsonl"), HANDSHAKE + answered(2, "a", IMAGE))
    [tool] = json.loads(mcpspy("stats", path, "--json")[1].splitlines()[0])["tools"]
    assert tool["results"] > 40_000
    assert (tool["tokens"] < 50, tool["result_tokens_mean"] < 50, tool["result_tokens_max"] < 50) == (True,) * 3


def test_v_05_a_frame_that_was_not_decoded_counts_its_whole_size(tmp_path, mcpspy):
    large = "x" * (9 << 20)
    text = answered(2, "a", {"content": [{"type": "text", "text": large}]})
    text += answered(3, "b", {"content": []}, json.dumps({"a": large}))
    writer = begin(tmp_path / "a.jsonl")
    record(writer, HANDSHAKE)
    for t, (mark, _, line) in enumerate(map(str.partition, text.splitlines(), [" "] * 4), 10**9):
        pieces = [line[place : place + 60_000].encode() for place in range(0, len(line), 60_000)]
        for piece in pieces:
            writer.frame(CHANNELS[mark], t, piece, more=piece is not pieces[-1], cut=False)
    finish(writer)
    [server, *_] = map(json.loads, mcpspy("stats", str(tmp_path / "a.jsonl"), "--json")[1].splitlines())
    first, second = sorted(server["tools"], key=lambda tool: tool["name"])
    assert (first["results"] > 9 << 20, first["result_tokens_max"] > (9 << 20) / 4) == (True, True)
    assert second["arguments"] > 9 << 20


@pytest.mark.parametrize("name", ["a" * 30, "a" * 90, "\u5929" * 30, "a"], ids=["30", "90", "wide", "short"])
def test_v_05_columns_never_touch(name, made, monkeypatch, mcpspy):
    def add(stats, *_):
        tool = ToolUse(name, 10**15, 10**15, calls=10**9, errors=10**9, found=10**9, arguments=10**15)
        tool.results = tool.text = tool.largest = 10**15
        tool.answers = 1
        tool.latencies.add(10**18)
        stats.servers["weather"] = ServerUse("weather", tools={name: tool, "b": ToolUse("b")})

    monkeypatch.setattr(Stats, "add", add)
    lines = mcpspy("stats", made)[1].splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("  tool "))
    heading, first, second = lines[at : at + 3]
    assert len({columns(line) for line in (heading, first, second)}) == 1
    words = first.split()
    assert name.startswith(words[0].rstrip("\u2026"))
    assert (words.count(f"{10**9:,}"), words.count(f"{10**15 // 4:,}")) == (3, 3)
    assert len(second.split()) > 10
