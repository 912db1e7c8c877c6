import json

import pytest

from mcpspy.capture.format import to_json


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
