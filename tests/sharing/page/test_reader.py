"""The form `content` in a browser: what people read, pictures and sounds, folding, search, copying and saving."""

import base64
import json
import math
import struct
import wave
import zlib
from pathlib import Path

import pytest

from mcpspy.text import printable
from tests import transcript
from tests.sharing.page import hostile
from tests.sharing.page.browsing import ENTER, ESCAPE, requested
from tests.tui.web.browser import needs_chromium

pytestmark = needs_chromium

SVG = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20" onload="parent.hacked=1">'
    b'<script>window.hacked=1;parent.hacked=1;top.hacked=1</script><image href="http://127.0.0.1:9/a.png"/></svg>'
)
HTML = b'<!doctype html><script>parent.hacked=1</script><img src=x onerror="parent.hacked=1">'
LINES = 90_000
WAYS_OUT = """
    window.saved = [];
    window.copied = [];
    URL.createObjectURL = (blob) => {
      blob.arrayBuffer().then((bytes) => window.saved.push(String(new Uint8Array(bytes))));
      return "#";
    };
    HTMLAnchorElement.prototype.click = function () { window.saved.push(this.download); };
    Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => window.copied.push(text) } });
"""


def _chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height):
    """Return a grey picture."""
    rows = zlib.compress((b"\0" + bytes([128]) * width) * height)
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


def wav(folder):
    """Return a sound of a quarter of a second."""
    path = folder / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(at / 5))) for at in range(2000)))
    return path.read_bytes()


def block(kind, data, said):
    """Return a content block with bytes."""
    return {"type": kind, "data": base64.b64encode(data).decode(), "mimeType": said}


@pytest.fixture
def shown(page, tmp_path):
    """Open the page of a session with one call, whose result is given; the row of the result is selected."""

    def show(result, *more):
        path = transcript.capture(
            tmp_path / "a.jsonl",
            f'= 2025-11-25\n> 2 tools/call {{"name":"get","arguments":{{"city":"Oslo"}}}}\n< 2 = {json.dumps(result)}\n'
            + "\n".join(more),
        )
        rows = page.open(Path(path))["rows"]
        place = next(row["n"] for row in rows if row["kind"] == "result" and row["method"] == "tools/call")
        page.browser.script(f"location.hash = '#{place}'")
        page.selected()
        page.browser.script(WAYS_OUT)
        requested(page.browser)
        return page

    yield show
    assert page.browser.log() == []
    assert page.value("window.hacked ?? null") is None


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def lines(page):
    return page.texts(".selected .content .line")


def current(page):
    return page.value("document.querySelector('.selected .tree [aria-selected=true]').textContent")


def test_text_has_its_line_breaks_and_json_in_strings_unfolds(shown):
    inner = json.dumps({"a": [1.50, json.dumps({"deep": "東京\n**b**"})]}).replace("1.5", "1.50")
    page = shown(text(inner) | {"_meta": {"x": 1}})
    assert lines(page) == [
        "text: JSON in a string", "a ", "- 1.50", "- JSON in a string", "deep ", "東京", "**b**", "_meta: 1 member",
    ]  # fmt: skip
    levels = page.value("[...document.querySelectorAll('.selected .line')].map(it => it.getAttribute('aria-level'))")
    assert levels == ["1", "2", "3", "3", "4", "5", "5", "1"]


def test_values_fold_by_keys_and_by_the_mouse(shown):
    page = shown(text("one\ntwo") | {"_meta": {"x": 1}, "structuredContent": {"b": [1]}})
    opened = "[...document.querySelectorAll('.selected .line')].map(it => it.getAttribute('aria-expanded'))"
    page.press(ENTER)
    assert page.value(opened) == ["true", None, None, "true", "true", None, "false"]
    page.press("jjh")  # from a line of the text to the text
    assert lines(page) == ["text ", "structuredContent ", "b ", "- 1", "_meta: 1 member"]
    assert current(page) == "text "
    page.press("l")
    assert lines(page)[:3] == ["text ", "one", "two"]
    page.press("-")
    assert lines(page) == ["text ", "structuredContent ", "_meta: 1 member"]
    page.press("+")
    assert lines(page)[-2:] == ["_meta: 1 member", "x: 1"]
    page.press("zz")
    assert len(lines(page)) == 8
    page.browser.script("document.querySelector('.selected .line').click()")
    assert lines(page)[:2] == ["text ", "structuredContent "]


