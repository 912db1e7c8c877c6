import importlib.util
import json
import random
import socket
from pathlib import Path

import jsonschema
import jsonschema_rs
import pytest

from mcpspy.json_values import Number
from mcpspy.spec import schema
from mcpspy.spec.definitions import definitions
from mcpspy.spec.revisions import R2024_11_05, R2025_06_18, R2025_11_25, R2026_07_28, Revision
from mcpspy.spec.schema import PLACES, explain, refuse, verdict
from mcpspy.wire.jsonrpc import parse
from tests import NIGHTLY
from tests.cases import pairs
from tests.each import each
from tests.limits import proportionate
from tests.spec.instances import CAPTURES, made_up, spoilt, spoken
from tests.spec.reference import EXAMPLES, corrected, needed

SPOKEN = [spoken_ for path in CAPTURES for spoken_ in spoken(path)]
SMALL = [(revision, definition, value) for revision, definition, value, _ in SPOKEN if len(json.dumps(value)) < 4000]


TURNS = 20_000 if NIGHTLY else 4_000


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_every_message_of_a_real_session_has_its_shape(path):
    found = list(spoken(path))
    assert len(found) >= 7
    refused = [f"{where} {explain(revision, name, value)}" for revision, name, value, where in found
               if not verdict(revision, name, value)]  # fmt: skip
    assert refused == []


@needed
@each("path", EXAMPLES)
def test_every_official_example_has_the_shape_of_its_folder(path):
    assert not explain(R2026_07_28, path.parent.name, json.loads(path.read_text()))


@needed
def test_the_official_schemas_and_ours_give_the_same_verdicts():
    """TURNS generated and damaged messages, for every definition of every revision, and messages of real sessions."""
    chance = random.Random(20261120)  # noqa: S311
    official = {
        (revision, name): jsonschema_rs.Draft202012Validator(
            {"$defs": corrected(revision), "$ref": f"#/$defs/{name}"}, validate_formats=False, retriever=refuse
        )
        for revision in Revision
        for name in definitions(revision)
    }
    wholes = [(revision, name) for revision in Revision for name in definitions(revision)]
    examples = [(R2026_07_28, path.parent.name, json.loads(path.read_text())) for path in EXAMPLES]
    seen = {True: 0, False: 0}
    for turn in range(TURNS):
        revision, name = wholes[turn % len(wholes)]
        if turn % 4 == 3:
            revision, name, value = chance.choice(examples if turn % 8 == 3 else SMALL)
        else:
            there = definitions(revision) if turn % 4 == 2 else corrected(revision)
            value = made_up(there[name], there, chance)
        if turn % 3:
            value = spoilt(value, chance)
        ours = verdict(revision, name, value)
        assert ours == official[revision, name].is_valid(value), f"{revision.value} {name}: {value}"
        seen[ours] += 1
    assert min(seen.values()) > TURNS / 4


def test_the_two_validators_agree_on_spoilt_messages_of_real_sessions():
    chance = random.Random(4)  # noqa: S311
    explainers = {}
    refused = 0
    for _ in range(TURNS):
        revision, name, value = chance.choice(SMALL)
        value = spoilt(value, chance)
        if (revision, name) not in explainers:
            explainers[revision, name] = jsonschema.Draft202012Validator(schema.self_contained(revision, name))
        ours = verdict(revision, name, value)
        assert ours == explainers[revision, name].is_valid(value), f"{revision.value} {name}: {value}"
        refused += not ours
    assert TURNS / 20 < refused < TURNS * 0.95


def test_every_refusal_has_an_explanation_and_nothing_else_has():
    chance = random.Random(5)  # noqa: S311
    for _ in range(1_000):
        revision, name, value = chance.choice(SMALL)
        value = spoilt(value, chance)
        before = json.dumps(value)
        why = explain(revision, name, value)
        assert (not why) == verdict(revision, name, value)
        assert json.dumps(value) == before
        assert not any("what the definition says" in it.expected for it in why), why


def call(**params):
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


TOOL = {"name": "a", "inputSchema": {"type": "object"}}


@each("text, sentence", pairs(Path(__file__).parent / "explanations.txt"))
def test_an_explanation_says_where_and_what(text, sentence):
    definition, _, message = text.partition(" ")
    message = json.loads(message)
    assert not verdict(R2025_11_25, definition, message)
    assert str(explain(R2025_11_25, definition, message)[0]) == sentence


def test_each_place_is_explained():
    tool = TOOL | {"title": None, "annotations": {"title": 5}}
    found = explain(R2025_11_25, "ListToolsResult", {"tools": [tool, tool, {"name": "b"}, 7], "nextCursor": None})
    assert list(map(str, found)) == [
        "/nextCursor: expected a string, got null",
        "/tools/0/annotations/title: expected a string, got 5",
        "/tools/0/title: expected a string, got null",
        "/tools/1/annotations/title: expected a string, got 5",
        "/tools/1/title: expected a string, got null",
        '/tools/2: expected the member "inputSchema", got {"name": …}',
        "/tools/3: expected an object, got 7",
    ]


