"""`mcpspy scrub`: the copy, the questions, and one line for every mistake."""

import json
import os
import stat
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.report.findings import PLACE_FORMATS
from tests.sharing.scrub.captures import ERR, IN, call, capture, frame, written

ROOT = Path(__file__).parent.parent.parent
SECRET = "correct-horse-99"
RULE = "scrub/value-under-secret-name"


@pytest.fixture
def scrub(monkeypatch, run):
    """Run `mcpspy scrub` and return its exit status, stdout and stderr."""

    def scrub(*arguments, answer=None):
        if answer is not None:
            monkeypatch.setattr("mcpspy.cli.share.sys.stdin.isatty", lambda: True, raising=False)
            monkeypatch.setattr("mcpspy.cli.share.sys.stdout.isatty", lambda: True, raising=False)
            monkeypatch.setattr("builtins.input", lambda _: answer)
        return run("scrub", *arguments)

    return scrub


@pytest.fixture
def secret(tmp_path):
    """A capture with secrets and values that look random."""
    records = [frame(IN, call({"password": SECRET, "x": "Zk39dKw02Lq8Xm4Pt7Vb1"})), frame(ERR, f"got {SECRET}\x1b[2J")]
    return capture(tmp_path / "a.jsonl", *records, cwd="/home/bob")


# The copy


def test_the_table_is_printed_and_the_copy_written(tmp_path, scrub, secret):
    status, out, err = scrub(secret, "-o", tmp_path / "new.jsonl", "--yes")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "replaced                   by                times  first",
        "home directory             user-1            1      #1",
        "value under a secret name  redacted-value-1  2      #5",
        "",
        "left, looks random  length  times  first",
        "Zk39dK…             21      1      #5 /params/arguments/x",
        "If one of these is a secret, use --replace REGEX.",
        "",
        f"written: {tmp_path / 'new.jsonl'}",
    ]
    new = tmp_path / "new.jsonl"
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert SECRET.encode() not in new.read_bytes()
    assert Capture(str(new)).header.scrubbed


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("YES", 0), ("", 1), ("n", 1), ("what", 1)])
def test_on_a_terminal_it_asks_before_it_writes(tmp_path, scrub, secret, answer, status):
    new = tmp_path / "new.jsonl"
    assert scrub(secret, "-o", new, answer=answer)[0] == status
    assert new.exists() == (status == 0)


def test_without_a_terminal_it_needs_yes(tmp_path, scrub, secret):
    status, out, err = scrub(secret, "-o", tmp_path / "new.jsonl")
    assert (status, out) == (2, "")
    assert err == "mcpspy: scrub asks before it writes, and this is not a terminal; --yes writes without asking\n"
    assert os.listdir(tmp_path) == ["a.jsonl"]


def test_an_existing_file_is_replaced_only_with_force(tmp_path, scrub, secret):
    new = tmp_path / "new.jsonl"
    new.write_text("old")
    assert "exists; --force replaces it" in scrub(secret, "-o", new, "--yes")[2]
    assert new.read_text() == "old"
    assert scrub(secret, "-o", new, "--yes", "--force")[0] == 0


@pytest.mark.parametrize("link", [os.link, os.symlink, None])
def test_the_copy_is_never_the_capture_itself(tmp_path, scrub, secret, link):
    target = secret
    if link:
        target = tmp_path / "link"
        link(secret, target)
    before = Path(secret).read_bytes()
    status, _, err = scrub(secret, "-o", target, "--yes", "--force")
    assert status == 2
    assert "is the file" in err
    assert Path(secret).read_bytes() == before


def test_the_user_decides_what_is_replaced_and_kept(tmp_path, scrub, secret):
    new = tmp_path / "new.jsonl"
    options = ("--only-secrets", "--replace", "Zk39\\w+", "--keep", "/params/arguments/password")
    assert scrub(secret, "-o", new, "--yes", *options)[0] == 0
    content = new.read_text()
    assert "/home/bob" in content
    assert SECRET in content
    assert "redacted-match-1" in content


def test_a_damaged_capture_is_scrubbed_as_far_as_it_goes(tmp_path, scrub):
    path = capture(tmp_path / "a.jsonl", b"{torn", frame(IN, "a"))
    status, out, err = scrub(path, "-o", tmp_path / "b.jsonl", "--yes")
    assert status == 0
    assert out.splitlines()[0] == "found nothing to replace"
    assert err == f"mcpspy: {path} has 1 damaged line, whose content is left out\n"


MISTAKES = [
    ((), "scrub needs CAPTURE"),
    (("a.jsonl",), "scrub needs -o FILE"),
    (("a.jsonl", "a.jsonl", "-o", "x"), "scrub takes one capture"),
    ((".", "-o", "x", "--yes"), "is a directory; scrub takes one capture"),
    (("b.jsonl", "-o", "x", "--yes"), "no such file; did you mean a.jsonl?"),
    (("text", "-o", "x", "--yes"), "is not a capture: its first line is not a capture header"),
    (("a.jsonl", "-o", ".", "--yes"), "exists; --force replaces it"),
    (("a.jsonl", "-o", ".", "--yes", "--force"), "is a directory"),
    (("a.jsonl", "-o", "no/x", "--yes"), "cannot write no/x"),
    (("a.jsonl", "-o", "x", "--replace", "("), "--replace '(' is not a regular expression"),
    (("a.jsonl", "-o", "x", "--keep", "params"), "--keep 'params' is not a JSON Pointer"),
    (("a.jsonl", "-o", "x", "--format", "json"), "belong to scrub --check"),
    (("a.jsonl", "--check", "-o", "x"), "scrub --check writes no capture"),
    (("a.jsonl", "--check", "--format", "junit"), "--format cannot be 'junit'"),
    (("a.jsonl", "--check", "--output", "a.jsonl"), "is the file a.jsonl that is read here"),
    (("a.jsonl", "--check", "--waivers", "none"), "cannot read none"),
    (("text", "--check"), "is not a capture: its first line is not a capture header"),
]


