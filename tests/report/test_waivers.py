"""Waivers: parsed strictly, and stale once nothing matches them."""

from dataclasses import replace
from datetime import date

import pytest

from mcpspy.errors import UsageError
from mcpspy.report.checked import check
from mcpspy.report.waivers import Waiver, apply, read
from mcpspy.rules import FORMER
from tests.each import each
from tests.report.captures import faulty, fine

TODAY = date(2026, 11, 20)
ACCEPTED = Waiver("tools/arguments", "*.jsonl", "known")


def written(tmp_path, text):
    path = tmp_path / "waivers.toml"
    path.write_text(text)
    return str(path)


@pytest.fixture
def checked(tmp_path):
    return check(faulty(tmp_path / "a.jsonl"))


def test_a_file_of_waivers_is_read(tmp_path):
    text = """
        [[waiver]]
        rule = "tools/arguments"
        capture = "*.jsonl"
        reason = "known"

        [[waiver]]
        rule = "schema/invalid"
        capture = "a/b.jsonl"
        pointer = "/result/content"
        reason = "an SDK that is fixed next year"
        expires = 2027-01-31
    """
    assert read(written(tmp_path, text)) == (
        ACCEPTED,
        Waiver("schema/invalid", "a/b.jsonl", "an SDK that is fixed next year", "/result/content", date(2027, 1, 31)),
    )
    assert read(written(tmp_path, "")) == ()


@each(
    "text, sentence",
    [
        ("[[waiver]", "is not TOML: "),
        ("rules = []", "has 'rules'; it holds [[waiver]] tables and nothing else"),
        ("waiver = 5", "has a 'waiver' that is not a [[waiver]]"),
        ("waiver = [5]", "waiver 1 is not a table"),
        ('[[waiver]]\nrule="tools/arguments"\ncapture="*"', "waiver 1 lacks 'reason'"),
        ('[[waiver]]\nrule="tools/arguments"\ncapture="*"\nreason=""', "waiver 1 lacks 'reason'"),
        ('[[waiver]]\ncapture="*"\nreason="x"', "waiver 1 lacks 'rule'"),
        ('[[waiver]]\nrule="tools/arguments"\nreason="x"', "waiver 1 lacks 'capture'"),
        (
            '[[waiver]]\nrule="tool/argument"\ncapture="*"\nreason="x"',
            "waiver 1: there is no rule 'tool/argument'; did you mean 'tools/arguments'",
        ),
        (
            '[[waiver]]\nrule="tools/arguments"\ncapture="*"\nreason="x"\nreasons="y"',
            "waiver 1 has the unknown key 'reasons'; did you mean 'reason'?",
        ),
        (
            '[[waiver]]\nrule="tools/arguments"\ncapture="."\nreason="x"',
            "waiver 1: capture '.' names no capture; such as '*.jsonl'",
        ),
        ('[[waiver]]\nrule="tools/arguments"\ncapture=5\nreason="x"', "waiver 1: capture is a string"),
        (
            '[[waiver]]\nrule="tools/arguments"\ncapture="*"\nreason="x"\nexpires="soon"',
            "waiver 1: expires is a date, such as 2027-01-31",
        ),
        (
            '[[waiver]]\nrule="tools/arguments"\ncapture="*"\nreason="x"\nexpires=2027-01-31T00:00:00Z',
            "waiver 1: expires is a date",
        ),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused_in_one_sentence(tmp_path, text, sentence):
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as refusal:
        read(path)
    assert str(refusal.value).startswith(path)
    assert sentence in str(refusal.value)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        read(str(tmp_path / "none"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not TOML"):
        read(str(tmp_path / "binary"))


def test_what_is_waived_is_counted_and_no_longer_found(checked):
    waived = apply([ACCEPTED], [checked], TODAY)
    (left,) = waived.captures
    assert (len(left.findings), left.waived) == (len(checked.findings) - 1, 1)
    assert "tools/arguments" not in {finding.rule for finding in left.findings}
    assert (waived.stale, waived.expired) == ((), ())


def test_a_waiver_counts_for_the_captures_that_its_glob_names(checked):
    for glob in ("a.jsonl", "*.jsonl", checked.path, f"{checked.path.split('/')[-2]}/a.jsonl"):
        assert apply([replace(ACCEPTED, capture=glob)], [checked], TODAY).captures[0].waived == 1
    for glob in ("b.jsonl", "x/a.jsonl", "a"):
        assert apply([replace(ACCEPTED, capture=glob)], [checked], TODAY).captures[0].waived == 0


def test_a_waiver_with_a_pointer_counts_only_there(checked):
    there, elsewhere = (replace(ACCEPTED, pointer=it) for it in ("/params/arguments", "/params"))
    waived = apply([there, elsewhere], [checked], TODAY)
    assert waived.captures[0].waived == 1
    assert waived.stale == (elsewhere,)


def test_a_waiver_is_stale_only_where_a_capture_of_the_run_could_have_needed_it(checked, tmp_path):
    clean = check(fine(tmp_path / "b.jsonl"))
    assert apply([ACCEPTED], [clean], TODAY).stale == (ACCEPTED,)
    assert apply([ACCEPTED], [clean, checked], TODAY).stale == ()
    assert apply([replace(ACCEPTED, capture="c.jsonl")], [clean], TODAY).stale == ()


def test_two_waivers_for_one_finding_are_both_used(checked):
    assert apply([ACCEPTED, replace(ACCEPTED, capture="a.*")], [checked], TODAY).stale == ()


def test_a_waiver_counts_to_the_end_of_its_last_day(checked):
    for day, waived in ((TODAY, 1), (date(2026, 11, 19), 0)):
        waiver = replace(ACCEPTED, expires=day)
        found = apply([waiver], [checked], TODAY)
        assert found.captures[0].waived == waived
        assert found.expired == (() if waived else (waiver,))
        assert found.stale == ()


def test_a_waiver_says_on_one_line_what_it_is():
    text = str(Waiver("tools/arguments", "*.jsonl", "two\nlines", "/params"))
    assert text == "tools/arguments at /params in *.jsonl (two\\nlines)"


def test_a_waiver_may_name_a_rule_by_the_id_that_it_had_before(tmp_path, monkeypatch):
    monkeypatch.setitem(FORMER, "tools/args", "tools/arguments")
    (waiver,) = read(written(tmp_path, '[[waiver]]\nrule = "tools/args"\ncapture = "*.jsonl"\nreason = "known"'))
    assert waiver == ACCEPTED
