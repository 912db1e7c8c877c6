"""The options of a scrub."""

import pytest

from mcpspy.errors import UsageError
from mcpspy.sharing.scrub.options import ScrubOptions


@pytest.mark.parametrize("pointer", ["a", "params/x", "/a~", "/a~2", "#/a", " /a"])
def test_what_is_no_json_pointer_is_refused(pointer):
    with pytest.raises(UsageError, match="is not a JSON Pointer"):
        ScrubOptions(keep=("/fine", pointer))


def test_a_pointer_may_lead_anywhere():
    assert ScrubOptions(keep=("", "/", "/a~0b~1c/0")).keep
