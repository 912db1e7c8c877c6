import contextlib
import errno
import json
import socket
import subprocess
import sys
import threading

import jsonschema_rs
import orjson
import pytest

from mcpspy.json_values import Number
from mcpspy.spec import peer_schemas
from mcpspy.spec.peer_schemas import LEVELS, SIZE, Foreign, Judgement, Validity
from tests.each import each


def check(schema):
    return Foreign(schema).check()


def judge(schema, instance):
    return Foreign(schema).judge(instance)


OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


@pytest.fixture(autouse=True)
def no_sockets(monkeypatch, request):
    if "listener" in request.fixturenames:
        return

    def forbidden(*_, **__):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", forbidden)


@pytest.fixture
def no_process(monkeypatch):
    """The test fails if a worker process is started."""

    def forbidden(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "run", forbidden)


def test_an_instance_is_judged(no_process):
    assert judge(OBJECT, {"a": "x"}) == Judgement(Validity.VALID)
    assert judge(OBJECT, {"a": 5}) == Judgement(Validity.INVALID, "/a", '5 is not of type "string"')
    assert judge(OBJECT, {}) == Judgement(Validity.INVALID, "", '"a" is a required property')
    assert judge(doubled(5), 1) == Judgement(Validity.VALID)
    assert check(OBJECT) == Judgement(Validity.VALID)


@pytest.mark.parametrize(
    ("dialect", "outcome"),
    [
        ("https://json-schema.org/draft/2020-12/schema", Validity.INVALID),
        ("https://json-schema.org/draft/2019-09/schema", Validity.VALID),
        ("http://json-schema.org/draft-07/schema#", Validity.VALID),
        ("http://json-schema.org/draft-07/schema", Validity.VALID),
        ("http://json-schema.org/draft-06/schema#", Validity.VALID),
        ("http://json-schema.org/draft-04/schema#", Validity.VALID),
        (None, Validity.INVALID),
        ("http://json-schema.org/draft-99/schema#", Validity.UNKNOWN_DIALECT),
        (5, Validity.NO_SCHEMA),
    ],
)
def test_a_schema_is_read_in_its_own_dialect(dialect, outcome, no_process):
    """`prefixItems` is new in 2020-12, which is also the default (2025-11-25, basic)."""
    schema = {"prefixItems": [{"type": "string"}]} | ({} if dialect is None else {"$schema": dialect})
    assert judge(schema, [5]).outcome is outcome