def test_each_refused_member_of_a_union_is_explained_up_to_a_few():
    found = explain(R2025_11_25, "CallToolResult", {"content": [{"type": "text"}] * 9})
    assert {it.expected for it in found[:4]} == {'the member "text"'}
    assert [it.pointer for it in found] == [f"/content/{n}" for n in range(9)]


def test_a_message_with_any_number_of_faults_is_explained_quickly():
    with proportionate(3):
        assert len(explain(R2025_11_25, "ListToolsResult", {"tools": [3] * 1_000_000})) == PLACES
        large = [TOOL | {"title": 5, "_meta": {str(n): n for n in range(100)}}] * 400
        assert len(explain(R2025_11_25, "ListToolsResult", {"tools": large})) == 1


def test_an_explanation_of_2026_07_28():
    result = {"resultType": "complete", "completion": {"values": ["a"] * 101}}
    (why,) = explain(R2026_07_28, "CompleteResult", result)
    assert str(why) == "/completion/values: expected at most 100 items, got an array of 101"
    asked = {"resultType": "input_required", "inputRequests": {"a": {"method": "tools/list"}}}
    assert explain(R2026_07_28, "InputRequiredResult", asked)[0].pointer == "/inputRequests/a/method"


def deep(levels):
    value = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("raw", "fine"),
    [
        (b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}', True),
        (b'{"jsonrpc":"2.0","id":1' + b"0" * 5000 + b',"method":"ping"}', True),
        (b'{"jsonrpc":"2.0","id":-1' + b"0" * 5000 + b',"method":"ping"}', True),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping","params":{"\\ud800":"\\udfff"}}', True),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":{"_meta":5,"\\ud800":1' + b"0" * 5000 + b"}}", False),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":"a","method":"ping\xff"}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 900 + b"1" + b"}" * 901, True),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 900 + b"]" * 900 + b"}", False),
    ],
)
def test_no_message_makes_a_validator_stumble(raw, fine):
    (body,) = parse(raw)
    assert body.value is not None
    assert verdict(R2025_11_25, "PingRequest", body.value) is fine
    assert (not explain(R2025_11_25, "PingRequest", body.value)) is fine


@pytest.mark.parametrize("levels", [200, 1000, 5000])
def test_depth_is_no_trouble_where_a_shape_refers_to_itself(levels):
    capabilities = {"experimental": {"a": deep(levels)}}
    assert verdict(R2026_07_28, "ClientCapabilities", capabilities)
    wrong = capabilities | {"elicitation": 5}
    assert not verdict(R2026_07_28, "ClientCapabilities", wrong)
    assert explain(R2026_07_28, "ClientCapabilities", wrong)[0].pointer == "/elicitation"


def test_a_number_with_thousands_of_digits_is_a_number():
    assert not verdict(R2025_11_25, "CallToolRequest", call(name=Number("1" * 5000)))
    (why,) = explain(R2025_11_25, "CallToolRequest", call(name=Number("1" * 5000)))
    assert str(why) == "/params/name: expected a string, got a number of many digits"


def test_a_definition_that_a_revision_lacks_is_our_mistake():
    with pytest.raises(KeyError):
        verdict(R2024_11_05, "ResourceLink", {})
    with pytest.raises(KeyError):
        explain(R2024_11_05, "ResourceLink", {})


def test_a_long_list_is_explained_by_the_item_that_is_wrong():
    tools = [TOOL] * 20_000 + [{"name": 5, "inputSchema": {"type": "object"}}]
    (why,) = explain(R2025_06_18, "ListToolsResult", {"tools": tools})
    assert str(why) == "/tools/20000/name: expected a string, got 5"


def test_nothing_is_fetched(monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", forbidden)
    remote = {"$ref": "http://127.0.0.1:9/schema.json"}
    with pytest.raises(Exception, match="is not fetched"):
        jsonschema_rs.Draft202012Validator(remote, retriever=refuse)
    found = importlib.util.find_spec(schema.__name__)
    anew = importlib.util.module_from_spec(found)  # a new module without cached validators
    found.loader.exec_module(anew)
    assert not anew.verdict(R2025_11_25, "Tool", 5)
    assert anew.explain(R2025_11_25, "Tool", 5)[0].pointer == ""


def test_a_validator_holds_only_what_its_definition_needs():
    needed = schema.self_contained(R2025_11_25, "ListToolsResult")["$defs"]
    assert set(needed) == {"ListToolsResult", "Tool", "ToolAnnotations", "ToolExecution", "Icon"}
