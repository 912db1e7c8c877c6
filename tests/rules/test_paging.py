"""Pages of listings: cases that the rule examples do not cover."""

from tests.rules.examples import told
from tests.rules.test_extension import discover


def test_a_cursor_belongs_to_the_listing_that_issued_it():
    text = """
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[],"nextCursor":"a"}
        > 3 prompts/list {"cursor":"a"}
    """
    assert told(text, "paging/") == ["#6 paging/unknown-cursor"]


def test_a_listing_of_an_extension_has_pages_too():
    skills = '"resultType":"complete","ttlMs":0,"cacheScope":"public","skills":[]'
    text = f"""{discover("io.modelcontextprotocol/skills={}")}
        > 2 skills/list {{META}}
        < 2 = {{{skills},"nextCursor":"a"}}
        > 3 skills/list {{META "cursor":"a"}}
        < 3 = {{{skills}}}
        > 4 skills/list {{META "cursor":"b"}}
    """
    assert told(text, "paging/") == ["#7 paging/unknown-cursor"]
