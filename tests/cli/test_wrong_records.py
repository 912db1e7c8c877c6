"""A-22: a member of a record may have any JSON type; a record with a wrong one is damaged, in every command."""

import json

from mcpspy.capture.reader import Capture
from mcpspy.capture.scan import is_damage, parse_line
from mcpspy.rules.judge import judged_events
from tests.capture.kinds import HEADER, RECORDS, lines
from tests.each import each
from tests.wrong_types import documents

NULL = {"answers", "peer", "head", "sent", "by", "op", "held", "undecided", "more", "cut", "exit", "code", "signal"}
NULL |= {"reason", "method", "target", "version", "status", "headers"}
"""The members that may be null, in at least one kind of record."""
OPEN = ("gates", "head", "sent")
"""The members that may contain further members of any type."""
COMMANDS = [
    ("show", "a.jsonl"),
    ("show", "a.jsonl", "--json"),
    ("check", "a.jsonl", "--fail-on", "never"),
    ("check", "a.jsonl", "--fail-on", "never", "--format", "json"),
    ("stats", "a.jsonl"),
    ("ls", "."),
    ("export", "a.jsonl", "--format", "har"),
    ("export", "a.jsonl", "--format", "perfetto"),
    ("scrub", "a.jsonl", "--check"),
    ("diff", "a.jsonl", "a.jsonl"),
]


def variants(label):
    """Return a record of a kind with one member of a wrong type, once for each member and type; each with a name."""
    return [(name, it) for name, it in documents(RECORDS[label]) if isinstance(it, dict)]


@each("label", [label for label in RECORDS if label != "continued"])
def test_a_22_a_member_of_a_wrong_type_is_damage(label):
    accepted = []
    for name, variant in variants(label):
        record, _ = parse_line(2, json.dumps(variant).encode())
        if record is not None and not is_damage(record):
            accepted.append(name)
        elif record is None:
            assert name.startswith("/kind"), name
    for name in accepted:
        where, _, wrong = name.partition(" ")
        _, member, *inner = where.split("/")
        usual = RECORDS[label].get(member)
        if inner and member in OPEN:  # the wrong value is where the relay may write anything, or in a head
            assert inner[0] not in ("method", "target", "reason", "headers") or wrong in ("null", "text"), name
        elif wrong == "null":
            assert {member, *inner} & NULL or member in ("from", "raw", "why"), name
        else:
            values = {"true": bool, "number": int, "negative": int, "text": str, "list": list, "object": dict}
            same_type = type(usual if not inner else usual[inner[0]]) is values.get(wrong)
            assert same_type or (member == "sent" and wrong == "text"), name


@each("command", COMMANDS)
def test_a_22_no_command_fails_on_a_member_of_a_wrong_type(command, tmp_path, monkeypatch, run):
    text = lines()
    for label, record in RECORDS.items():
        line = json.dumps(record).encode() + b"\n"
        assert line in text
        wrong = b"".join(json.dumps(it).encode() + b"\n" for _, it in variants(label))
        text = text.replace(line, wrong + line)
    (tmp_path / "a.jsonl").write_bytes(text)
    monkeypatch.chdir(tmp_path)
    status, _, err = run(*command)
    assert (status in (0, 1), "bug of mcpspy" in err) == (True, False)


@each("label", RECORDS)
def test_a_22_the_fold_takes_each_of_them_alone(label, tmp_path):
    path = tmp_path / "a.jsonl"
    for _, variant in variants(label):
        path.write_bytes(lines(**{label: variant}))
        list(judged_events(Capture(str(path)).records()))


def test_a_22_a_header_with_a_member_of_a_wrong_type_is_read_or_refused(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    for _, header in documents(HEADER):
        (tmp_path / "a.jsonl").write_bytes(json.dumps(header).encode() + b"\n" + lines().partition(b"\n")[2])
        for command in (("show", "a.jsonl"), ("ls", ".")):
            status, _, err = run(*command)
            assert (status in (0, 2), "bug of mcpspy" in err) == (True, False)
