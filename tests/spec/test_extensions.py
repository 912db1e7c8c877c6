import pytest

from mcpspy.spec.extensions import EXTENSIONS, declared


@pytest.mark.parametrize(
    ("capabilities", "names"),
    [
        (
            {"extensions": {"com.example/x": {}, "com.example/y": {"list": True}}, "tools": {}},
            "com.example/x com.example/y",
        ),
        ({"experimental": {"turbo": {}}}, "turbo"),
        ({"extensions": {"com.example/x": {}}, "experimental": {"turbo": {}}}, "com.example/x turbo"),
        ({"extensions": {}, "experimental": {}}, ""),
        ({"tools": {}}, ""),
    ],
)
def test_extensions_and_experiments_are_declared_in_the_capabilities(capabilities, names):
    assert sorted(declared(capabilities)) == names.split()


@pytest.mark.parametrize("capabilities", [None, [], "extensions", 7, {"extensions": None}, {"experimental": []}])
def test_what_declares_nothing_has_no_extension(capabilities):
    assert declared(capabilities) == frozenset()


@pytest.mark.parametrize("value", [True, "x", ["com.example/x"], 1])
def test_a_declaration_that_is_no_object_counts_without_a_name(value):
    assert declared({"experimental": value}) == {""}


def test_a_peer_may_declare_any_number():
    assert len(declared({"extensions": {str(number): {} for number in range(10_000)}})) <= 100


def test_no_experiment_is_taken_for_an_extension_that_is_known():
    assert not {"", "turbo"} & EXTENSIONS.keys()
