"""The page in a real browser, offline: it shows the same as mcpspy, runs nothing of a capture and sends nothing."""

import json
import shutil

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.filters import parse
from mcpspy.timeline import final_rows
from tests import NIGHTLY
from tests.filters.test_cases import CASES
from tests.sharing.page.written import written
from tests.timelines import CAPTURES, GOLDEN
from tests.transcript import capture
from tests.tui.web.browser import needs_chromium

pytestmark = needs_chromium
PATHS = sorted(CAPTURES.glob("*.jsonl"))
FEW = 4  # filters per capture; each one waits for the delay after the last key

SHOWN = """
    return [...document.querySelectorAll("#rows-body .row")]
      .sort((a, b) => a.getAttribute("aria-rowindex") - b.getAttribute("aria-rowindex"))
      .map((row) => [
        Number(row.querySelector(".n").textContent.slice(1)),
        [...row.classList].find((name) => name.startsWith("kind-")).slice(5),
        row.querySelector(".method").textContent,
        row.querySelector(".status").textContent,
      ]);
"""
FILTER = """
    const [filter, wanted] = arguments;
    const box = document.getElementById("filter");
    box.value = filter;
    box.dispatchEvent(new Event("input"));
    const shown = () => [...document.querySelectorAll("#rows-body .row")]
      .sort((a, b) => a.getAttribute("aria-rowindex") - b.getAttribute("aria-rowindex"))
      .map((row) => Number(row.querySelector(".n").textContent.slice(1)));
    const deadline = performance.now() + 20000;
    const look = () => {
      const found = typeof wanted === "string" ? document.getElementById("mistake").textContent : shown();
      const same = typeof wanted === "string" ? found.includes(wanted) : String(found) === String(wanted);
      if (same || performance.now() > deadline) arguments[2](found);
      else setTimeout(look, 5);
    };
    look();
"""
HOSTILE = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1><svg onload=window.pwned=1>"
    "'\"`${window.pwned=1}"
)


@pytest.fixture(name="browser")
def _browser(page):
    """A browser window that is high enough for every row of a golden capture."""
    page.size(1300, 9000)
    return page.browser


def opened(browser, folder, content):
    """Open a page from the disk, and wait until it has decompressed everything."""
    path = folder / "report.html"
    path.write_text(content, encoding="utf-8")
    browser.ask("/url", url="about:blank")
    asked(browser)
    browser.ask("/url", url=path.as_uri())
    browser.until("document.body.dataset.ready === 'all'")
    return path


def asked(browser):
    """Return the URLs that the pages requested since the last call, from the browser's log."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.ask("/se/log", type="performance")]
    named = ("Network.requestWillBeSent", "Network.webSocketCreated")
    return [
        message["params"].get("request", message["params"])["url"] for message in messages if message["method"] in named
    ]


def told(row):
    """Return a row as the page shows it: the status of an exchange is shown at its response."""
    status = "" if row.kind == "request" and row.response is not None else row.status or ""
    answer = row.kind in ("result", "error")
    return [row.n, row.kind, row.method or ("(no request seen)" if answer else f"{row.kind}:"), status]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_capture_shows_and_filters_as_show_does_and_asks_the_network_for_nothing(browser, tmp_path, path):
    read = Capture(str(path))
    rows = list(final_rows(read.records, live=False))
    page = opened(browser, tmp_path, written(path))
    assert browser.script(SHOWN) == [told(row) for row in rows]
    cases = [case["filter"] for case in CASES if case.get("capture") == path.name and case["filter"].strip()]
    for text in cases if NIGHTLY else cases[:: max(len(cases) // FEW, 1)]:
        fits = parse(text, read.header.started)
        wanted = [row.n for row in rows if fits(row)]
        assert browser.ask("/execute/async", script=FILTER, args=[text, wanted]) == wanted, text
    addresses = asked(browser)
    assert page.as_uri() in addresses
    assert {address for address in addresses if not address.startswith("data:")} == {page.as_uri()}
    assert browser.log() == []


def test_a_mistake_in_a_filter_is_told_with_its_column(browser, tmp_path):
    opened(browser, tmp_path, written(PATHS[0]))
    mistakes = [case for case in CASES if "error" in case and case["filter"].isascii() and case["filter"].isprintable()]
    for case in mistakes if NIGHTLY else mistakes[::12]:
        assert case["error"] in browser.ask("/execute/async", script=FILTER, args=[case["filter"], case["error"]])


def test_nothing_of_a_hostile_capture_runs(browser, tmp_path):
    """Markup and scripts are in every place that a peer or a path controls; every view and row is opened."""
    h = HOSTILE
    who = {"name": h, "version": h}
    client = {"protocolVersion": h, "clientInfo": who, "capabilities": {h: {}}}
    server = {"protocolVersion": h, "serverInfo": who, "capabilities": {h: {h: True}}, "instructions": h}
    tools = [{"name": h, "title": h, "inputSchema": {"type": h}}]
    messages = [
        (">", {"id": h, "method": "initialize", "params": client}),
        ("<", {"id": h, "result": server}),
        (">", {"id": 2, "method": "tools/list", "params": {h: h}}),
        ("<", {"id": 2, "result": {"tools": tools}}),
        (">", {"id": 3, "method": "tools/call", "params": {"name": h, "arguments": {h: [h]}}}),
        ("<", {"id": 3, "error": {"code": h, "message": h, "data": "javascript:window.pwned=1"}}),
        (">", {"id": {"__proto__": 1}, "method": h, "params": {"__proto__": {"a": 1}}}),
    ]
    lines = [f"{mark} {json.dumps({'jsonrpc': '2.0'} | message)}" for mark, message in messages]
    session = "\n".join([*lines, f"< | {h}", f"! {h}", "! \x1b]0;title\x07\u202eevil"])
    path = capture(tmp_path / "a.jsonl", session, argv=(HOSTILE,), name=HOSTILE, cwd=HOSTILE)
    hostile = tmp_path / "<img src=x onerror=window.pwned=1>.jsonl"
    shutil.move(path, hostile)
    page = opened(browser, tmp_path, written(hostile))
    count = browser.script("return document.querySelectorAll('#rows-body .row').length")
    assert count >= 10
    for form in ("form-tree", "form-raw", "form-hex"):
        browser.script(f"document.getElementById('{form}').click()")
        for place in range(count):
            browser.script(f"document.querySelector('#rows-{place}').click()")
            browser.until("document.getElementById('cards').textContent.length > 20")
    for view in ("findings", "tools", "sequence", "stderr", "timeline"):
        browser.script(f"document.getElementById('tab-{view}').click()")
        browser.until(f"!document.getElementById('view-{view}').hidden")
    browser.script("document.getElementById('about').open = true; document.getElementById('help-button').click()")
    assert browser.script("return [window.pwned ?? null, document.images.length, document.scripts.length]") == [
        None,
        0,
        3,
    ]
    assert browser.script("return document.querySelectorAll('[onerror], [onload], [style*=expression]').length") == 0
    assert {address for address in asked(browser) if not address.startswith("data:")} == {page.as_uri()}
    assert browser.log() == []


def test_the_capture_that_the_page_saves_is_the_one_that_it_carries(browser, tmp_path):
    path = PATHS[0]
    opened(browser, tmp_path, written(path))
    browser.script(
        "window.saved = null; const made = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; });"
        "  return made.call(URL, blob); };"
        "HTMLAnchorElement.prototype.click = () => {};"
        "document.getElementById('save-capture').click()"
    )
    browser.until("window.saved !== null")
    assert browser.script("return window.saved") == path.read_text(encoding="utf-8")
