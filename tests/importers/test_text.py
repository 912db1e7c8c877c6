"""JSON and lines read in portions, and steps taken in the order of time."""

import io
import json

import pytest

from mcpspy.errors import CaptureError
from mcpspy.importers import captures, text
from mcpspy.importers.captures import Account, TooManyValues, Torn, play
from mcpspy.importers.text import checked, elements, lines, members, sound
from tests.each import each

ARCHIVE = {
    "note": {"entries": [{"no": 0}]},
    "log": {
        "creator": {"entries": [{"no": 1}], "name": 'quo"ted \\ [{'},
        "pages": [{"entries": [{"no": 2}]}],
        "entries": [{"yes": 1, "list": [{"x": "}]"}]}, 7, "no", {"yes": 'a\\"b' * 40}, [{"no": 3}], {}],
        "after": [{"no": 4}],
    },
}


def spanned(raw, *path):
    file = io.BytesIO(raw)
    return [raw[offset : offset + size] for offset, size in elements(file, path)]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
def test_the_objects_of_the_array_are_found_whatever_the_portions(monkeypatch, chunk, indent):
    monkeypatch.setattr(text, "CHUNK", chunk)
    raw = json.dumps(ARCHIVE, indent=indent).encode()
    found = [json.loads(element) for element in spanned(raw, "log", "entries")]
    assert found == [element for element in ARCHIVE["log"]["entries"] if isinstance(element, dict)]


def test_brackets_that_were_never_opened_are_passed_over():
    assert spanned(b'}]}}}"x"{"log":{"entries":[{"a":1}]}}', "log", "entries") == [b'{"a":1}']


def test_an_array_may_be_all_there_is():
    assert spanned(b' [ {"a":1} , {"b":[2]}]', *()) == [b'{"a":1}', b'{"b":[2]}']


@each(
    "cut, count, where",
    [
        (0, 0, "what precedes its entries"),
        (10, 0, "what precedes"),
        (22, 0, "an entry"),
        (44, 1, "its list of entries"),
    ],
)
def test_what_stands_before_the_end_of_a_torn_file_is_found(cut, count, where):
    raw = b'{"log":{"entries":[{"a":"................"},{"b":2}]}}'[:cut]
    found = []
    with pytest.raises(Torn, match=where):
        found.extend(elements(io.BytesIO(raw), ("log", "entries")))
    file = io.BytesIO(raw)
    spans = elements(file, ("log", "entries"))
    for _ in range(count):
        assert next(spans) == (19, 24)


def test_members_are_given_as_they_are_written():
    """F-05."""
    written = '{"id": 1.0, "big":123456789012345678901234567890 ,"raw":{"a" : [1e0, "\\u003c"]},"s":"x" }'
    assert members(written) == {
        "id": "1.0",
        "big": "123456789012345678901234567890",
        "raw": '{"a" : [1e0, "\\u003c"]}',
        "s": '"x"',
    }
    assert members(" {} ") == {}


@each("broken", ["", "[]", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,}', '{"a" 1}', "{1:2}", "{,}"])
def test_what_is_no_object_is_refused(broken):
    with pytest.raises(ValueError):  # noqa: PT011 (the reader only counts such errors)
        members(broken)


def test_a_line_that_is_too_long_is_passed_over(monkeypatch):
    monkeypatch.setattr(text, "LONGEST", 8)
    file = io.BytesIO(b"\xef\xbb\xbf12345678\r\n" + b"123\r\n" + b"x" * 30 + b"\n\nlast")
    assert list(lines(file)) == [None, b"123", None, b"", b"last"]


def test_text_that_cannot_be_written_is_not_sound():
    assert sound(["\U0001f30d", {"a": 1}]) == ["\U0001f30d", {"a": 1}]
    for bad in ("\ud800", ["a\udfff"], {"\ud800": 1}, {"a": [("b", "\ud83c")]}):
        with pytest.raises(ValueError, match="surrogates not allowed"):
            sound(bad)


def test_the_values_of_one_text_are_limited(monkeypatch):
    """A-21: 60 MiB of `{}` would take more than a GB; marks in strings do not count."""
    monkeypatch.setattr("mcpspy.importers.text.VALUES", 10)
    assert checked(b'["{{{{{{,,,,,,,[[[[", "\\\\", 1]')
    for large in (b"[" + b"{}," * 20 + b"1]", "[" + "{}," * 20 + "1]"):
        with pytest.raises(TooManyValues, match="has more than 10 values"):
            checked(large)


def played(text, *, torn=""):
    """Return the order of the steps of some exchanges; `a159` is exchange `a` with steps at the times 1, 5 and 9."""
    words = text.split()
    taken = []

    def spans():
        place = 0
        for word in words:
            yield place, len(word)
            place += len(word) + 1
        if torn:
            raise Torn(torn)

    def start(word):
        return steps(word) if word != "none" else None

    def steps(word):
        for time in word[1:]:
            yield int(time)
            taken.append(word[0] + time)

    account = Account("exchange")
    play(io.BytesIO(text.encode()), spans(), bytes.decode, start, account)
    return taken, account


def test_steps_are_taken_in_the_order_of_their_times():
    taken, account = played("a159 b234 none c3")
    assert taken == ["a1", "b2", "b3", "c3", "b4", "a5", "a9"]
    assert (account.read, account.lost, account.fault) == (4, 0, "")


def test_what_is_listed_by_its_end_is_put_where_it_began():
    assert played("b23 a19")[0] == ["a1", "b2", "b3", "a9"]


def test_what_stands_before_a_tear_is_played_and_what_is_damaged_is_counted():
    taken, account = played("a1 bx c2", torn="it ends")
    assert taken == ["a1", "c2"]
    assert (account.read, account.lost, account.fault) == (3, 1, "it ends")


def test_what_is_too_large_is_left_out(monkeypatch):
    monkeypatch.setattr(captures, "LARGEST", 3)
    taken, account = played("a159 b2")
    assert (taken, account.lost) == (["b2"], 1)


def test_a_file_that_is_changed_meanwhile_is_an_error():
    parsed = []

    def parse(raw):
        parsed.append(raw)
        return {1: [1], 2: None}[len(parsed)]

    with pytest.raises(CaptureError, match="was changed while it was read"):
        play(io.BytesIO(b"a"), [(0, 1)], parse, iter, Account("exchange"))


def test_what_is_held_is_bounded(monkeypatch):
    """An exchange is finished early, so that it need not be kept in memory."""
    monkeypatch.setattr(captures, "HELD", 7)
    monkeypatch.setattr(captures, "OBJECTS", 0)
    assert played("a19 b28 c37 d4")[0] == ["a1", "b2", "c3", "c7", "d4", "b8", "a9"]


def test_a_small_exchange_takes_more_than_it_has_in_the_file(monkeypatch):
    """Memory is bounded even if thousands of exchanges begin at the same time."""
    monkeypatch.setattr(captures, "HELD", 2 * captures.OBJECTS)
    assert played("a19 b19 c19")[0] == ["a1", "a9", "b1", "c1", "b9", "c9"]
