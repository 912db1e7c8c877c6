"""A person with a browser stops the calls of a real SDK client, edits one in the page and continues another."""

import sys

import pytest

pytest.importorskip("textual_serve")

from mcpspy.capture.records import Release
from tests.peers import prepare
from tests.relay.harness import until
from tests.relay.talking import talking
from tests.relay.viewer import Viewer
from tests.tui.web.browser import needs_chromium

CONTROL, ENTER, END, LEFT, DOWN = "\ue009", "\ue007", "\ue010", "\ue012", "\ue015"
SEEN = """
window.seen = "";
window.WebSocket = class extends WebSocket {
    constructor(...where) {
        super(...where);
        this.addEventListener("message", async (event) => { window.seen += await new Response(event.data).text(); });
    }
};
"""
"""Keeps the output that the page receives: the page draws it on a canvas, where the text cannot be read."""


class Person:
    """A person who presses keys in a browser and sees the new output."""

    def __init__(self, browser):
        self._browser = browser
        browser.ask("/goog/cdp/execute", cmd="Page.addScriptToEvaluateOnNewDocument", params={"source": SEEN})

    def opens(self, link):
        self._browser.ask("/url", url=link)
        self._browser.until("document.activeElement?.matches('.xterm textarea')")

    def sees(self, text):
        self._browser.until(f"window.seen.replace(/\\x1b\\[[\\d;]*m/g, '').includes({text!r})")
        self._browser.script("window.seen = ''")

    def presses(self, *keys):
        for key in keys:
            self._browser.press(*key)


@needs_chromium
@pytest.mark.needs(".peers/python1")
@pytest.mark.field  # on a busy machine a key typed into the page may get lost
def test_in_chromium_a_call_is_held_edited_in_the_page_and_another_continued(tmp_path, served, browser):
    capture = tmp_path / "capture.jsonl"
    wrap = [sys.executable, "-m", "mcpspy", "wrap", "-o", str(capture), "--", *prepare.server("python1")]
    with talking(prepare.talker("stdio", *wrap)) as talk:
        assert talk.ask("one") == "one"
        viewer, person = Viewer(capture), Person(browser)
        person.opens(served(capture)[1])
        person.sees("result · server → client")
        person.presses("k", "k", "k")
        person.sees("#9 tools/call")
        person.presses("B")
        person.sees("method:tools/call name:echo from:client")
        person.presses(ENTER)
        until(viewer.in_force, "a gate in force")
        talk.say("two")
        person.sees("1 held")
        person.presses("H")
        person.sees("continue")
        person.presses("E")
        person.sees("close, and keep the text")
        person.presses(*DOWN * 5, END, LEFT, "!", CONTROL + "s")
        assert talk.heard() == "two!"
        talk.say("three")
        person.sees("1 held")
        person.presses("H")
        person.sees("continue")
        person.presses(ENTER)
        assert talk.heard() == "three"
    assert [release.how for release in viewer.records(Release)] == ["edited", "continued"]
    assert browser.log() == []
