import pytest

from mcpspy.gate.check import DEEPEST, check, fault_of, one_of, one_or_more, whole


def test_what_is_allowed_passes():
    check("gate g", "", {"a": 1, "b": ["x", "y"]}, {"a": whole(0, 1), "b": one_or_more(one_of("x", "y"))})


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"c": 1}, "gate g has an unknown key when.c; allowed: a, b"),
        ({"a": 2}, "gate g: when.a is 2; it must be a whole number from 0 to 1"),
        ({"a": True}, "gate g: when.a is true; it must be a whole number from 0 to 1"),
        ({"b": ["x", "z"]}, 'gate g: when.b is ["x", "z"]; it must be x or y; or a list of these'),
        ({"b": []}, "gate g: when.b is []; it must be x or y; or a list of these"),
    ],
)
def test_the_first_key_or_value_that_is_not_allowed_is_named(values, fault):
    with pytest.raises(ValueError, match="gate g") as error:
        check("gate g", "when.", values, {"a": whole(0, 1), "b": one_or_more(one_of("x", "y"))})
    assert str(error.value) == fault


def test_what_no_capture_can_hold_is_a_fault():
    value = 1
    for _ in range(DEEPEST):
        value = [value]
    assert fault_of(value) is None
    assert fault_of([value]) == "values are nested in more than 250 levels"
    assert fault_of({"a": {"b": "\ud800"}}) == fault_of({"\ud800": 1}) == "half a surrogate pair is not text"
