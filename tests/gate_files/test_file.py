import json
import math
import os
import tempfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcpspy.errors import GateError
from mcpspy.gate.check import BOUNDS, GATES, TEXTS
from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate_files.file import ACTIONS, LARGEST, TRANSPORTS, compile_file
from tests import NIGHTLY
from tests.each import each
from tests.transcript import capture

FILE = """\
seed = 7                                      # chance is the same in every run
[[gate]]
name   = "slow and flaky search"
when   = 'method:tools/call name:search* from:client'   # docs/filters.md
delay  = "2s"
chance = 0.2
[[gate]]
when = "kind:error"
drop = true
after = 10
times = 1
"""
SESSION = '> {"id":1,"method":"tools/list"}\n< {"id":1,"result":{"tools":[]}}'


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """Compile the text of a file called `gates.toml`, next to a capture called `weather.jsonl`."""
    monkeypatch.chdir(tmp_path)
    capture(tmp_path / "weather.jsonl", SESSION)

    def compile_text(text, transport="stdio"):
        (tmp_path / "gates.toml").write_text(text, encoding="utf-8")
        return compile_file("gates.toml", transport)

    return compile_text


def test_a_file_becomes_gates_in_its_order(compiled):
    assert compiled(FILE) == [
        {
            "name": "slow and flaky search",
            "when": {"method": "tools/call", "name": "search*", "from": "client"},
            "action": {"delay": 2_000_000_000},
            "chance": 0.2,
            "seed": 7,
        },
        {"name": "2", "when": {"kind": "error"}, "action": {"drop": True}, "after": 10, "times": 1, "seed": 7},
    ]
    assert compiled("\ufeff" + FILE.replace("\n", "\r\n")) == compiled(FILE)