@pytest.mark.parametrize(
    ("schema", "outcome", "pointer"),
    [
        ({"type": "objet"}, Validity.NO_SCHEMA, "/type"),
        ({"properties": {"a": {"required": "a"}}}, Validity.NO_SCHEMA, "/properties/a/required"),
        ([], Validity.NO_SCHEMA, ""),
        ("x", Validity.NO_SCHEMA, ""),
        (None, Validity.NO_SCHEMA, ""),
        ({"pattern": "(?=a)b"}, Validity.UNSUPPORTED, "/pattern"),
        ({"pattern": "(a)\\1"}, Validity.UNSUPPORTED, "/pattern"),
        ({"pattern": "a{1000}{1000}{1000}"}, Validity.UNSUPPORTED, "/pattern"),
        ({"$ref": "http://127.0.0.1:9/schema.json"}, Validity.EXTERNAL, ""),
        ({"$ref": "https://example.com/schema.json"}, Validity.EXTERNAL, ""),
        ({"$ref": "file:///etc/passwd"}, Validity.EXTERNAL, ""),
        ({"$ref": "#/$defs/nowhere"}, Validity.UNRESOLVED, ""),
        (True, Validity.VALID, ""),
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
    assert check(deep(LEVELS)).outcome is Validity.VALID
    assert check(deep(LEVELS + 1)).outcome is Validity.TOO_LARGE
    assert check(deep(5000)).outcome is Validity.TOO_LARGE
    assert judge(deep(5000), 1).outcome is Validity.TOO_LARGE
    room = SIZE - len(json.dumps({"title": ""}, separators=(",", ":")))
    assert check({"title": "x" * room}).outcome is Validity.VALID
    assert check({"title": "x" * (room + 1)}).outcome is Validity.TOO_LARGE


def test_a_regex_bomb_takes_linear_time(no_process):
    assert judge({"pattern": "^(a+)+$"}, "a" * 50_000 + "!").outcome is Validity.INVALID


def doubled(levels):
    """Return a schema in which each level refers to the next level twice."""
    defs = {f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)}
    return {"$defs": defs | {f"d{levels}": {"type": "integer"}}, "$ref": "#/$defs/d0"}


TREE = {"type": "object", "properties": {"of": {"type": "array", "items": {"$ref": "#"}}}, "required": ["of"]}


def new(title):
    """Return a schema that has no cached judgement."""
    return TREE | {"title": title}


def test_a_schema_that_refers_to_itself_is_judged_apart(monkeypatch):
    monkeypatch.setattr(peer_schemas, "SECONDS", 30)  # a busy machine may start a process slowly
    assert judge(TREE, {"of": [{"of": []}]}) == Judgement(Validity.VALID)
    found = judge(TREE, {"of": [{"of": [{}]}]})
    assert (found.outcome, found.pointer) == (Validity.INVALID, "/of/0/of/0")
    assert check(TREE).outcome is Validity.VALID
    assert check({"$ref": "#"}).outcome is Validity.VALID
    assert check(TREE | {"$schema": "x:y"}).outcome is Validity.UNKNOWN_DIALECT


def test_an_exponential_schema_on_a_deep_instance_is_killed():
    """A-12: the kernel ends the process after CPU_SECONDS, which it set before it read the schema."""
    schema = {"anyOf": [{"properties": {"a": {"$ref": "#"}}, "required": ["b"]},
                        {"properties": {"a": {"$ref": "#"}}, "required": ["c"]}]}  # fmt: skip
    instance = {}
    for _ in range(60):
        instance = {"a": instance, "b": 1, "c": 1}
    assert judge(schema, instance).outcome is Validity.TOO_COSTLY


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of computing")
def test_a_busy_machine_is_no_fault_of_the_schema(monkeypatch):
    """A-12: a process that got no processor time gives no judgement."""
    monkeypatch.setattr(peer_schemas, "SECONDS", 0.05)
    monkeypatch.setattr(peer_schemas, "WORKER", "import time; time.sleep(30)")
    found = judge(TREE, {"of": "busy"})
    assert (found.outcome, "too busy" in found.message) == (Validity.NOT_JUDGED, True)


@pytest.fixture
def apart(monkeypatch):
    """Let the separate process end as in `outcomes`, one after the other. Return the function that sets them."""

    def outcomes(*outcomes):
        left = list(outcomes)

        def run(*_, **__):
            outcome = left.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return subprocess.CompletedProcess([], 0, json.dumps([outcome.value, "", ""]).encode())

        monkeypatch.setattr(subprocess, "run", run)
        return left

    return outcomes


LATE = subprocess.TimeoutExpired("python", 5)
FULL = BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of computing")
@pytest.mark.parametrize("hindrance", [LATE, FULL], ids=["late", "not started"])
def test_a_22_what_the_machine_prevented_is_not_remembered_as_a_judgement(apart, hindrance):
    left = apart(hindrance, hindrance, Validity.INVALID)
    schema = new(f"prevented by {hindrance}")
    found = [judge(schema, {"of": []}).outcome for _ in range(5)]
    assert found == [Validity.NOT_JUDGED] * 2 + [Validity.INVALID] * 3
    assert not left


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of computing")
def test_a_22_a_question_is_tried_a_few_times_only(apart):
    apart(*[LATE] * peer_schemas.TRIES)
    schema = new("always late")
    found = [judge(schema, {"of": []}) for _ in range(2 * peer_schemas.TRIES)]
    assert {it.outcome for it in found} == {Validity.NOT_JUDGED}


def test_a_22_a_question_that_used_up_its_computing_time_is_not_tried_again(apart):
    apart(subprocess.CalledProcessError(-9, "python"))
    schema = new("costly")
    assert [judge(schema, {"of": []}).outcome for _ in range(3)] == [Validity.TOO_COSTLY] * 3


def test_a_name_that_no_reference_uses_needs_no_process(no_process):
    """JSON Schema 2020-12, 8.2.2: a tool of the conformance suite has such an anchor."""
    address = {"$anchor": "address", "type": "object"}
    schema = {"$defs": {"a": address}, "properties": {"at": {"$ref": "#/$defs/a"}}}
    assert judge(schema, {"at": 5}).outcome is Validity.INVALID


def test_a_process_that_breaks_is_an_outcome(monkeypatch):
    monkeypatch.setattr(peer_schemas, "WORKER", "import os; os.abort()")
    assert judge(new("aborted"), {}).outcome is Validity.TOO_COSTLY


def test_a_process_that_fails_by_a_bug_of_ours_says_nothing_of_the_schema(monkeypatch):
    """A-12."""
    monkeypatch.setattr(peer_schemas, "SECONDS", 30)
    monkeypatch.setattr(peer_schemas, "WORKER", "raise TypeError('a bug')")
    found = judge(new("failed"), {})
    assert found.outcome is Validity.NOT_JUDGED
    assert "bug of mcpspy" in found.message


def test_a_validator_that_fails_says_nothing_of_the_schema(monkeypatch):
    """A-12: neither if building it fails nor if using it fails."""

    class Failing:
        at_once = True

        def __init__(self, *args, **options):
            if self.at_once:
                raise ValueError("Recursion limit reached")

        def is_valid(self, instance):
            raise ValueError("Recursion limit reached")

        validate = is_valid

    monkeypatch.setitem(peer_schemas.DRAFTS, peer_schemas.DIALECT, Failing)
    for Failing.at_once in (True, False):
        found = judge({"title": f"A-12 {Failing.at_once}"}, 1)
        assert found == Judgement(Validity.NOT_JUDGED, "", "the validator failed: Recursion limit reached")


@pytest.fixture
def asked_apart(monkeypatch):
    """Return a list that collects the schemas that the separate process would get; it calls each one valid."""
    asked = []
    monkeypatch.setattr(peer_schemas, "judge_apart", lambda raw, _: asked.append(raw) or Judgement(Validity.VALID))
    return asked


def test_much_to_judge_is_judged_apart(asked_apart):
    schema = {"items": {"enum": list(range(500))}}
    judge(schema, [1] * 100)
    assert not asked_apart
    judge(schema, [1] * 30_000)
    assert asked_apart


@each("instance", ["\ud800", {"\ud800": 1}, Number("1" * 5000), 10**400, float("nan"), deep(1000), [[]] * 1000, None])
def test_no_instance_makes_a_judge_stumble(instance):
    for schema in ({"type": "object"}, TREE, {"title": "\ud800"}, {"maximum": 10**400}, {}):
        assert isinstance(judge(schema, instance), Judgement)


def test_a_question_that_was_answered_is_not_asked_again(monkeypatch):
    monkeypatch.setattr(peer_schemas, "SECONDS", 30)
    asked = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: asked.append(args) or run(*args, **options))
    assert [judge(new("asked"), {"of": []}).outcome for _ in range(5)] == [Validity.VALID] * 5
    assert len(asked) == 1


