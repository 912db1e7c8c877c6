import json
import socket
import subprocess
import time

import pytest

from mcpspy.jsonrpc import Number
from mcpspy.protocol import foreign
from mcpspy.protocol.foreign import LEVELS, SIZE, Foreign, Judgement, Outcome


def check(schema):
    return Foreign(schema).check()


def judge(schema, instance):
    return Foreign(schema).judge(instance)


OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


@pytest.fixture(autouse=True)
def no_sockets(monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", forbidden)


@pytest.fixture
def no_process(monkeypatch):
    """What follows has to be judged in this process."""

    def forbidden(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "run", forbidden)


def test_an_instance_is_judged(no_process):
    assert judge(OBJECT, {"a": "x"}) == Judgement(Outcome.VALID)
    assert judge(OBJECT, {"a": 5}) == Judgement(Outcome.INVALID, "/a", '5 is not of type "string"')
    assert judge(OBJECT, {}) == Judgement(Outcome.INVALID, "", '"a" is a required property')
    assert check(OBJECT) == Judgement(Outcome.VALID)


@pytest.mark.parametrize(
    ("dialect", "outcome"),
    [
        ("https://json-schema.org/draft/2020-12/schema", Outcome.INVALID),
        ("https://json-schema.org/draft/2019-09/schema", Outcome.VALID),
        ("http://json-schema.org/draft-07/schema#", Outcome.VALID),
        ("http://json-schema.org/draft-07/schema", Outcome.VALID),
        ("http://json-schema.org/draft-06/schema#", Outcome.VALID),
        ("http://json-schema.org/draft-04/schema#", Outcome.VALID),
        (None, Outcome.INVALID),
        ("http://json-schema.org/draft-99/schema#", Outcome.UNKNOWN_DIALECT),
        (5, Outcome.NO_SCHEMA),
    ],
)
def test_a_schema_is_read_in_its_own_dialect(dialect, outcome, no_process):
    """`prefixItems` is new in 2020-12, which is also the default (2025-11-25, basic)."""
    schema = {"prefixItems": [{"type": "string"}]} | ({} if dialect is None else {"$schema": dialect})
    assert judge(schema, [5]).outcome is outcome


@pytest.mark.parametrize(
    ("schema", "outcome", "pointer"),
    [
        ({"type": "objet"}, Outcome.NO_SCHEMA, "/type"),
        ({"properties": {"a": {"required": "a"}}}, Outcome.NO_SCHEMA, "/properties/a/required"),
        ([], Outcome.NO_SCHEMA, ""),
        ("x", Outcome.NO_SCHEMA, ""),
        (None, Outcome.NO_SCHEMA, ""),
        ({"pattern": "(?=a)b"}, Outcome.UNSUPPORTED, "/pattern"),
        ({"pattern": "(a)\\1"}, Outcome.UNSUPPORTED, "/pattern"),
        ({"pattern": "a{1000}{1000}{1000}"}, Outcome.UNSUPPORTED, "/pattern"),
        ({"$ref": "http://127.0.0.1:9/schema.json"}, Outcome.UNRESOLVED, ""),
        ({"$ref": "https://example.com/schema.json"}, Outcome.UNRESOLVED, ""),
        ({"$ref": "file:///etc/passwd"}, Outcome.UNRESOLVED, ""),
        ({"$ref": "#/$defs/nowhere"}, Outcome.UNRESOLVED, ""),
        (True, Outcome.VALID, ""),
    ],
)
def test_what_cannot_be_judged_by_says_why(schema, outcome, pointer):
    for found in (check(schema), judge(schema, {})):
        assert (found.outcome, found.pointer) == (outcome, pointer)
        assert len(found.message) <= 200
        assert "passwd" not in found.message or "root" not in found.message


def deep(levels):
    schema = {}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


def test_what_is_too_large_or_too_deep_is_not_looked_at(no_process):
    assert check(deep(LEVELS)).outcome is Outcome.VALID
    assert check(deep(LEVELS + 1)).outcome is Outcome.TOO_LARGE
    assert check(deep(5000)).outcome is Outcome.TOO_LARGE
    assert judge(deep(5000), 1).outcome is Outcome.TOO_LARGE
    room = SIZE - len(json.dumps({"title": ""}, separators=(",", ":")))
    assert check({"title": "x" * room}).outcome is Outcome.VALID
    assert check({"title": "x" * (room + 1)}).outcome is Outcome.TOO_LARGE


def test_a_regex_bomb_takes_linear_time(no_process):
    assert judge({"pattern": "^(a+)+$"}, "a" * 50_000 + "!").outcome is Outcome.INVALID


def doubled(levels):
    """Each level refers to the next one twice."""
    defs = {f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)}
    return {"$defs": defs | {f"d{levels}": {"type": "integer"}}, "$ref": "#/$defs/d0"}


