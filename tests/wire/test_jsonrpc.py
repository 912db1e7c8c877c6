"""Parsing JSON-RPC from the bytes of a frame; other tests of `wire` join frames from chunks."""

import json
from pathlib import Path

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.json_values import Number
from mcpspy.wire.jsonrpc import Error, Id, Invalid, Notification, Request, Result, parse
from tests.cases import pairs
from tests.each import each

FRAMES = Path(__file__).parent
BIG = 12345678901234567890123  # 23 digits: more than a double can represent


def one(raw):
    (body,) = parse(raw if isinstance(raw, bytes) else raw.encode())
    return body


@each("raw, kind", pairs(FRAMES / "messages.txt"))
def test_a_message_is_told_by_its_keys(raw, kind):
    """The presence of a key counts, not its truth value: `{}` is a common result, and 0 a common id."""
    body = one(raw)
    assert type(body).__name__ == kind
    assert body.value == json.loads(raw)
    assert body.refused is None


def test_a_result_with_error_null_is_a_result():
    """Seen in practice: an old FastMCP description answers with both."""
    body = one('{"id":"request-123","result":"…","error":null}')
    assert type(body) is Result
    assert body.result == "…"


def test_a_result_with_an_error_is_an_error():
    assert type(one('{"id":1,"result":{},"error":{"code":1,"message":"x"}}')) is Error


def test_params_result_and_error_are_given_as_they_are():
    assert one('{"id":1,"method":"tools/list"}').params is None
    assert one('{"method":"x","params":[1]}').params == [1]
    assert one('{"id":1,"result":[]}').result == []
    assert one('{"id":1,"error":"no"}').error == "no"


BLANK = [(raw, "a blank line") for raw in ("", " \t\r")]


@each("raw, reason", [*BLANK, ('\0{"id":1}', "not JSON (error at character 0)"), *pairs(FRAMES / "invalid.txt")])
def test_what_is_no_message_says_why(raw, reason):
    """F-03."""
    body = one(raw)
    assert type(body) is Invalid
    assert body.reason == reason


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, 10**30, -(2**63), -(2**63) - 1, -(10**30), BIG, 10**1000])
def test_an_integer_keeps_its_digits_wherever_it_stands(number):
    """R-05: alone or in a batch, with and without spaces, at every place in a frame."""
    for before in range(20):
        text = f'{{"id":1,"method":"x","params":{{"{"a" * before}":[{number},  {number}],"n":{number}}}}}'
        expected = {"a" * before: [number, number], "n": number}
        assert one(text).params == expected
        assert parse(f"[{text}]".encode())[0].params == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", Id("number", "1")),
        ("0", Id("number", "0")),
        ("-7", Id("number", "-7")),
        ("1.0", Id("number", "1.0")),
        ("1e0", Id("number", "1e0")),
        ("1E0", Id("number", "1E0")),
        ("1.50", Id("number", "1.50")),
        (str(BIG), Id("number", str(BIG))),
        (f"-{BIG}", Id("number", f"-{BIG}")),
        ("18446744073709551616", Id("number", "18446744073709551616")),
        ("1e999", Id("number", "1e999")),
        ("9" * 10000, Id("number", "9" * 10000)),
        ("NaN", Id("number", "NaN")),
        ("-Infinity", Id("number", "-Infinity")),
        ('"1"', Id("string", "1")),
        ('""', Id("string", "")),
        ('"\\ud800"', Id("string", "\ud800")),
        ("null", Id("null", "null")),
        ("true", Id("other", "true")),
        ("[1]", Id("other", "[1]")),
        ('{"a":1}', Id("other", '{"a":1}')),
    ],
)
def test_an_id_keeps_its_type_and_its_own_digits(text, expected):
    """F-05: also in a batch, in a frame that only lenient parsers accept, and next to other keys."""
    message = f'{{"id":{text},"method":"ping"}}'
    assert one(message).id == expected
    assert one(f'{{"id":{text},"result":{{}}}}').id == expected
    assert one(f'{{"id":{text},"error":{{}}}}').id == expected
    assert [body.id for body in parse(f'[{{"id":1,"method":"x"}},{message}]'.encode())] == [Id("number", "1"), expected]
    assert one(f"\ufeff{message}").id == expected
    assert one(f'{{"id":{text},"method":"ping","params":{{"x":NaN}}}}').id == expected
    assert one(f'{{"id":{text},"method":"ping","params":{{"x":1.5}}}}  \r').id == expected


def test_1_and_1_0_and_1e0_and_the_string_1_are_four_ids():
    """F-05."""
    assert len({one(f'{{"id":{text},"method":"x"}}').id for text in ("1", "1.0", "1e0", '"1"', str(BIG))}) == 5


def test_the_last_of_two_ids_wins_as_it_does_for_peers():
    assert one('{"id":1,"id":2.0,"method":"x"}').id == Id("number", "2.0")
    assert one('{"id":1.0,"id":2,"method":"x"}').id == Id("number", "2")


def test_an_id_reads_as_json_but_for_its_length():
    assert str(Id("string", "1")) == '"1"'
    assert str(Id("number", "1.0")) == "1.0"
    assert str(Id.of(None)) == "null"
    assert str(Id.of(Number("1e0"))) == "1e0"


