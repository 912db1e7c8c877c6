"""The page in a real browser, offline: it shows the same as mcpspy, and sends nothing."""

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.filters import parse
from mcpspy.timeline import final_rows
from tests import NIGHTLY
from tests.filters.test_cases import CASES
from tests.sharing.page.browsing import requested
from tests.sharing.page.written import written
from tests.timelines import GOLDEN
from tests.tui.web.browser import needs_chromium

pytestmark = needs_chromium
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
    requested(browser)
    browser.ask("/url", url=f"{path.as_uri()}#timeline")
    browser.until("document.body.dataset.ready === 'all'")
    return path


def told(row):
    """Return a row as the page shows it: what came of a request is shown at its response, if it has one."""
    status = "" if row.kind == "request" and row.response is not None else row.outcome or row.status or ""
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
    addresses = requested(browser)
    assert page.as_uri() in addresses
    assert {address for address in addresses if not address.startswith("data:")} == {page.as_uri()}
    assert browser.log() == []