def test_the_form_suits_the_message_until_the_user_chooses_one(shown):
    page = shown(text("a"), '> 3 ping {"a":1}', "< 3 = {}")
    pressed = "document.querySelector('#tools-of-detail [aria-pressed=true]').id"
    assert page.value(pressed) == "form-content"
    page.press("j")
    page.until(f"{pressed} === 'form-tree'")
    page.browser.script("document.getElementById('form-content').click()")
    page.until("document.querySelector('.selected .content')")
    assert lines(page) == ["a: 1"]
    page.press("kr")
    page.until(f"{pressed} === 'form-tree'")
    page.press("j")
    page.selected()
    assert page.value(pressed) == "form-tree"


def test_repeated_and_empty_names_are_told(shown):
    page = shown(text('{"a":1,"":2,"a":[3]}'))
    assert lines(page)[1:] == ["a: 2 members have this name; only the last one is shown", "a ", "- 3", '"": 2']
    page.press(ENTER + "jj")
    assert current(page) == "a "


def test_pictures_are_shown_and_sounds_played_by_their_bytes(shown, tmp_path):
    media = [
        block("image", png(30, 20), "text/html"),
        block("audio", wav(tmp_path), "image/png"),
        block("image", SVG, "image/png"),
        block("image", HTML + bytes(40), "image/png"),
        block("image", b"%PDF-1.7\n" + bytes(90), "image/svg+xml"),
        block("image", b"GIF89a" + bytes(70), "image/gif"),
        block("audio", wav(tmp_path)[:40] + bytes(4), "audio/wav"),
        block("image", b"PK\3\4" + bytes(90), "application/zip"),
    ]
    page = shown({"content": media})
    assert page.texts(".selected .line > .value") == [
        f"PNG 30 × 20, {len(png(30, 20))} B; mimeType says text/html",
        "WAV 250.0 ms, 4.0 kB; mimeType says image/png",
        f"SVG 40 × 20, {len(SVG)} B; mimeType says image/png",
        f"HTML, {len(HTML) + 40} B; mimeType says image/png",
        "PDF 1.7, 99 B; mimeType says image/svg+xml",
        "GIF 0 × 0, 76 B",
        "WAV 0 µs, 44 B",
        "bytes, 94 B; mimeType says application/zip",
    ]
    sources = "[...document.querySelectorAll('#main :is(img, audio, video, iframe, object, embed)')].map(it => it.src)"
    picture, sound = page.value(sources)
    assert picture == f"data:image/png;base64,{media[0]['data'].rstrip('=')}"
    assert sound.startswith("data:audio/wav;base64,UklGR")
    page.until("document.querySelector('.selected img').naturalWidth === 30")
    page.until("document.querySelector('.selected audio').duration === 0.25")
    assert page.texts(".selected .media button") == [
        "Save", "Save", "Show the picture", *["Save"] * 6,
    ]  # fmt: skip
    page.browser.script("document.querySelectorAll('.selected .media button')[2].click()")
    page.until("document.querySelectorAll('.selected img')[1].naturalWidth === 40")
    assert [source.partition(",")[0] for source in page.value(sources)] == [
        "data:image/png;base64", "data:audio/wav;base64", "data:image/svg+xml;base64",
    ]  # fmt: skip
    assert {address.partition(":")[0] for address in requested(page.browser)} <= {"data"}


def test_a_picture_that_would_fill_the_memory_waits_and_a_damaged_one_says_so(shown):
    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    huge = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + bytes(90)
    page = shown({"content": [block("image", huge, "image/png")]})
    assert page.value("document.images.length") == 0
    page.browser.script("document.querySelector('.selected .media button').click()")
    page.until("document.querySelector('.selected .media').textContent.includes('cannot show this picture')")