ALL = [
    ('hold = "60s"', {"hold": 60_000_000_000}),
    ('delay = "500ms"', {"delay": 500_000_000}),
    ('throttle = "10kB/s"', {"throttle": 10_000}),
    ('edit = [ {op = "replace", path = "/params/name", value = "x"} ]', {"edit": [
        {"op": "replace", "path": "/params/name", "value": "x"}]}),
    ("drop = true", {"drop": True}),
    ("repeat = 2", {"repeat": 2}),
    ('answer = { result = { n = 1, x = 1.0 } }\ndelay = "1s"', {
        "answer": '{"result":{"n":1,"x":1.0}}', "delay": 1_000_000_000}),
    ("[gate.answer.error]\ncode = -32000", {"answer": '{"error":{"code":-32000}}'}),
    ('send = "text"', {"send": "text"}),
    ('send = ["a", "b"]', {"send": ["a", "b"]}),
    ("cut = 100", {"cut": 100}),
    ('garble = "not-json"', {"garble": "not-json"}),
    ("close = true", {"close": True}),
    ("status = 503", {"status": 503}),
    ("exit = 1", {"exit": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "action"), ALL)
def test_every_action_is_compiled(compiled, text, action):
    gates = compiled(f"[[gate]]\n{text}", "http" if "status" in action else "stdio")
    assert gates == [{"name": "1", "when": {}, "action": action}]
    assert DeclaredGate(gates[0]).by == "gate 1"


def test_a_recording_is_found_beside_the_file(compiled, tmp_path):
    path = str(tmp_path / "weather.jsonl")
    for miss in ("", 'miss = "nearest"'):
        (gate,) = compiled(f'[[gate]]\nanswer-from = "weather.jsonl"\n{miss}')
        assert gate["action"] == {"answer-from": {"file": path, "miss": "nearest" if miss else "forward"}}


def test_frames_may_pass_one_that_waits(compiled):
    (gate,) = compiled('[[gate]]\nhold = "1s"\nreorder = true')
    assert gate["reorder"] is True


def test_every_action_is_tested():
    assert {key for _, action in ALL for key in action} | {"answer-from"} == {*ACTIONS, "delay"}


HINT = "write texts in quotes, and [[gate]] above each gate"
CAN = "a gate can ask for method, name, id, from, kind, size and text"
MISTAKES = [
    ("delay = 2s", "2:10: this is not valid TOML: expected newline or end of document after a statement; " + HINT),
    ("when = 'a", "2:10: this is not valid TOML: expected \"'\"; " + HINT),
    ("drop = true\ndrop = true", "3:12: this is not valid TOML: cannot overwrite a value; " + HINT),
    ("drop = maybe", "2:8: this is not valid TOML: invalid value; " + HINT),
    ("dorp = true", '2:1: a gate has no key "dorp"; did you mean \'drop\'?'),
    ("drop = true\n[seeed]", '3:1: a gate file has no key "seeed"; did you mean \'seed\'?'),
    ("drop = true\n[defaults]", '3:1: a gate file has no key "defaults"; it takes seed, gate'),
    ("", ("1:1: the gate does nothing; give it an action: hold, throttle, edit, drop, repeat, answer, answer-from,"
     " send, cut, garble, close, status, exit or delay")),
    ("drop = true\n  answer = {result = 1}", "3:3: drop and answer are two actions; make two gates of them"),
    ("drop = false", "2:8: drop: it is false; write true, or leave it out"),
    ("delay = 2", '2:9: delay: it is 2; write a time with its unit (us, ms or s), such as "500ms" or "1.5s"'),
    ('delay = "2h"', '2:9: delay: it is "2h"; write a time with its unit (us, ms or s), such as "500ms" or "1.5s"'),
    ("hold = true", '2:8: hold: it is true; write a time with its unit (us, ms or s), such as "500ms" or "1.5s"'),
    ('hold = "25000m"', ('2:8: hold: it is "25000m"; write a time with its unit (us, ms or s), such as "500ms" or'
     ' "1.5s"')),
    ('throttle = "10kB"', ('2:12: throttle: it is "10kB"; write a rate with its unit (B/s, kB/s, MB/s, KiB/s or MiB/s),'
     ' such as "10kB/s"')),
    ("repeat = 1", "2:10: repeat: it is 1; write a whole number from 2 to 10000"),
    ("cut = -1", "2:7: cut: it is -1; write a whole number from 0 to 1073741824"),
    ("garble = 'utf8'", '2:10: garble: it is "utf8"; it takes not-json, invalid-utf8, bom'),
    ("status = 503", "2:1: status answers an HTTP request, and stdio has none; use answer, close or exit"),
    ("exit = 256", "2:8: exit: it is 256; write a whole number from 0 to 255"),
    ("send = 5", "2:8: send: it is 5; write a text in quotes, or an array of texts"),
    ("answer = {reslt = 1}", ('2:10: answer: it is {"reslt": …}; write a table with result or error, such as'
     " { result = {} }")),
    ("answer = {result = 2026-01-01}", ("2:10: answer: it holds a date or time, which JSON does not have; write it as a"
     " text in quotes")),
    ("edit = [{op = 'add', path = '/a'}]", "2:8: edit: operation 1: add needs value; it takes path and value"),
    ("edit = [{op = 'ad', path = '/a'}]", '2:8: edit: operation 1: op is "ad"; did you mean \'add\'?'),
    ("edit = [{op = 'remove', path = 'a'}]", ("2:8: edit: operation 1: location must start with /; a JSON Pointer"
     ' begins with / (RFC 6901), such as "/params"')),
    ("drop = true\nchance = 2", "3:10: chance: it is 2; write a number from 0 to 1, such as 0.2"),
    ("drop = true\nafter = -1", "3:9: after: it is -1; write a whole number from 0 to 9007199254740992"),
    ("drop = true\ntimes = 0", "3:9: times: it is 0; write a whole number from 1 to 9007199254740992"),
    ("drop = true\nreorder = true", "3:1: no frame waits here; use reorder together with hold, delay or throttle"),
    ("drop = true\nmiss = 'nearest'", "3:1: miss says what answer-from does; use them together"),
    ("answer-from = 'weather.jsonl'\nmiss = 'near'", '3:8: miss: it is "near"; did you mean \'nearest\'?'),
    ("drop = true\nname = ''", '3:8: name: it is ""; write a text in quotes'),
    ("drop = true\nname = 'a'\n[[gate]]\ndrop = true\nname = 'a'", '6:8: two gates have the name "a"; rename one'),
    ("drop = true\nname = '2'\n[[gate]]\ndrop = true", '4:1: two gates have the name "2"; rename one'),
    ("when = 5\ndrop = true", "2:8: when is 5; write a filter in quotes, such as 'method:tools/call'"),
    ("when = 'metod:tools/call'\ndrop = true", "2:9: when: unknown key 'metod'; did you mean 'method'?"),
    ("when = 'from:client status:error'\ndrop = true", "2:21: when: status:error needs more than one frame to answer; "
     + CAN),
    ('when = "\\tfrom:client \\" x"\ndrop = true', "2:23: when: a quote is not closed"),
    ('when = """\nfrom:client\nkind:stderr"""\ndrop = true', ("4:1: when: kind:stderr never passes a gate; kind is"
     " request, notification, result or error")),
    ("when = 'text:a from:mcpspy'\ndrop = true", ("2:16: when: from:mcpspy never passes a gate; from is client or"
     " server")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line"), MISTAKES)
def test_a_mistake_is_one_line_with_its_place_and_what_to_do(compiled, text, line):
    with pytest.raises(GateError) as error:
        compiled(f"[[gate]]\n{text}")
    assert str(error.value) == f"gates.toml:{line}"
    place, _, what = line.partition(": ")
    assert ([error.value.line, error.value.column], error.value.what) == ([*map(int, place.split(":"))], what)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "gates.toml:1:1: the file has no gate; write [[gate]] above each"),
        ("seed = 1.5", "gates.toml:1:8: seed: it is 1.5; write a whole number or a text"),
        ("gates = 1", "gates.toml:1:1: a gate file has no key \"gates\"; did you mean 'gate'?"),
        ("\n[gate]\ndrop = true", "gates.toml:2:1: gate must be a table in an array; write [[gate]] above each"),
        ("gate = 5", "gates.toml:1:1: gate must be a table in an array; write [[gate]] above each"),
        ("x = " + "[" * 5000, "gates.toml:1:1: values are nested too deeply; take out some levels"),
        (
            f'[[gate]]\nedit = [{{op="add", path="/a", value={"[" * 300}{"]" * 300}}}]',
            "gates.toml:1:1: values are nested in more than 250 levels; take out some",
        ),
        ("#" * LARGEST + "\n", "gates.toml: cannot be read (it is larger than 16 MiB); check the path"),
    ],
    ids=lambda value: value[:30],
)
def test_a_mistake_outside_of_gates_is_such_a_line_too(compiled, text, line):
    with pytest.raises(GateError) as error:
        compiled(text)
    assert str(error.value) == line


