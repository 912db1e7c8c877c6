import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.json_values import only_value, scanner, value_at
from tests.limits import LIMIT

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


class Digits(str):
    __slots__ = ()


@given(VALUES, st.sampled_from([None, 1]))
def test_values_are_those_of_the_standard_library(value, indent):
    assert only_value(f" {json.dumps(value, indent=indent)}\r\n", scanner()) == value


def test_numbers_keep_their_digits_where_that_is_wanted():
    found = only_value("[1.10, 1e5, -0, NaN]", scanner(Digits))
    assert found == ["1.10", "1e5", "-0", "NaN"]
    assert {type(number) for number in found} == {Digits}


@pytest.mark.parametrize("text", ["", "{", "[1,", '{"a', "1 2", "nul", "{}x"])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(ValueError, match=r"not JSON|more than one value|Unterminated|Expecting"):
        only_value(text, scanner())


def test_a_value_is_found_at_its_place():
    assert value_at('{"a":[1]}', 5, scanner()) == ([1], 8)


@pytest.mark.parametrize("text", ["", "{", '{"a', "[1"])
def test_it_needs_no_other_module_and_refuses_all_the_same(text):
    program = (
        "import sys; before = set(sys.modules); from mcpspy.json_values import only_value, scanner\n"
        "print(*set(sys.modules) - before)\n"
        f"try: only_value({text!r}, scanner())\nexcept ValueError: print('refused')"
    )
    run = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True, timeout=LIMIT
    )
    modules, verdict = run.stdout.splitlines()
    assert set(modules.split()) == {"_json", "mcpspy", "mcpspy.json_values"}
    assert verdict == "refused"
