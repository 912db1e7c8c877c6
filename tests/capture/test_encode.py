import json

import pytest

from mcpspy.capture.encode import to_json


@pytest.mark.parametrize("value", [{"a": [1, None, True, False, 'é\n"'], "b": {}}, [], "x", 0, -5, ("a",)])
def test_plain_values_become_json(value):
    assert json.loads(to_json(value)) == json.loads(json.dumps(value))


def test_other_values_are_a_mistake_of_ours():
    with pytest.raises(TypeError, match="float"):
        to_json(1.5)


# One write a record (a SIGKILL loses at most the record being written).