def test_an_action_that_the_transport_cannot_do_is_refused(compiled):
    for transport in ("http", "mitm"):
        assert compiled("[[gate]]\nstatus = 503", transport)
        with pytest.raises(GateError, match="2:1: exit kills the server, which only 'wrap' and 'mock' on stdio start"):
            compiled("[[gate]]\nexit = 1", transport)


def test_a_file_that_cannot_be_read_is_a_line_without_a_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path, why in (("none.toml", "No such file or directory"), (".", "Is a directory"), ("a\0b", "null byte")):
        with pytest.raises(GateError) as error:
            compile_file(path, "stdio")
        assert str(error.value).startswith(f"{path}: cannot be read (")
        assert why in str(error.value)
    (tmp_path / "latin.toml").write_bytes("[[gate]]\nname = 'é".encode() + b"\xe9'")
    with pytest.raises(GateError, match=r"latin.toml:2:10: byte 0xe9 is not UTF-8; save the file as UTF-8"):
        compile_file("latin.toml", "stdio")


def test_a_recording_that_cannot_answer_is_refused(compiled, tmp_path):
    (tmp_path / "notes.txt").write_text("no capture")
    for name, why in (("none.jsonl", "No such file"), ("notes.txt", "not a capture"), (".", "irectory")):
        with pytest.raises(GateError) as error:
            compiled(f"[[gate]]\nanswer-from = '{name}'")
        assert str(error.value).startswith("gates.toml:2:15: answer-from cannot use the capture: ")
        assert why in str(error.value)


# For any content, the result is gates, or an error of one line with its position.

