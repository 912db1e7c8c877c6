import pytest

from mcpspy.spec.dialect import Dialect
from mcpspy.spec.extensions import EXTENSIONS, Extension
from mcpspy.spec.revisions import R2025_06_18, R2025_11_25, R2026_07_28


@pytest.fixture
def known(monkeypatch):
    """An extension whose additions are known."""
    added = Extension(frozenset({"skills/list"}), frozenset({"skill"}))
    monkeypatch.setitem(EXTENSIONS, "com.example/skills", added)
    return frozenset({"com.example/skills"})


def test_a_revision_alone_has_its_own_methods_and_result_types():
    assert Dialect(R2025_11_25).has_method("tasks/list")
    assert not Dialect(R2025_06_18).has_method("tasks/list")
    assert not Dialect(R2025_11_25).has_method("skills/list")
    assert Dialect(R2026_07_28).has_result_type("input_required")
    assert not Dialect(R2026_07_28).has_result_type("skill")


def test_without_a_revision_there_is_nothing():
    assert not Dialect(None).has_method("tools/list")


def test_an_extension_that_is_not_known_may_add_anything():
    dialect = Dialect(R2026_07_28, frozenset({"com.example/other"}))
    assert dialect.has_method("skills/list")
    assert dialect.has_result_type("skill")


def test_an_extension_that_is_known_adds_what_its_row_says(known):
    dialect = Dialect(R2026_07_28, known)
    assert dialect.has_method("skills/list")
    assert dialect.has_result_type("skill")
    assert not dialect.has_method("skills/forget")
    assert not dialect.has_result_type("partial")


def test_beside_one_that_is_not_known_a_known_extension_restricts_nothing(known):
    assert Dialect(R2026_07_28, known | {"com.example/other"}).has_method("skills/forget")
