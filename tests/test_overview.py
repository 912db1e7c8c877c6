"""The self-descriptions of both peers and the counts of each tool, computed from transcripts."""

import json
from contextlib import closing

import pytest

from mcpspy import overview as module
from mcpspy.browse.timeline import OpenCapture
from mcpspy.conversation.offers import PagedListing
from mcpspy.overview import OTHERS, Latencies, Peer, ToolUse
from tests.browse.test_timeline import grow, said
from tests.timelines import CAPTURES

HANDSHAKE = """
> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{"listChanged":true},"sampling":{}},"clientInfo":{"name":"cursor","version":"2.1"}}}
< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":false}},"serverInfo":{"name":"weather","version":"0.9"},"instructions":"Grüße"}}
"""  # noqa: E501 (a transcript)


def listed(number, *tools, cursor=None):
    """Return a listing request and its response."""
    params = f',"params":{{"cursor":"{cursor}"}}' if cursor else ""
    return f"""
    > {{"id":{number},"method":"tools/list"{params}}}
    < {{"id":{number},"result":{{"tools":[{",".join(tools)}]}}}}
    """


def called(number, name, result='{"content":[]}', seconds=0.0):
    """Return a call and its response, `seconds` later."""
    return f"""
    @{number} > {{"id":{number},"method":"tools/call","params":{{"name":"{name}"}}}}
    @{number + seconds} < {{"id":{number},"result":{result}}}
    """


def announced(folder, text):
    """Return the announcements in a transcript. Its first line is record #5."""
    with closing(grow(OpenCapture(said(folder, text)))) as session:
        return session.announced


def test_both_sides_are_known_by_their_handshake(tmp_path):
    found = announced(tmp_path, HANDSHAKE)
    assert found.client == Peer(5, "cursor", "2.1", "2025-06-18", ("roots(listChanged)", "sampling"))
    assert found.server == Peer(6, "weather", "0.9", "2025-06-18", ("tools",), instructions=7)


def test_both_sides_are_known_without_a_handshake_by_their_meta(tmp_path):
    meta = """"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":
    {"name":"cursor","version":"3"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}""".replace(
        "\n", ""
    )
    server = '"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"weather","version":"1"}}'
    found = announced(
        tmp_path,
        f'> {{"id":1,"method":"tools/call","params":{{"name":"a",{meta}}}}}\n< {{"id":1,"result":{{{server}}}}}',
    )
    assert found.client == Peer(5, "cursor", "3", "2026-07-28", ("elicitation(form)",))
    assert found.server == Peer(6, "weather", "1", "2026-07-28", ())
    found = announced(
        tmp_path,
        f'> {{"id":1,"method":"server/discover","params":{{{meta}}}}}\n'
        f'< {{"id":1,"result":{{"capabilities":{{"tools":{{}}}},"instructions":"x",{server}}}}}',
    )
    assert found.server == Peer(6, "weather", "1", "2026-07-28", ("tools",), instructions=1)


def test_definitions_are_measured_as_compact_json(tmp_path):
    tool = {"name": "a", "description": "Grüße", "inputSchema": {"type": "object"}}
    spaced, size = (
        json.dumps(tool, indent=None),
        len(json.dumps(tool, separators=(",", ":"), ensure_ascii=False).encode()),
    )
    found = announced(tmp_path, listed(1, spaced, '{"name":"b"}'))
    assert [(tool.name, tool.size, tool.listed) for tool in found.tools.values()] == [("a", size, 6), ("b", 12, 6)]
    assert found.listings == {"tools": PagedListing(6, 6, 2, size + 12)}


def test_pages_make_one_listing_and_a_new_listing_replaces_it(tmp_path):
    pages = listed(1, '{"name":"a"}') + listed(2, '{"name":"b"}', cursor="x")
    found = announced(tmp_path, pages)
    assert found.listings["tools"] == PagedListing(6, 8, 2, 24)
    assert [found.is_current(tool) for tool in found.tools.values()] == [True, True]
    found = announced(tmp_path, pages + listed(3, '{"name":"b"}'))
    assert found.listings["tools"] == PagedListing(10, 10, 1, 12)
    assert [found.is_current(tool) for tool in found.tools.values()] == [False, True]