def test_doubled_references_end_within_their_time():
    """DESIGN section 4: 28 levels take three seconds."""
    assert judge(doubled(5), 1) == Judgement(Outcome.VALID)
    start = time.monotonic()
    assert judge(doubled(30), 1).outcome is Outcome.TOO_COSTLY
    assert time.monotonic() - start < 3


TREE = {"type": "object", "properties": {"of": {"type": "array", "items": {"$ref": "#"}}}, "required": ["of"]}


def test_a_schema_that_refers_to_itself_is_judged_apart(monkeypatch):
    monkeypatch.setattr(foreign, "SECONDS", 30)  # a busy machine may start a process slowly
    assert judge(TREE, {"of": [{"of": []}]}) == Judgement(Outcome.VALID)
    found = judge(TREE, {"of": [{"of": [{}]}]})
    assert (found.outcome, found.pointer) == (Outcome.INVALID, "/of/0/of/0")
    assert check(TREE).outcome is Outcome.VALID
    assert check({"$ref": "#"}).outcome is Outcome.VALID
    assert check(TREE | {"$schema": "x:y"}).outcome is Outcome.UNKNOWN_DIALECT


def test_an_exponential_schema_on_a_deep_instance_is_killed():
    schema = {"anyOf": [{"properties": {"a": {"$ref": "#"}}, "required": ["b"]},
                        {"properties": {"a": {"$ref": "#"}}, "required": ["c"]}]}  # fmt: skip
    instance = {}
    for _ in range(60):
        instance = {"a": instance, "b": 1, "c": 1}
    start = time.monotonic()
    assert judge(schema, instance).outcome is Outcome.TOO_COSTLY
    assert time.monotonic() - start < 3


def test_a_process_that_breaks_is_an_outcome(monkeypatch):
    monkeypatch.setattr(foreign, "_WORKER", "import os; os.abort()")
    assert judge(TREE, {}).outcome is Outcome.TOO_COSTLY


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": list(range(2000))},
        {"anyOf": [{"type": "string"}] * 2000},
        {"properties": {f"p{number}": {"pattern": "a"} for number in range(100)}},
        {"patternProperties": {f"p{number}": {} for number in range(100)}},
        {"$ref": "other.json"},
        TREE,
        doubled(10),
    ],
    ids=lambda schema: json.dumps(schema)[:30],
)
def test_what_may_cost_much_is_judged_apart(schema, monkeypatch):
    asked = []
    monkeypatch.setattr(foreign, "_apart", lambda raw, _: asked.append(raw) or Judgement(Outcome.VALID))
    judge(schema, 1)
    assert asked


def test_much_to_judge_is_judged_apart(monkeypatch):
    schema = {"items": {"enum": list(range(500))}}
    asked = []
    monkeypatch.setattr(foreign, "_apart", lambda raw, _: asked.append(raw) or Judgement(Outcome.VALID))
    judge(schema, [1] * 100)
    assert not asked
    judge(schema, [1] * 30_000)
    assert asked


@pytest.mark.parametrize(
    "instance",
    ["\ud800", {"\ud800": 1}, Number("1" * 5000), 10**400, float("nan"), deep(1000), [[]] * 1000, None],
    ids=lambda instance: type(instance).__name__,
)
@pytest.mark.parametrize("schema", [{"type": "object"}, TREE, {"title": "\ud800"}, {"maximum": 10**400}, {}])
def test_no_instance_makes_a_judge_stumble(schema, instance):
    assert isinstance(judge(schema, instance), Judgement)
