import json

from mcpspy.report.differences.exchange_json import to_json


def test_values_that_a_strict_encoder_refuses_are_json_all_the_same():
    assert json.loads(to_json({"a": "\ud800", "b": 1 << 100})) == {"a": "\ud800", "b": 1 << 100}