KEYS = [*"name when hold throttle edit drop repeat answer answer-from send cut garble close status exit".split()]
KEYS += [*"delay miss chance after times reorder seed gate a.b answer.result".split(), '"x y"']
VALUES = (
    "true", "0", "1", "-7", "503", "0.2", "nan", "inf", "0x" + "f" * 6000, "2026-01-01", "07:30:00", "[]", "{}", "'2s'",
    "'10kB/s'", "'bom'", "'nearest'", "{result = {a = [1, 2.0]}}", "{error = 1979-05-27}", "['a', 1]", "'none.jsonl'",
    "[{op = 'add', path = '/a', value = 1}]", "[{op = 'move', from = 'a', path = '/a~'}]", "[[[]]]", '"""\nkind:x"""',
    "'method:tools/call -name:\"a*\" (size:>1kb or id:3)'", "'status:ok'", "'(((a'", '"\\u0000 \\"a"', "'\x7f\u2028é'",
)  # fmt: skip
LINES = st.one_of(
    st.sampled_from(["[[gate]]", "[gate]", "[gate.answer]", "[[gate.edit]]", "# x", "[other]", ""]),
    st.builds("{} = {}".format, st.sampled_from(KEYS), st.sampled_from(VALUES)),
)
NONSENSE = st.one_of(
    st.lists(LINES, max_size=8).map("\n".join),
    st.lists(LINES, max_size=4).map(lambda lines: "\n".join(["[[gate]]", *lines])),
    st.builds(
        lambda at, left, new: FILE[:at] + new + FILE[at + left :],
        st.integers(0, len(FILE)),
        st.integers(0, 9),
        st.text(max_size=5) | st.sampled_from(list("[]{}\"'=\\#\n.,:()-")),
    ),
    st.text(max_size=40),
).map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=40)


@settings(max_examples=5000 if NIGHTLY else 300)
@given(NONSENSE, st.sampled_from(TRANSPORTS))
@example(b'[[gate]]\nwhen = """\\', "stdio")
@example(b"[[gate]]\nafter = 0x" + b"f" * 6000, "stdio")
@example(b"[[gate]]\nafter = 1" + b"0" * 6000, "stdio")
@example(b"\xef\xbb\xbf\xff", "stdio")
def test_whatever_a_file_holds_it_is_gates_or_one_line(content, transport):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gates.toml")
        with open(path, "wb") as file:
            file.write(content)
        gates, error = outcome(path, transport)
    if error:
        assert 1 <= error.line <= content.count(b"\n") + 1, str(error)
        assert error.column >= 1
        assert str(error).startswith(f"{path}:{error.line}:{error.column}: ")
        return
    assert gates
    for gate in gates:
        DeclaredGate(gate)  # raises if a relay cannot use the gate
    for gate in json.loads(json.dumps(gates)):
        assert set(gate) <= {"name", "when", "action", "after", "times", "chance", "reorder", "seed"}
        assert 1 <= len(gate["action"]) <= 1 + ("delay" in gate["action"])


def outcome(path, transport):
    """Return the gates of a file and None, or None and the error."""
    try:
        return compile_file(path, transport), None
    except GateError as error:
        return None, error


DROP = {"when": {}, "action": {"drop": True}}


def acting(**action):
    return {"when": {}, "action": action}


def nested(inner, step, levels=300):
    for _ in range(levels):
        inner = step(inner)
    return inner


