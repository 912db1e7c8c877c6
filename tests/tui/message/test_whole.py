"""A message as the text for an editor or a pager."""

import pytest

from mcpspy.errors import UsageError
from mcpspy.timeline import Row
from mcpspy.tui.message.text import whole
from tests.test_text import unsafe
from tests.tui.views import HOSTILE


def row(raw=b"", value=None, **more):
    return Row(7, 0, "request", "client", **{"size": len(raw), "raw": raw, "value": value} | more)


def test_json_has_a_member_a_line_and_is_as_it_was_written():
    raw = b'{"a":1.10,"a":[{"b":"x"},{}]}'
    assert whole(row(raw, {"a": 1})) == '{\n  "a":1.10,\n  "a":[\n    {\n      "b":"x"\n    },\n    {}\n  ]\n}'


def test_what_is_no_message_is_opened_line_by_line():
    assert whole(row(b"no\xff\n\x1b[2Jmessage\n")) == "no\ufffd\n\\e[2Jmessage"
    assert whole(row(text="the server ended")) == "the server ended"


def test_of_a_large_frame_the_beginning_and_the_end_are_opened():
    found = whole(row(b'{"a":"xx', size=1_000_016, tail=b'xxxxxx"}'))
    assert found == '{"a":"xx\n… 1.0 MB are not shown: s saves the whole frame …\nxxxxxx"}'


def test_what_has_no_text_cannot_be_opened():
    with pytest.raises(UsageError, match="#7 has no text to open"):
        whole(row())


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_acts_on_a_terminal(text):
    raw = f'{{"a":"{text}"}}'.encode()
    for found in (whole(row(raw, {"a": text})), whole(row(raw)), whole(row(raw, size=10**6, tail=raw))):
        assert not unsafe(found.replace("\n", ""))
