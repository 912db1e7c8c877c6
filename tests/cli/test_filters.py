"""The filter of a command line."""

import pytest

from mcpspy.cli.filters import given_filter
from mcpspy.errors import FilterError

STARTED = "2026-11-20T19:15:00Z"


def test_a_filter_is_read():
    assert str(given_filter("name:a or b", STARTED)) == 'name:a or "b"'


def test_a_mistake_is_pointed_at(capsys):
    with pytest.raises(FilterError, match="unknown key 'metod' at column 4"):
        given_filter("\ta metod:x", STARTED)
    assert capsys.readouterr().err == "  \\ta metod:x\n      ^\n"
