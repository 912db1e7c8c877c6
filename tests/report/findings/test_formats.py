"""Every format stays valid, whatever text the messages contain."""

import json
import os
import random
import re
import xml.etree.ElementTree as ET

import pytest

from mcpspy.errors import CaptureError
from mcpspy.report.checked import ReportOptions, check
from mcpspy.report.findings import FORMATS
from tests.findings import CAPTURES
from tests.report.captures import faulty, hostile
from tests.report.findings import told

EACH = pytest.mark.parametrize("form", FORMATS)
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e\u2028\ud800-\udfff]")


def parsed(text):
    return ET.fromstring(text)  # noqa: S314 (it is our own)


@EACH
def test_hostile_text_breaks_no_format(tmp_path, form):
    """F-08: control characters, direction marks, lone surrogates, and characters that XML forbids."""
    text = told(form, hostile(tmp_path / "a"))
    assert len(text.encode()) > 1000
    if form != "json":  # JSON escapes them
        assert not CONTROLS.search(text)
    if form in ("json", "sarif"):
        json.loads(text)
    if form == "junit":
        assert len(parsed(text)[0]) > 5


@EACH
def test_a_path_that_is_no_text_breaks_no_format(tmp_path, form):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b[2J<&\n,::.jsonl")
    text = told(form, faulty(path))
    text.encode()
    if form == "junit":
        parsed(text)
    if form == "github":
        assert len(text.splitlines()) == 4


def test_every_report_on_a_damaged_file_is_written(tmp_path):
    """A truncated file, or one with changed or lost bytes: the rest is checked and reported, or refused in one line."""
    chance = random.Random(3)  # noqa: S311 (seeded, so that a failure can be reproduced)
    whole = (CAPTURES / "field-stdio.jsonl").read_bytes()
    path = tmp_path / "damaged_file"
    refused = 0
    for _ in range(150):
        content = bytearray(whole[: chance.randrange(len(whole))] if chance.random() < 0.2 else whole)
        for _ in range(chance.randint(1, 20)):
            place = chance.randrange(len(content) + 1)
            content[place : place + chance.choice((1, 1, 300))] = chance.choice((b"", b"\n", b"\xff", b"}", b"9" * 30))
        path.write_bytes(content)
        try:
            checked = [check(str(path), show=True)]
        except CaptureError:
            refused += 1
            continue
        assert all(map(str.isprintable, "".join(FORMATS["text"].write(checked, ReportOptions())).split("\n")))
        for form in FORMATS.values():
            "".join(form.write(checked, ReportOptions())).encode()
    assert refused < 75