def test_prompts_resources_and_templates_are_counted(tmp_path):
    text = """
    > {"id":1,"method":"prompts/list"}
    < {"id":1,"result":{"prompts":[{"name":"p"}]}}
    > {"id":2,"method":"resources/list"}
    < {"id":2,"result":{"resources":[{"uri":"a:"},{"uri":"b:"}]}}
    > {"id":3,"method":"resources/templates/list"}
    < {"id":3,"result":{"resourceTemplates":[]}}
    """
    counts = {kind: (listing.n, listing.count) for kind, listing in announced(tmp_path, text).listings.items()}
    assert counts == {"prompts": (6, 1), "resources": (8, 2), "resourceTemplates": (10, 0)}


def test_calls_errors_and_latencies_are_those_of_each_tool(tmp_path):
    text = called(1, "a", seconds=0.5) + called(2, "b", '{"isError":true}', 0.25) + called(3, "a", seconds=0.1)
    text += '> {"id":4,"method":"tools/call","params":{"name":"b"}}\n< {"id":4,"error":{"code":1,"message":"no"}}\n'
    text += '> {"id":5,"method":"tools/call","params":{"name":"a"}}\n'
    found = announced(tmp_path, text).tools
    assert [(tool.name, tool.called, tool.calls, tool.errors) for tool in found.values()] == [
        ("a", 5, 3, 0),
        ("b", 7, 2, 2),
    ]
    assert found["a"].latencies.longest == 500_000_000
    assert found["a"].latencies.quantiles(0.5, 1)[0] == pytest.approx(100_000_000, rel=0.001)
    assert found["a"].latencies.quantiles(0.95, 1) == [500_000_000] * 2
    assert found["b"].latencies.quantiles(1) == [250_000_000]


def test_quantiles_are_right_to_a_part_in_a_thousand():
    latencies = Latencies()
    assert latencies.quantiles(0.5) == []
    for latency in range(1000, 101_000, 100):
        latencies.add(latency * 1000)
    assert latencies.quantiles(0.5, 0.95, 1) == [
        pytest.approx(50_900_000, rel=0.001),
        pytest.approx(95_900_000, rel=0.001),
        100_900_000,
    ]


def test_latencies_of_two_captures_are_joined():
    first, second, both = Latencies(), Latencies(), Latencies()
    for number in range(1, 1001):
        (first if number % 3 else second).add(number * 1000)
        both.add(number * 1000)
    first.join(second)
    assert (first.quantiles(0.5, 0.95, 1), first.longest) == (both.quantiles(0.5, 0.95, 1), 1_000_000)


def test_a_tool_of_two_captures_has_the_sums_of_both_and_the_newer_definition():
    old, new = ToolUse("a", size=7, calls=2, errors=1, results=10), ToolUse("a", calls=3, found=1, arguments=5)
    old.join(new)
    assert (old.size, old.calls, old.errors, old.found, old.arguments, old.results) == (7, 5, 1, 1, 5, 10)
    old.join(ToolUse("a", size=9))
    assert old.size == 9


