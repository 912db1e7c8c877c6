"""Pages of listings: what the examples of the rules leave open."""

from tests.rules.examples import told


def test_a_cursor_belongs_to_the_listing_that_issued_it():
    text = """
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[],"nextCursor":"a"}
        > 3 prompts/list {"cursor":"a"}
    """
    assert told(text, "paging/") == ["#6 paging/unknown-cursor"]
