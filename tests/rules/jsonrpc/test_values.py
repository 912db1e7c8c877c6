"""The JSON of a message: cases that the rule examples do not cover."""

from tests.rules.examples import findings


def test_an_integer_with_more_digits_than_python_converts_is_quoted_by_its_first():
    """R-05."""
    line = f'> | {{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"n":{"123456789" * 1000}}}}}'
    (found,) = [finding for finding in findings(line) if finding.rule == "jsonrpc/number-range"]
    assert "123456789123456789" in found.message