def test_media_are_saved_decoded_with_the_extension_of_their_bytes(shown):
    page = shown({"content": [block("image", png(2, 1), "text/html"), block("image", HTML, "image/svg+xml")]})
    for count, data, name in ((2, png(2, 1), "png"), (4, HTML, "bin")):
        page.press(ENTER + ("j" if count == 4 else "") + "s")
        page.until(f"window.saved.length === {count}")
        assert set(page.value(f"window.saved.slice({count - 2})")) == {
            page.value("location.hash").replace("#", "frame-") + f".{name}", ",".join(map(str, data)),
        }  # fmt: skip
        page.press(ESCAPE)
    page.press("s")  # in the list: the frame
    page.until("window.saved.length === 6")
    assert any(str(name).endswith(".json") for name in page.value("window.saved.slice(4)"))


def test_a_selected_value_is_copied_decoded_and_else_the_message(shown):
    page = shown(text("one\ntwo \u6771"))
    page.press("y" + ENTER + "jy")
    page.press("r")
    page.until("document.activeElement.matches('.selected .tree:not(.content)')")
    page.press("yGy")
    page.until("window.copied.length === 4")
    message, value, whole, last = page.value("window.copied")
    assert json.loads(message)["result"] == text("one\ntwo \u6771") == json.loads(whole)["result"]
    assert value == last == "one\ntwo \u6771"


def test_the_tree_decodes_letters_and_joiners_stay_where_they_join(shown):
    seen = "東 می\u200cخ \U0001f469\u200d\U0001f4bb ❤\ufe0f 1\ufe0f\u20e3"
    page = shown(text(seen + " a\u200cb \u202ec\0"))  # json.dumps writes all of it as escapes
    assert lines(page)[0].startswith(f"text: {seen} a\\u200cb \\u202ec\\x00")
    assert page.texts(".selected .content .escape") == ["\\u200c", "\\u202e", "\\x00"]
    page.press("r")
    page.until("document.querySelector('.selected .tree:not(.content)')")
    (line,) = [line for line in page.texts(".selected .line") if line.startswith('"text"') and "東" in line]
    assert line.startswith(f'"text": "{seen} a\\u200cb \\u202ec\\u0000"')


def test_escapes_are_those_of_the_terminal_and_a_shortened_text_ends_in_none(shown):
    hidden = "a\u200b \U000e0067\U000e007f \ue006" + "7"
    word = "\u0645\u06cc\u200c"
    page = shown(text(f"{word}… {hidden}"))
    assert lines(page)[0].startswith(f"text: {word}… {printable(hidden, 99)}")
    assert page.texts(".selected .content .escape") == ["\\u200b", "\\U000e0067\\U000e007f"]


def test_a_search_goes_to_the_place_in_the_message_and_then_to_the_next_row(shown):
    found = {"schema": 1, "rows": [{"a": "needle one"}, {"b": "x\nneedle two"}], "_meta": {"c": "needle three"}}
    page = shown(
        {"content": [], "structuredContent": found},
        '> 3 tools/call {"name":"get","arguments":{"q":"needle four"}}',
        "< 3 = {}",
    )
    assert page.filter("needle") == "2 of 8"
    for keys, line in (
        ("", "a: needle one"), ("n", "needle two"), ("n", "c: needle three"), ("n", "q: needle four"),
        ("N", "c: needle three"), ("N", "needle two"), ("nn", "q: needle four"),
    ):  # fmt: skip
        page.press((ENTER if not keys else "") + keys)
        page.until(f"document.querySelector('.selected .tree [aria-selected=true]')?.textContent === {line!r}")
        assert page.value("[...CSS.highlights.get('place')].map(String)") == ["needle"]
    page.press("n")
    page.until("document.getElementById('notice').textContent === 'No more matches below.'")
    page.press("Nrrr")  # raw
    page.until("document.querySelector('.selected pre.hex')")


def test_a_search_in_a_tree_unfolds_and_shows_what_is_clipped(shown):
    far = "x" * 3000 + " needle"
    page = shown({"content": [], "structuredContent": {"deep": {"a": list(range(250)), "b": {"c": far}}}})
    page.press("r" + ENTER + "-" + ESCAPE)
    assert page.filter("needle") == "1 of 6"
    page.until("CSS.highlights.get('place')?.size === 1")
    assert current(page).startswith('"c": "xxx')
    assert current(page).endswith(' needle"')


