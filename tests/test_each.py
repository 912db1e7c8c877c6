"""A test with many cases runs all of them and names those that fail."""

import pytest

from tests.each import each


def test_every_case_is_tried_and_those_that_fail_are_named(monkeypatch):
    tried = []

    @each("number", [1, 2, 3], ids=lambda number: f"no. {number}")
    def odd(monkeypatch, number):
        tried.append((monkeypatch, number))
        assert number == 2

    with pytest.raises(ExceptionGroup, match=r"2 of 3 fail: number: no\. 1; number: no\. 3") as failed:
        odd(monkeypatch=monkeypatch)
    assert tried == [(monkeypatch, number) for number in (1, 2, 3)]
    assert [error.__notes__ for error in failed.value.exceptions] == [["number: no. 1"], ["number: no. 3"]]


def test_a_case_may_have_several_parts():
    @each("one, other", [(1, 1), (1, 2)])
    def same(one, other):
        assert one == other

    with pytest.raises(ExceptionGroup, match=r"1 of 2 fail: one, other: \(1, 2\)"):
        same()


@each("number", range(3))
def test_its_fixtures_are_those_of_the_test(tmp_path, number):
    assert not (tmp_path / str(number)).exists()
    (tmp_path / str(number)).touch()
