import json
import os
import sys

import pytest

import mcpspy
from mcpspy.capture.encode import from_json, to_json
from tests import limits


@pytest.mark.parametrize(
    "value", [{"a": [1, None, True, False, 'é\n"'], "b": {}}, [], "x", 0, -5, ("a",), 0.2, 1e22, 5e-324]
)
def test_plain_values_become_json(value):
    assert json.loads(to_json(value)) == json.loads(json.dumps(value))


def test_other_values_are_a_mistake_of_ours():
    with pytest.raises(TypeError, match="set"):
        to_json({1})


def test_numbers_that_json_has_not_are_null():
    assert to_json([float("nan"), float("inf"), -float("inf")]) == b"[null,null,null]"


# One write a record (a SIGKILL loses at most the record being written).


@pytest.mark.parametrize("text", ['{"a":[1,-2.5e3,null,true],"b":"\\u00e9\\n"}', " [] \n", '"é"', "0"])
def test_json_is_read(text):
    assert from_json(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "raw", [b"{", b"", b"[1,", b'{"a', b"1 2", b"\xff", b"[" * 200_000], ids=lambda raw: repr(raw[:9])
)
def test_what_is_no_json_is_refused(raw):
    with pytest.raises((ValueError, RecursionError)):
        from_json(raw)


def test_what_is_no_json_is_refused_where_nobody_has_imported_the_library():
    """As in `wrap`: the scanner in C then has no exception to raise."""
    program = (
        f"import sys; sys.path.insert(0, {os.path.dirname(os.path.dirname(mcpspy.__file__))!r})\n"
        "from mcpspy.capture.encode import from_json\n"
        "from mcpspy.gate.messages import read, skip\n"
        "for text in ('{', '[1,', '{\"a'):\n"
        "    assert read(text.encode(), 'lines') == ()\n"
        "    for call in (lambda: from_json(text.encode()), lambda: skip(text, 0)):\n"
        "        try: call()\n"
        "        except ValueError: pass\n"
        "        else: raise AssertionError(text)\n"
    )
    limits.run([sys.executable, "-S", "-c", program], check=True)
