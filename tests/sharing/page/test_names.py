"""The page's filter has the same names as `mcpspy.filters`."""

from mcpspy.sharing.page import names
from tests.sharing.page.sources import PAGE


def test_the_module_of_names_is_as_the_tables_are_now():
    """`scripts/write-rules` writes the module."""
    assert (PAGE / "names.js").read_text(encoding="utf-8") == names.module()