def test_a_budget_that_is_spent_ends_what_would_take_a_process(monkeypatch):
    spent = peer_schemas.Budget(0)
    monkeypatch.setattr(peer_schemas, "judge_apart", lambda *_: pytest.fail("a process was started"))
    assert Foreign(TREE, spent).judge({"of": []}).outcome is Validity.NOT_JUDGED
    assert Foreign(TREE, spent).check().outcome is Validity.NOT_JUDGED
    assert Foreign(OBJECT, spent).judge({}).outcome is Validity.INVALID


def test_judging_apart_takes_from_the_budget(asked_apart):
    budget = peer_schemas.Budget(1)
    Foreign(TREE, budget).judge({})
    Foreign(OBJECT, budget).judge({})
    assert 0.5 < budget.left < 1


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel as Linux does")
def test_the_process_is_bounded_before_it_reads_what_to_judge():
    """The process must also end if its parent is killed."""
    program = """
import ctypes, resource, sys
from mcpspy.spec import peer_schemas

class Stdin:
    def read(self):
        signal = ctypes.c_int()
        ctypes.CDLL(None).prctl(2, ctypes.byref(signal))
        print(signal.value, *resource.getrlimit(resource.RLIMIT_CPU))
        sys.exit()

Stdin.buffer = Stdin()
sys.stdin = Stdin()
peer_schemas.work()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    signal, soft, hard = map(int, done.stdout.split())
    assert (signal, soft) == (9, hard)
    assert 2 <= soft < 20  # its start used some of the limit


def chain(levels, **link):
    """Return definitions in which each one refers twice to the one before it."""
    found = {"l0": {"type": "object"} | {key: value.format(0) for key, value in link.items() if "Anchor" in key}}
    for level in range(1, levels + 1):
        reference = {key: value.format(level - 1) for key, value in link.items() if "Ref" in key}
        anchor = {key: value.format(level) for key, value in link.items() if "Anchor" in key}
        found[f"l{level}"] = anchor | {"allOf": [reference, reference]}
    return found


def nested(levels):
    schema = {"type": "object"}
    for _ in range(levels):
        schema = {"if": schema, "then": True, "unevaluatedProperties": False}
    return schema


@each(
    "schema",
    [
        {"enum": list(range(2000))},
        {"anyOf": [{"type": "string"}] * 2000},
        {"properties": {f"p{number}": {"pattern": "a"} for number in range(100)}},
        {"patternProperties": {f"p{number}": {} for number in range(100)}},
        {"$ref": "other.json"},
        TREE,
        doubled(10),
        {"$defs": chain(30, **{"$dynamicAnchor": "l{}", "$dynamicRef": "#l{}"}), "$dynamicRef": "#l30"},
        {
            "$defs": {f"l{level}": True for level in range(31)},
            "allOf": [{"$id": "http://x/y", "$defs": chain(30, **{"$ref": "#/$defs/l{}"}), "$ref": "#/$defs/l30"}],
        },
        nested(25),
    ],
    ids=lambda schema: json.dumps(schema)[:60],
)
def test_what_may_cost_much_is_judged_apart(schema, asked_apart):
    """Also what only the library could weigh: dynamic references, another root, unevaluated members."""
    asked_apart.clear()
    judge(schema, 1)
    assert len(asked_apart) == 1


def test_values_in_a_schema_weigh_nothing():
    schema = {"type": "object", "default": {"id": "x", "$ref": "#"}, "examples": [{"$id": "y"}], "const": {"id": "z"}}
    assert peer_schemas.weight(orjson.dumps(schema)) == 0


@pytest.fixture
def listener():
    """A local port that closes each connection; `hits()` is the number of connections so far."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        seen, own = [], []

        def hang_up():
            with contextlib.suppress(OSError):  # the listener is closed
                while True:
                    connection, address = server.accept()
                    seen.append(address)
                    connection.close()

        def hits():
            with socket.create_connection(server.getsockname(), 60) as last:
                own.append(last.getsockname())
                last.recv(1)  # earlier connections are counted by now
            return len(seen) - len(own)

        threading.Thread(target=hang_up, daemon=True).start()
        yield server.getsockname()[1], hits
        server.shutdown(socket.SHUT_RDWR)


def test_nothing_is_fetched_by_whatever_code(listener):
    """jsonschema_rs opens sockets in native code, and the worker is another process, so a port counts connections."""
    port, hits = listener
    url = f"http://127.0.0.1:{port}/schema"
    for schema in (
        {"$ref": url},
        {"$schema": url},
        {"$id": url, "$ref": "other"},
        {"properties": {"a": {"$ref": url}}, "$dynamicRef": url},
        {"$ref": "#", "$defs": {"a": {"$ref": url}}},
    ):
        check(schema)
        judge(schema, {"a": 1})
    assert hits() == 0
    with pytest.raises((ValueError, jsonschema_rs.ValidationError)):
        jsonschema_rs.Draft202012Validator({"$ref": url})  # without our retriever, for comparison
    assert hits() >= 1
