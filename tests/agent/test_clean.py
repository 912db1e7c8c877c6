"""Answers to an agent: addresses, pages, and captured values scrubbed, escaped, bounded."""

import base64
import json

import pytest

from mcpspy.agent.answers import (
    Scrubber,
    address,
    clipped,
    cursor_at,
    facts,
    fitting,
    milliseconds,
    place_of,
    rest,
    safe,
    size_of,
    split_address,
)
from mcpspy.errors import UsageError
from mcpspy.json_values import Number
from mcpspy.timeline import Row
from tests.each import each
from tests.limits import proportionate


def test_an_address_names_a_capture_and_a_line():
    assert split_address(address("3d345f", 17)) == ("3d345f", 17)


@each("text", ["", "17", "3d345f", "#", "3d#x", "3d#-1", "3d#" + "9" * 30])
def test_what_is_no_address_says_how_one_looks(text):
    with pytest.raises(UsageError, match="one looks like 3d345f#17"):
        split_address(text)


def test_facts_leave_out_what_there_is_not():
    assert facts(a=0, b="", c=None, d=[], e=False, from_="client") == {"a": 0, "e": False, "from": "client"}


def test_a_cursor_belongs_to_one_question():
    cursor = cursor_at(("rows", "a"), 40)
    assert place_of(cursor, ("rows", "a")) == 40
    assert place_of("", ("rows", "a")) == 0


@each("text", ["40", "x", "40-00000000", "-1-2", cursor_at(("rows", "b"), 40), "9" * 40])
def test_another_cursor_is_refused(text):
    with pytest.raises(UsageError, match="does not belong to this question"):
        place_of(text, ("rows", "a"))


def test_as_many_as_there_is_room_for_and_one_at_least():
    assert list(fitting(["aaaa", "bbbb", "cccc"], 16, 10)) == ["aaaa", "bbbb"]
    assert list(fitting(["a" * 100], 10, 10)) == ["a" * 100]
    assert list(fitting("abc", 1000, 2)) == ["a", "b"]


def test_latencies_are_milliseconds():
    assert milliseconds(1_234_567) == 1.235
    assert milliseconds(None) is None


TOKEN = "ghp_" + "a1B2" * 9


def row(raw, value=None, **fields):
    return Row(5, 0, "request", "client", raw=raw, size=len(raw), value=value, **fields)


def scrubbed(message):
    return Scrubber().row(row(json.dumps(message).encode(), message)).value


def test_secrets_and_personal_data_are_replaced():
    given = {"params": {"arguments": {"password": "hunter2xyz", "to": "ada@lovelace.org", "note": f"use {TOKEN}"}}}
    told = json.dumps(scrubbed(given))
    assert not [it for it in ("hunter2xyz", "ada@lovelace.org", TOKEN) if it in told]
    assert scrubbed({"params": {"city": "Oslo"}}) == {"params": {"city": "Oslo"}}


def test_a_secret_that_was_named_is_known_later():
    scrubber = Scrubber()
    scrubber.row(row(b'{"params":{"api_key":"correct-horse-battery"}}', {}))
    assert "correct-horse" not in scrubber.text("it was correct-horse-battery all the time")


def test_a_token_is_found_before_it_is_cut():
    told, _ = clipped(scrubbed({"text": "x" * 3990 + " " + TOKEN}), 8000)
    assert "ghp_" not in json.dumps(told)


@each("gap", range(16_344, 16_386, 7))
def test_no_secret_is_cut_where_the_beginning_of_a_frame_ends(gap):
    raw = b"not JSON " + b"x" * (gap - 9) + b" " + TOKEN.encode() + b" " + b"y" * 2_000_000
    assert b"ghp_" not in Scrubber().row(row(raw)).raw


def test_the_session_id_in_a_url_is_replaced():
    http = {"method": "POST", "target": "/messages/?session_id=0f3a9c51d2b84e67a1c09f6e5d7b8a42", "status": 202}
    told = Scrubber().row(row(b"", http=http)).http
    assert "0f3a9c51" not in told["target"]
    assert told["status"] == 202