def test_what_was_found_of_a_call_its_answer_or_a_definition_counts_for_the_tool(tmp_path):
    first = '{"name":"a","inputSchema":{"type":"object","required":["city"]}}'
    second = '{"name":"b","inputSchema":{"type":"array"}}'
    text = HANDSHAKE + '> {"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    text += f"""
    > {{"jsonrpc":"2.0","id":1,"method":"tools/list"}}
    < {{"jsonrpc":"2.0","id":1,"result":{{"tools":[{first},{second}]}}}}
    > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"a","arguments":{{}}}}}}
    < {{"jsonrpc":"2.0","id":2,"result":{{"content":[]}}}}
    """
    with closing(grow(OpenCapture(said(tmp_path, text)))) as session:
        of_calls = len(session.findings.of(10)) + len(session.findings.of(11))
        of_definition = [it for it in session.findings.of(9) if it.pointer.startswith("/result/tools/1/")]
        assert of_calls > 0
        assert session.announced.tools["a"].found == of_calls
        assert session.announced.tools["b"].found == len(of_definition) > 0


def test_a_call_that_is_found_to_be_unanswered_later_counts_for_its_tool(tmp_path):
    text = HANDSHAKE + '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}\n'
    with closing(OpenCapture(said(tmp_path, text))) as session:
        grow(session)
        assert "pairing/unanswered" in {each.rule for each in session.findings.of(7)}
        assert session.announced.tools["a"].found == len(session.findings.of(7))


def test_tools_beyond_a_bound_are_counted_together(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TOOLS", 2)
    found = announced(tmp_path, "".join(called(n, f"t{n}") for n in range(1, 6))).tools
    assert {name: tool.calls for name, tool in found.items()} == {"t1": 1, "t2": 1, OTHERS: 3}


def test_tools_beyond_a_bound_have_the_sum_of_their_newest_listing(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TOOLS", 1)
    tools = [f'{{"name":"t{n}"}}' for n in range(1, 5)]
    assert announced(tmp_path, listed(1, *tools)).tools[OTHERS].size == 3 * len(tools[0])
    pages = (
        listed(1, *tools) + listed(2, *tools[:2]).replace("]}", '],"nextCursor":"x"}') + listed(3, tools[3], cursor="x")
    )
    found = announced(tmp_path, pages).tools
    assert {name: (tool.size, tool.context) for name, tool in found.items()} == {
        "t1": (len(tools[0]),) * 2,
        OTHERS: (2 * len(tools[0]),) * 2,
    }
    assert list(module.duplicates([("a", found.values()), ("b", [found[OTHERS]])])) == []


@pytest.mark.parametrize(
    "value",
    ["null", "7", '"x"', "[]", "{}", '[null,7,{"name":7},{"name":"\\ud800"}]', '{"name":[]}', "1e400", "1" * 30],
)
def test_what_is_of_another_shape_is_gone_through(tmp_path, value):
    told = f'"protocolVersion":{value},"capabilities":{{"a":{value}}},"instructions":{value}'
    text = f"""
    > {{"id":0,"method":"initialize","params":{{"capabilities":{value},"clientInfo":{value}}}}}
    < {{"id":0,"result":{{{told},"serverInfo":{value}}}}}
    > {{"id":1,"method":"tools/list","params":{value}}}
    < {{"id":1,"result":{{"tools":{value}}}}}
    > {{"id":2,"method":"tools/list"}}
    < {{"id":2,"result":{{"tools":[{{"name":"a","x":{value}}}]}}}}
    > {{"id":3,"method":"tools/call","params":{value}}}
    < {{"id":3,"result":{value}}}
    > {{"id":4,"method":"tools/call","params":{{"name":{value}}}}}
    """
    found = announced(tmp_path, text)
    assert found.tools["a"].size >= len('{"name":"a","x":}')
    assert sum(tool.calls for tool in found.tools.values()) == 2


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_the_counts_of_a_golden_capture_are_those_of_its_rows(path):
    with closing(grow(OpenCapture(str(path)))) as session:
        lines = [session.line(place) for place in range(len(session))]
        calls = [line for line in lines if line.method == "tools/call" and line.kind == "request"]
        failed = [line for line in lines if line.method == "tools/call" and line.status in ("error", "tool-error")]
        tools = session.announced.tools.values()
        assert sum(tool.calls for tool in tools) == len(calls)
        assert sum(tool.errors for tool in tools) == len([line for line in failed if line.kind != "request"])
        assert max((tool.latencies.longest for tool in tools), default=0) == max(
            (line.latency or 0 for line in calls), default=0
        )
        assert session.announced.client
        assert session.announced.server


def test_what_results_and_definitions_take_of_a_context_is_counted(tmp_path):
    tool = '{"name":"a","description":"Does it.","inputSchema":{},"title":"A"}'
    text = listed(1, tool) + called(2, "a") + called(3, "a", '{"content":[1,2,3]}') + called(4, "a", '{"isError":true}')
    found = announced(tmp_path, text).tools["a"]
    assert (found.size, found.context) == (len(tool), len(tool) - len(',"title":"A"'))
    assert (found.answers, found.results, found.mean, found.largest) == (3, 14 + 19 + 16, 49 / 3, 19)


def test_tools_that_share_a_name_or_a_definition_are_duplicates():
    def tool(name, mark=b"", size=1):
        return ToolUse(name, size, fingerprint=mark)

    servers = {
        "one": [tool("a", b"x"), tool("b", b"y"), tool("c"), tool("alone")],
        "two": [tool("a", b"x"), tool("b", b"z"), tool("c"), tool("unlisted", size=0)],
        "three": [tool("other", b"x"), tool("again", b"q"), tool("twice", b"q"), tool("unlisted")],
    }
    assert [
        (" ".join(f"{server}.{name}" for server, name in found.tools), found.identical)
        for found in module.duplicates(servers.items())
    ] == [
        ("one.a two.a", True),
        ("one.b two.b", False),
        ("one.c two.c", False),
        ("one.a two.a three.other", True),
    ]
