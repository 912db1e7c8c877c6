"""The effect of a filter in each view, and the marks of its words in messages."""

from tests.sharing.page.browsing import ENTER, ESCAPE
from tests.tui.web.browser import needs_chromium

pytestmark = needs_chromium

MARKED = "[...CSS.highlights.get('words')].map(range => range.toString())"


def test_the_sequence_shows_what_the_filter_leaves(everything):
    everything.press("4")
    assert everything.filter("method:tools/call") == "22 of 67"
    numbers = everything.texts("#arrows-body [data-at] .n")
    assert len(numbers) == 22
    assert numbers[:2] == ["#18", "#22"]
    assert everything.texts("#arrows-body [aria-selected=true] .n") == ["#27"]
    everything.press(ENTER + "j")
    everything.until("location.hash === '#28'")
    everything.press("1")
    assert everything.selected() == "#28"
    assert everything.texts("#rows-body .n") == numbers


def test_the_sequence_says_that_nothing_fits_and_marks_matches_among_other_rows(everything):
    everything.press("4")
    assert everything.filter("method:nothing") == "0 of 67"
    assert everything.texts("#no-arrows:not([hidden])") == ["No rows match the filter."]
    everything.press(ENTER)
    everything.browser.script("document.getElementById('others').click()")
    assert everything.filter("status:tool-error") == "4 of 67"
    everything.until("document.querySelectorAll('#arrows.marking .hit').length === 4")
    assert everything.texts("#no-arrows:not([hidden])") == []


def test_the_key_of_the_filter_leads_to_a_view_that_has_one(everything):
    everything.press("2")
    everything.press("/")
    assert everything.value("document.activeElement.id") == "filter"
    assert everything.texts("[role=tab][aria-selected=true]") == ["1 Timeline"]


def test_the_words_of_a_filter_are_marked_where_they_stand(everything):
    everything.filter('two -absent text:GET-sum,get-s "tools/call"')  # a word with a capital is case-sensitive
    assert everything.selected() == "#27"
    assert set(everything.value(MARKED)) == {"two", "get-s", "tools/call"}
    everything.press(ENTER + ENTER)
    everything.press("-")
    everything.until(f"!{MARKED}.includes('two')")  # its part of the tree is collapsed
    everything.press("r")
    everything.until(f"{MARKED}.includes('two')")
    everything.press(ESCAPE + ESCAPE)
    everything.until(f"{MARKED}.length === 0")


def test_a_mistake_is_underlined_where_it_is_behind_characters_of_two_units(everything):
    everything.press("/")
    everything.browser.script(
        "const box = document.getElementById('filter'); box.value = '\U0001f41b\U0001f41b metod:x';"
        "box.dispatchEvent(new Event('input'))"
    )
    everything.until("!document.getElementById('mistake').hidden")
    assert everything.texts("#mistake u") == ["metod:x"]
