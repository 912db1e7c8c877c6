import io

import pytest

from mcpspy.errors import CaptureError
from mcpspy.importers import order
from mcpspy.importers.captures import Account
from mcpspy.importers.order import Torn, play


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
    monkeypatch.setattr(order, "LARGEST", 3)
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
    monkeypatch.setattr(order, "HELD", 7)
    monkeypatch.setattr(order, "OBJECTS", 0)
    assert played("a19 b28 c37 d4")[0] == ["a1", "b2", "c3", "c7", "d4", "b8", "a9"]


def test_a_small_exchange_takes_more_than_it_has_in_the_file(monkeypatch):
    """Memory is bounded even if thousands of exchanges begin at the same time."""
    monkeypatch.setattr(order, "HELD", 2 * order.OBJECTS)
    assert played("a19 b19 c19")[0] == ["a1", "a9", "b1", "c1", "b9", "c9"]