def test_an_error_whose_request_could_not_be_read_has_no_id():
    assert one('{"error":{}}').id is None
    assert one('{"id":null,"error":{}}').id == Id("null", "null")


def test_a_batch_gives_its_messages_in_order():
    """F-09."""
    bodies = parse(b'[{"id":1,"method":"a"},{"method":"b"},{"id":1,"result":{}},5,[{"id":2,"method":"c"}],{}]')
    assert [type(body) for body in bodies] == [Request, Notification, Result, Invalid, Invalid, Invalid]
    assert [body.reason for body in bodies[3:]] == [
        "a number, not an object",
        "an array, not an object",
        "neither method nor result nor error",
    ]


@pytest.mark.parametrize(
    ("raw", "refused"),
    [
        (b'\xef\xbb\xbf{"id":1,"method":"x"}', "a byte order mark"),
        (b'{"id":1,"method":"x\xff"}', "invalid UTF-8 at byte 19"),
        (b'\xef\xbb\xbf{"id":1,"method":"\xff"}', "invalid UTF-8 at byte 21"),
        (b'{"id":1,"method":"\\ud800"}', "a lone surrogate, NaN, an infinity"),
        (b'{"id":1,"method":"x","params":NaN}', "a lone surrogate, NaN, an infinity"),
        (b'{"id":1,"method":"x","params":-Infinity}', "a lone surrogate, NaN, an infinity"),
        (b'{"id":1,"method":"x","params":' + b"9" * 5000 + b"}", "a number beyond the usual limits"),
    ],
)
def test_what_only_lenient_peers_take_is_decoded_and_says_so(raw, refused):
    """F-03, F-10."""
    body = one(raw)
    assert type(body) is Request
    assert body.id == Id("number", "1")
    assert refused in body.refused


def test_whitespace_around_a_message_is_nothing_to_refuse():
    assert one(b' \t{"id":1,"method":"x"} \r').refused is None


@pytest.mark.parametrize("depth", [1, 500, 900, 980, 1000, 1015, 1023, 1100, 5000, 100_000])
@pytest.mark.parametrize(
    "frame",
    [
        '{"id":1,"method":"x","params":%s}',
        '{"id":1.5,"method":"x","params":%s}',
        f'{{"id":{BIG},"method":"x","params":%s}}',
        '{"id":%s,"method":"x"}',
        '[{"id":1.5,"method":"x","params":%s}]',
        '{"id":1,"method":"x","params":[NaN,%s]}',
        "%s",
    ],
)
def test_nesting_of_any_depth_never_raises(frame, depth):
    """F-10."""
    raw = (frame % ("[" * depth + "]" * depth)).encode()
    assert parse(raw)
    assert parse(raw[:-1])  # unbalanced
    assert parse(raw.replace(b"[", b'{"a":').replace(b"]", b"}"))


@pytest.mark.parametrize("depth", [1025, 1200, 5000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), ["[]", ('{"a":[', "]}")])
def test_nesting_beyond_the_usual_limit_is_refused_whatever_python_could_decode(opening, closing, depth):
    """Python 3.11 decodes 994 levels, 3.13 ten times as many."""
    params = opening * depth + closing * depth
    body = one(f'{{"id":1,"method":"x","params":[NaN,{params}]}}'.encode())
    assert body.reason == "nested too deeply to decode"


def test_an_integer_of_10_000_digits_keeps_them():
    """F-10."""
    digits = "8" * 10000
    body = one(f'{{"id":1,"method":"x","params":{{"n":{digits}}}}}')
    assert str(body.params["n"]) == digits


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": JSON,
        "id": JSON,
        "method": JSON | st.just("ping"),
        "params": JSON,
        "result": JSON,
        "error": JSON,
    },
)


@given(st.binary())
def test_arbitrary_bytes_never_raise(raw):
    """F-03."""
    assert parse(raw)


@given(JSON | MESSAGES | st.lists(MESSAGES, max_size=4))
@example([[[]]])
@example({"id": float("nan"), "method": "x"})
def test_arbitrary_json_never_raises(value):
    """F-03."""
    bodies = parse(json.dumps(value).encode())
    assert len(bodies) == (len(value) if isinstance(value, list) and value else 1)


@given(MESSAGES, st.data())
def test_mutated_messages_never_raise(message, data):
    """F-03."""
    raw = bytearray(json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    assert parse(bytes(raw))


@given(MESSAGES)
def test_a_frame_that_nobody_refuses_means_what_a_strict_parser_reads(message):
    raw = json.dumps(message).encode()
    (body,) = parse(raw)
    if body.refused is None:
        assert body.value == orjson.loads(raw)


@given(
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.from_regex(r"-?[1-9][0-9]{0,40}", fullmatch=True)
)
def test_any_number_is_an_id_with_its_own_digits(number):
    """F-05."""
    assert one(f'{{"id":{number},"method":"x"}}').id == Id("number", str(number))


@given(st.text())
def test_any_string_is_an_id(text):
    assert one(json.dumps({"id": text, "method": "x"})).id == Id("string", text)


def test_a_batch_of_odd_ids_takes_time_linear_in_its_length():
    """The digits of each id are looked up separately; in quadratic time, the test would take minutes."""
    found = parse(b"[" + b",".join([b'{"method":"a","id":1.50}'] * 20_000) + b"]")
    assert {message.id.token for message in found} == {"1.50"}