@pytest.mark.parametrize(("arguments", "told"), MISTAKES, ids=lambda it: " ".join(it) if isinstance(it, tuple) else "")
def test_a_mistake_is_one_line_and_nothing_is_written(tmp_path, monkeypatch, scrub, secret, arguments, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("text\n")
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    status, _, err = scrub(*arguments)
    assert status == 2
    assert told in err
    assert err.count("\n") == 1
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before


# The check


def test_check_tells_places_and_kinds_and_never_the_value(scrub, secret):
    status, out, _ = scrub("--check", secret)
    assert status == 1
    assert f"{secret}:5: value under a secret name at /params/arguments/password  [{RULE}]" in out.splitlines()
    assert f"{secret}:6: value under a secret name  [{RULE}]" in out.splitlines()
    assert SECRET not in out
    assert "bob" not in out


def test_a_scrubbed_capture_passes_the_check(tmp_path, scrub, secret):
    scrub(secret, "-o", tmp_path / "new.jsonl", "--yes")
    assert scrub("--check", tmp_path / "new.jsonl")[:2] == (0, "0 places in 1 capture\n")


def test_the_check_takes_several_captures_and_directories_in_several_processes(tmp_path, scrub, secret, monkeypatch):
    capture(tmp_path / "b.jsonl", frame(IN, "a"))
    monkeypatch.setattr("mcpspy.cli.share.SMALL", 0)
    monkeypatch.setattr("mcpspy.cli.share.cores", lambda: 2)
    status, out, _ = scrub("--check", tmp_path, secret, "--only-secrets", "--format", "json")
    assert status == 1
    found = [(os.path.basename(one["path"]), len(one["findings"])) for one in json.loads(out)["captures"]]
    assert found == [("a.jsonl", 2), ("b.jsonl", 0), ("a.jsonl", 2)]


@pytest.mark.parametrize("form", PLACE_FORMATS)
def test_a_report_can_go_to_a_file(tmp_path, scrub, secret, form):
    status, out, _ = scrub("--check", secret, "--format", form, "--output", tmp_path / "report")
    assert (status, out) == (1, "")
    report = (tmp_path / "report").read_text()
    assert RULE in report
    assert SECRET not in report


def test_a_waiver_accepts_a_place_with_a_reason(tmp_path, scrub, secret):
    waivers = tmp_path / "waivers.toml"
    one = '[[waiver]]\nrule = "{}"\ncapture = "*.jsonl"\nreason = "made up"\n'
    waivers.write_text(one.format(RULE) + one.format("scrub/home-directory"))
    status, out, _ = scrub("--check", secret, "--waivers", waivers)
    assert (status, out) == (0, "0 places, 3 waived in 1 capture\n")
    waivers.write_text(one.format(RULE) + one.format("scrub/home-directory") + one.format("scrub/email"))
    status, _, err = scrub("--check", secret, "--waivers", waivers)
    assert status == 1
    assert err.startswith("mcpspy: the waiver is stale, no finding matches it: scrub/email")
    waivers.write_text(one.format("tools/arguments"))
    assert "there is no rule 'tools/arguments'" in scrub("--check", secret, "--waivers", waivers)[2]


def test_the_captures_of_this_repository_pass_the_check(scrub, monkeypatch):
    """The recipe for pre-commit in `.pre-commit-hooks.yaml` runs this command."""
    entry = next(
        line.partition("entry: mcpspy ")[2].split()
        for line in (ROOT / ".pre-commit-hooks.yaml").read_text().splitlines()
        if "entry: mcpspy " in line
    )
    monkeypatch.chdir(ROOT)
    assert entry.pop(0) == "scrub"
    status, out, err = scrub(*entry, "captures")
    assert (status, err) == (0, ""), out


def test_hostile_names_and_values_do_not_reach_the_terminal(tmp_path, scrub):
    head = {"target": "/\x1b[2J", "headers": [["\x1b[2Jtoken", "abc123"]]}
    opens = {"kind": "open", "ch": 9, "t": 0, "from": "client", "role": "request", "framing": "body", "head": head}
    path = capture(tmp_path / "a.jsonl", opens, frame(IN, call({"\x1b[2J": "Zk39dKw02Lq8Xm4Pt7Vb1"})))
    assert "\x1b" not in scrub(path, "-o", tmp_path / "b.jsonl", "--yes")[1]
    assert "\x1b" not in scrub("--check", path)[1]


def test_a_file_that_is_not_regular_is_refused(tmp_path, scrub):
    os.mkfifo(tmp_path / "a.jsonl")
    assert "is not a regular file" in scrub("--check", tmp_path / "a.jsonl")[2]


def test_a_capture_that_is_nested_beyond_all_bounds_is_scrubbed(tmp_path, scrub):
    deep = '{"password":' * 1500 + '"abc"' + "}" * 1500
    path = written(tmp_path / "a.jsonl", json.loads(Path(capture(tmp_path / "b.jsonl")).read_text().splitlines()[0]),
                   {"kind": "open", "ch": 1, "t": 0, "from": "client", "role": "stdin", "framing": "lines"},
                   frame(1, deep), frame(1, "[" * 100_000))  # fmt: skip
    status, _, err = scrub(path, "-o", tmp_path / "c.jsonl", "--yes")
    assert (status, err) == (0, "")
    assert '\\"redacted-value-1\\"' in (tmp_path / "c.jsonl").read_text()