TEXT = '"x",'
REMOVE = '{op = "remove", path = "/a"},'
DEEP_VALUE = nested([], lambda value: [value], 260)
BOTH = {
    "hold": ('hold = "86401s"', acting(hold=86_401 * 10**9)),
    "no hold": ('hold = "0s"', acting(hold=0)),
    "delay": (f'delay = "1{"0" * 14}s"', acting(delay=10**400)),
    "no time": ("delay = nan", acting(delay=math.nan)),
    "an endless time": ("delay = inf", acting(delay=math.inf)),
    "a negative time": ('delay = "-1s"', acting(delay=-1)),
    "true for a number": ("repeat = true", acting(repeat=True)),
    "a fraction": ("repeat = 2.0", acting(repeat=2.0)),
    "throttle": ('throttle = "1000001MB/s"', acting(throttle=10**12 + 1)),
    "no throttle": ('throttle = "0B/s"', acting(throttle=0)),
    "repeat": ("repeat = 10001", acting(repeat=10_001)),
    "repeat once": ("repeat = 1", acting(repeat=1)),
    "cut": (f"cut = {(1 << 30) + 1}", acting(cut=(1 << 30) + 1)),
    "exit": ("exit = 256", acting(exit=256)),
    "status": ("status = 600", acting(status=600)),
    "after": (f"drop = true\nafter = {(1 << 53) + 1}", DROP | {"after": (1 << 53) + 1}),
    "times": (f"drop = true\ntimes = {10**400}", DROP | {"times": 10**400}),
    "times 0": ("drop = true\ntimes = 0", DROP | {"times": 0}),
    "chance": ("drop = true\nchance = nan", DROP | {"chance": math.nan}),
    "too much chance": ("drop = true\nchance = 1.1", DROP | {"chance": 1.1}),
    "a true chance": ("drop = true\nchance = true", DROP | {"chance": True}),
    "a false reorder": ('hold = "1s"\nreorder = false', acting(hold=10**9) | {"reorder": False}),
    "size": (f"drop = true\nwhen = 'size:>{10**17}gb'", DROP | {"when": {"size": [10**26, None]}}),
    "a long text": (f"drop = true\nwhen = 'text:{'x' * 70_000}'", DROP | {"when": {"text": "x" * 70_000}}),
    "many globs": (f"drop = true\nwhen = 'method:{'a,' * 1001}b'", DROP | {"when": {"method": ["a"] * 1001}}),
    "deep": (
        f"drop = true\nwhen = '{'!(a ' * 300}a{')' * 300}'",
        DROP | {"when": nested({}, lambda inner: {"not": inner})},
    ),
    "a name": (f"drop = true\nname = '{'x' * 1001}'", DROP | {"name": "x" * 1001}),
    "many texts to send": (f"send = [{TEXT * 1001}]", acting(send=["x"] * 1001)),
    "many operations": (f"edit = [{REMOVE * 1001}]", acting(edit=[{"op": "remove", "path": "/a"}] * 1001)),
    "a deep value": (
        f"edit = [{{op = 'add', path = '/a', value = {'[' * 260}{']' * 260}}}]",
        acting(edit=[{"op": "add", "path": "/a", "value": DEEP_VALUE}]),
    ),
    "a pointer": ("edit = [{op = 'remove', path = 'a'}]", acting(edit=[{"op": "remove", "path": "a"}])),
}
"""By what is wrong: the gate in a file, and the same gate as a viewer sets it."""


@each("what, pair", BOTH.items(), ids=lambda case: case[0])
def test_a_file_and_a_viewer_have_the_same_bounds(tmp_path, what, pair):
    """A-21."""
    in_file, live = pair
    path = tmp_path / "gates.toml"
    path.write_text(f"[[gate]]\n{in_file}\n")
    with pytest.raises(GateError) as raised:
        compile_file(str(path), "http" if what == "status" else "stdio")
    assert str(raised.value).startswith(f"{path}:")
    assert len(str(raised.value)) < 600
    with pytest.raises(ValueError, match="gate") as refused:
        DeclaredGate({"name": "g"} | live)
    assert len(str(refused.value)) < 1600


@each("key", [key for key in BOUNDS if key not in ("size", "seed")])
def test_the_bounds_of_each_number_are_exact(key):
    """A-21: a gate with the largest number is one, and with one more it is none."""
    least, most = BOUNDS[key]

    def gate(value):
        return {"name": "g"} | (DROP | {key: value} if key in ("after", "times") else acting(**{key: value}))

    for value in (least, most):
        DeclaredGate(gate(value))
    for value in (least - 1, most + 1):
        with pytest.raises(ValueError, match="a whole number from"):
            DeclaredGate(gate(value))


def test_a_file_has_at_most_so_many_gates(tmp_path):
    """A-21."""
    path = tmp_path / "gates.toml"
    texts = " or ".join(f"method:m{number}" for number in range(300))
    path.write_text(f"[[gate]]\nwhen = '{texts}'\ndrop = true\n" * (TEXTS // 300 + 1))
    with pytest.raises(GateError, match=f"more than {TEXTS} texts"):
        compile_file(str(path), "stdio")
    path.write_text("[[gate]]\ndrop = true\n" * GATES)
    assert len(compile_file(str(path), "stdio")) == GATES
    path.write_text("[[gate]]\ndrop = true\n" * (GATES + 1))
    with pytest.raises(GateError, match="more than 1000 gates"):
        compile_file(str(path), "stdio")
