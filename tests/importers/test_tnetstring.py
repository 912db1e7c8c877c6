import io

import pytest

from mcpspy.importers.order import Torn
from mcpspy.importers.tnetstring import loads, spans
from tests.importers.files import dumps

VALUES = [None, True, False, 0, -17, 1.5, b"\0\xff", "Zürich", [], [1, [b"x"]], {}, {"a": {"b": [None]}}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_each_type_is_read_back(value):
    assert loads(dumps(value)) == value


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"5",
        b"5:abc,",
        b"3:abc",
        b"3:abc?",
        b"-3:abc,",
        b"3:abc,3:abc,",
        b"6:9:abc,,}",
        b"1:x#",
        b"40:" + b"1" * 40 + b"#",
        b"4:1:a,}",
        b"x" * 100,
        b"1" * 5000 + b":",
    ],
)
def test_what_is_none_is_refused(raw):
    with pytest.raises(ValueError):  # noqa: PT011 (the reader only counts such errors)
        loads(raw)


def test_nesting_is_bounded():
    raw = b""
    for _ in range(5000):
        raw = b"%d:%s]" % (len(raw), raw)
    with pytest.raises(ValueError, match="no element"):
        loads(raw)


def test_names_in_bytes_are_names_as_well():
    assert loads(b"8:1:a,1:b;}") == {"a": "b"}


def test_elements_are_found_where_they_lie_and_a_broken_one_is_told():
    file = io.BytesIO(b"1:a,0:~junk")
    found = spans(file)
    assert [next(found), next(found)] == [(0, 4), (4, 3)]
    with pytest.raises(Torn, match="behind flow 2, at byte 7, no flow begins"):
        next(found)