def test_one_message_of_a_batch():
    raw = b'[{"id":1,"method":"a"},{"id":2,"params":{"token":"hunter2xyz"}}]'
    value = Scrubber().row(row(raw, {"id": 2}, part=1)).value
    assert value["id"] == 2
    assert "hunter2xyz" not in str(value)


@each("raw", [b"not JSON " + TOKEN.encode(), b'{"token":"hunter2xyz"', b"\xff\xfe" + TOKEN.encode()])
def test_what_is_no_message_is_scrubbed_as_text(raw):
    clean = Scrubber().row(row(raw)).raw
    assert TOKEN.encode() not in clean
    assert b"hunter2xyz" not in clean


def test_what_hides_or_turns_text_is_escaped_and_lines_stay():
    assert safe("a\nb", 10) == "a\nb"
    assert safe("\x1b[31m\u202e\u200b\x00\x9b", 100) == "\\e[31m\\u202e\\u200b\\x00\\x9b"
    assert safe("\ud800", 10) == "\\ud800"
    assert len(safe("x\x1b" * 100, 50)) == 50


def test_a_value_is_cut_to_its_room_and_says_where():
    value = {"a": "x" * 10_000, "b": list(range(500)), "c": 1}
    made, clips = clipped(value, 2000)
    assert size_of(made) <= 2000
    assert made["c"] == 1
    assert {"pointer": "/a", "shown": len(made["a"]) - 1, "of": 10_000} in clips
    assert {"pointer": "/b", "shown": len(made["b"]), "of": 500} in clips
    assert clipped({"a": 1}, 2000) == ({"a": 1}, [])


def test_the_bytes_of_media_are_replaced_by_what_they_are():
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\5\0\0\0\2\xd0" + bytes(1000)).decode()
    made, clips = clipped({"content": [{"type": "image", "data": png, "mimeType": "image/jpeg"}]}, 2000)
    assert made["content"][0] == {"type": "image", "data": "(PNG 1280 × 720, 1.0 kB)", "mimeType": "image/jpeg"}
    assert clips == [{"pointer": "/content/0/data", "shown": 0, "of": len(png)}]
    unknown = base64.b64encode(bytes(range(256)) * 2).decode()
    assert clipped(unknown, 2000) == (unknown, [])


def tree(levels):
    return [tree(levels - 1), tree(levels - 1)] if levels else []


def test_a_value_of_very_many_values_is_not_looked_at_whole():
    value = tree(16)
    with proportionate(1):
        for _ in range(20):  # one call took more than a second before
            assert size_of(clipped(value, 240)[0]) <= 240


def named(levels):
    return {"漢" * 200 + end: named(levels - 1) for end in "ab"} if levels else 1


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value, "x" * 50]
    return value


@each("value", [nested(400), named(8), {f"k{n}" * 300: "\x00" * 300 for n in range(300)}, "\u202e" * 9000, [{}] * 9999])
def test_any_value_fits(value):
    made, _ = clipped(value, 1000)
    assert size_of(made) <= 1300


@each(
    "value, told",
    [
        (float("nan"), "nan"),
        (Number("123456789012345678901"), "123456789012345678901"),
        (2**60, str(2**60)),
        (True, True),
        (1.5, 1.5),
    ],
)
def test_numbers_are_as_any_parser_reads_them(value, told):
    assert clipped(value, 100)[0] == told


def test_the_rest_of_a_text_and_of_an_array():
    value = {"text": "".join(f"{n:05}" for n in range(3000)), "items": [{"n": n} for n in range(2000)]}
    read, offset = "", 0
    while offset is not None:
        part, offset = rest(value, "/text", offset, 4000)
        assert size_of(part) <= 4100
        read += part
    assert read == value["text"]
    items, offset = [], 0
    while offset is not None:
        part, offset = rest(value, "/items", offset, 4000)
        items += part
    assert items == value["items"]
    with pytest.raises(LookupError):
        rest(value, "/none", 0, 4000)


def test_a_command_line_is_scrubbed():
    assert Scrubber().argv(("node", "server.js", "--token", "hunter2xyz"))[:2] == ["node", "server.js"]
    assert "hunter2xyz" not in " ".join(Scrubber().argv(("node", "--token", "hunter2xyz")))
