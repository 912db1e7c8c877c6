"""What the name of an extension tells about it, and where extensions are declared."""

import pytest

from mcpspy.spec.extensions import EXTENSIONS, declared, owns_method, owns_result_type


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


@pytest.mark.parametrize(
    "capabilities",
    [None, [], "extensions", 7, {"extensions": None}, {"experimental": []}, {"experimental": True}, {"extensions": 1}],
)
def test_what_declares_nothing_by_name_has_no_extension(capabilities):
    assert declared(capabilities) == frozenset()


def test_a_peer_may_declare_any_number():
    assert len(declared({"extensions": {str(number): {} for number in range(10_000)}})) <= 100


def test_no_experiment_is_taken_for_an_extension_that_is_known():
    assert not {"", "turbo", "tasks"} & EXTENSIONS.keys()


@pytest.mark.parametrize(
    ("extension", "method"),
    [
        ("com.example/turbo", "turbo/start"),
        ("com.example/turbo", "turbo"),
        ("com.example/turbo", "notifications/turbo/done"),
        ("com.example/turbo", "com.example/turbo/start"),
        ("com.example/turbo", "notifications/com.example/turbo"),
        ("com.example/turbo-v2", "turbo/start"),
        ("claude/channel", "notifications/claude/channel/permission"),
        ("turbo", "turbo/start"),
    ],
)
def test_x_02_a_method_with_the_name_of_an_unknown_extension_is_its_own(extension, method):
    assert owns_method(extension, method)


@pytest.mark.parametrize(
    ("extension", "method"),
    [
        ("com.example/turbo", "turbos/start"),
        ("com.example/turbo", "tools/turbo"),
        ("com.example/turbo", "com.example/other"),
        ("com.example/turbo", "com.example"),
        ("com.example/", "/start"),
        ("", "tools/lists"),
    ],
)
def test_x_02_any_other_method_is_not(extension, method):
    assert not owns_method(extension, method)


@pytest.mark.parametrize(
    ("extension", "result_type", "own"),
    [
        ("com.example/jobs", "job", True),
        ("com.example/partial-results", "partial", True),
        ("com.example/turbo", "turbo_started", True),
        ("com.example/turbo", "com.example/turbo", True),
        ("com.example/turbo", "partial", False),
        ("com.example/turbo", "", False),
        ("", "", False),
        ("com.example/7", "7", False),
    ],
)
def test_x_02_a_result_type_with_the_first_word_of_the_name_is_its_own(extension, result_type, own):
    assert owns_result_type(extension, result_type) is own