def test_megabytes_show_their_first_screen_at_once_and_a_place_far_behind(shown):
    page = shown(text("".join(f"{number:07d} {'a line of text ' * 5}\n" for number in range(LINES))) | {"end": "here"})
    taken = """
        const done = arguments[0], start = performance.now();
        document.getElementById("form-content").click();
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - start), 0));
    """
    assert page.browser.ask("/execute/async", script=taken, args=[]) < 1500  # 100 ms if nothing else runs
    assert 50 < len(lines(page)) < 500
    page.press(ENTER + "G")
    page.until("document.querySelectorAll('.selected .line').length > 5000")  # the first megabyte
    assert page.texts(".selected .more button") == ["show more of 7.7 MB"]
    assert page.filter("0089998") == "1 of 6"
    page.until("CSS.highlights.get('place')?.size === 1")
    assert current(page).startswith("0089998 a line")
    assert len(lines(page)) < 20_000
    assert page.texts(".selected .more button") == ["show more of what is between"]
    page.browser.script("document.querySelector('.selected .more button').click()")
    page.browser.script("document.querySelector('.selected .line').click()")
    assert lines(page) == ["text ", "end: here"]


def test_a_deep_message_and_one_of_short_lines_stay_usable(shown):
    """The path of a value, and the search for a shown line, must not grow with the depth."""
    deep = '{"structuredContent":' + '{"a":' * 20_000 + '"needle"' + "}" * 20_000 + "}"
    page = shown(
        json.loads('{"content": [{"type": "text", "text": "' + "a\\n" * 1_000_000 + '"}]}'),
        f'< | {{"jsonrpc":"2.0","id":9,"result":{deep}}}',
    )
    page.press(ENTER + "G")
    assert page.value("document.querySelectorAll('.selected .line').length") < 12_000
    page.press(ESCAPE + "j")
    page.selected()
    page.browser.script("document.getElementById('form-content').click()")
    page.press(ENTER + "+G" + ESCAPE)
    assert page.filter("needle") == "1 of 7"
    assert page.value("document.querySelectorAll('.selected .line').length") < 12_000


def test_a_finding_leads_to_its_place(shown):
    page = shown(text("a\u202eb") | {"structuredContent": {"many": list(range(300))}})
    assert lines(page)[0] == "text: a\\u202eb ◂ warning"
    page.press(ENTER + "G")
    page.browser.script("document.querySelector('.selected .finding').open = true")
    page.browser.script("document.querySelector('.selected .finding .pointer').click()")
    assert current(page).startswith("text: a")


def test_hostile_markup_is_text_in_every_line(shown):
    ui = {"uri": "ui://a", "mimeType": "text/html;profile=mcp-app", "text": HTML.decode() + "\n" + hostile.MARKUP}
    named = {hostile.MARKUP: [{"name": hostile.MARKUP, "x": 1}], "_meta": {hostile.MARKUP: hostile.MARKUP}}
    page = shown({"content": [{"type": "resource", "resource": ui}, text(hostile.MARKUP)["content"][0]], "a": named})
    page.press(ENTER + "+")
    seen = "".join(lines(page))
    assert "<!doctype html><script>parent.hacked=1" in seen
    assert seen.count("<svg onload=window.hacked=1>") == 6
    inside = "document.querySelectorAll('.card :is(img, svg, script, iframe, b)').length"
    assert page.value(inside) == 0
    assert {"\u202e", "\u200b", "\0", "\x1b", "\ufeff"}.isdisjoint(seen)


def test_tools_are_sorted_by_a_key_and_the_choice_is_shown(shown):
    page = shown(
        text("a"), '> 3 tools/call {"name":"another"}', "< 3 = {}", '> 4 tools/call {"name":"another"}', "< 4 = {}"
    )
    page.press("3")
    for heading in ("tool ↑", "definition ↓", "≈ tokens ↓", "calls ↓"):
        page.press("S")
        assert page.texts("#view-tools [aria-sort]") == [heading]
    assert page.texts("#view-tools tbody th") == ["another", "get"]
