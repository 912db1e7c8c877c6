import base64
import json
from contextlib import closing

import pytest

from mcpspy.exporters.har_body import ArchivedBody


@pytest.mark.parametrize("text", ["", "{}", 'ü"\\\n\0\u2028🦊', "é🦊" * 100_000])
def test_text_is_a_json_string_however_long_it_is(text):
    with closing(ArchivedBody()) as body:
        for start in range(0, len(text), 777):
            body.add(text[start : start + 777].encode())
        assert json.loads(b"".join(body.json())) == text
        assert (body.size, body.is_text) == (len(text.encode()), True)


@pytest.mark.parametrize("raw", [b"\xff", b"\x80ab" * 50_001, b"text" * 50_000 + b"\xc3"])
def test_bytes_that_are_no_text_are_base64(raw):
    with closing(ArchivedBody()) as body:
        body.add(raw[:100])
        body.add(raw[100:])
        assert not body.is_text
        assert base64.b64decode(json.loads(b"".join(body.json()))) == raw


def test_it_can_be_read_as_it_came():
    with closing(ArchivedBody()) as body:
        body.add(b"a" * 100_000)
        assert sum(map(len, body.raw())) == 100_000
