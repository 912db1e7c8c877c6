"""JSON Patch by splicing: only the addressed values change; the results are those of the library `jsonpatch`."""

import json

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.gate.messages import changed, edited, json_text, patched, with_message

MESSAGE = '{ "id" : 1.0, "params":{"a":1.10, "a/b" : [1, 2 ,3],"~":"\\u00e9"},"id":2e3 }'


def op(op, path, *value, **rest):
    return {"op": op, "path": path} | ({"value": value[0]} if value else {}) | rest


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        (op("replace", "/params/a", "x"), MESSAGE.replace("1.10", '"x"')),
        (op("replace", "/params/a~1b/1", [{}]), MESSAGE.replace("2 ,", "[{}] ,")),
        (op("replace", "/params/~0", None), MESSAGE.replace('"\\u00e9"', "null")),
        (op("replace", "/id", 7), MESSAGE.replace("2e3", "7")),
        (op("replace", "", {"a": 1}), '{"a":1} '),
        (op("add", "/params/new", "é"), MESSAGE.replace('"\\u00e9"', '"\\u00e9","new":"é"')),
        (op("add", "/params/a", True), MESSAGE.replace("1.10", "true")),
        (op("add", "/params/a~1b/-", 4), MESSAGE.replace("2 ,3", "2 ,3,4")),
        (op("add", "/params/a~1b/0", 0), MESSAGE.replace("[1,", "[0,1,")),
        (op("add", "/params/a~1b/3", 0), MESSAGE.replace("3]", "3,0]")),
        (op("remove", "/params/a"), MESSAGE.replace('"a":1.10, ', "")),
        (op("remove", "/params/~0"), MESSAGE.replace(',"~":"\\u00e9"', "")),
        (op("remove", "/params/a~1b/2"), MESSAGE.replace("2 ,3]", "2]")),
        (op("remove", "/id"), '{ "params":{"a":1.10, "a/b" : [1, 2 ,3],"~":"\\u00e9"} }'),
        (op("copy", "/n", **{"from": "/params/a"}), MESSAGE.replace("2e3", '2e3,"n":1.10')),
        (
            op("move", "/params/~0", **{"from": "/params/a"}),
            MESSAGE.replace('"a":1.10, ', "").replace('"\\u00e9"', "1.10"),
        ),
        (op("test", "/params/a", 1.1), MESSAGE),
        (op("test", "/id", 2000), MESSAGE),
        (op("test", "/params/~0", "é"), MESSAGE),
    ],
    ids=str,
)
def test_only_the_addressed_characters_change(operation, result):
    text = MESSAGE if operation["path"] else MESSAGE.strip() + " "
    assert patched(text, [operation]) == result


@pytest.mark.parametrize(
    "operation",
    [
        op("replace", "/nothing", 1),
        op("remove", "/params/a~1b/3"),
        op("remove", "/params/a~1b/-"),
        op("replace", "/params/a~1b/01", 1),
        op("add", "/params/a~1b/5", 1),
        op("add", "/params/a~1b/x", 1),
        op("add", "/params/a/b", 1),
        op("remove", ""),
        op("test", "/params/a", "1.1"),
        op("test", "/params/a", 1.2),
        op("copy", "/x", **{"from": "/y"}),
    ],
    ids=str,
)
def test_what_cannot_be_applied_is_named(operation):
    with pytest.raises(ValueError, match=f"^{operation['op']} {operation['path']}"):
        patched(MESSAGE, [operation])


@pytest.mark.parametrize("text", ["", "x", "{", '{"a"', '{"a":}', "[1,", "[1 2]", '{"a":1', "\ufeff"])
def test_a_text_that_is_no_json_raises_value_error_and_never_hangs(text):
    for path in ("", "/a", "/0", "/a/b"):
        for name in ("replace", "add"):
            with pytest.raises(ValueError, match=r"JSON|place|delimiter|string|property name"):
                patched(text, [op(name, path + "/x", 1)])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def patches(draw):
    """Draw a document and operations on paths that exist in it, or nearly exist."""
    document = draw(st.dictionaries(st.text("ab/~", max_size=2), VALUES, max_size=3))
    paths = [""]
    for path in places(document, ""):
        paths += [path, f"{path}/a", f"{path}/-", f"{path}/0"]
    operations = []
    for _ in range(draw(st.integers(1, 3))):
        name, path = (
            draw(st.sampled_from(["add", "replace", "remove", "move", "copy", "test"])),
            draw(st.sampled_from(paths)),
        )
        operation = {"op": name, "path": path}
        if name in ("add", "replace", "test"):
            operation["value"] = draw(VALUES)
        if name in ("move", "copy"):
            operation["from"] = draw(st.sampled_from(paths))
        operations.append(operation)
    return document, operations


def places(value, path):
    """Yield the JSON pointers of a value and of all values in it."""
    yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, path + "/" + name.replace("~", "~0").replace("/", "~1"))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places(inner, f"{path}/{number}")


@given(patches(), st.sampled_from([None, 1]))
def test_the_result_is_that_of_another_implementation(patch, indent):
    document, operations = patch
    try:
        wanted = jsonpatch.apply_patch(document, operations)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError):
        return
    if any(it["op"] in ("remove", "move") and it.get("from", it["path"]) == "" for it in operations):
        return  # the library then removes the whole document
    if any(it["op"] == "move" and it["path"].startswith(it["from"] + "/") for it in operations):
        return  # RFC 6902, 4.4 forbids it
    assert json.loads(patched(json.dumps(document, indent=indent), operations)) == wanted


@given(VALUES)
def test_values_are_written_as_json(value):
    assert json.loads(json_text(value)) == value


def test_bytes_that_are_no_utf8_and_a_byte_order_mark_stay():
    frame = b'\xef\xbb\xbf{"a":"\xff","b":1}'
    assert edited(frame, "lines", [op("replace", "/b", 2)]) == b'\xef\xbb\xbf{"a":"\xff","b":2}'


def test_the_message_of_an_event_is_edited_and_its_other_lines_stay():
    block = b': ping\r\nid: 7\r\ndata: {"a":\r\ndata:1}\r\nevent: message\r\n'
    result = edited(block, "sse", [op("replace", "/a", 2)])
    assert result == b': ping\r\nid: 7\r\ndata: {"a": 2}\r\nevent: message\r\n'


def test_another_message_takes_the_place_in_one_line_where_the_framing_wants_it():
    message = b'{\n "a": 1\r\n}'
    assert with_message(b"{}", "lines", message) == b'{  "a": 1  }'
    assert with_message(b"id: 1\ndata: {}\ndata:\n", "sse", message) == b'id: 1\ndata: {  "a": 1  }\n'
    assert with_message(b"{}", "body", message) == message
    with pytest.raises(ValueError, match="no data"):
        with_message(b": comment\n", "sse", message)


def test_a_text_of_an_event_can_be_changed_as_a_whole():
    assert changed(b"data: a\ndata: b\n", "sse", bytes.upper) == b"data: A B\n"
