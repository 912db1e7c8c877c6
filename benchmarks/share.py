"""What a shared page of 10,000 frames takes: `python -m benchmarks.share`, from the root of the repository."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
from contextlib import closing
from time import perf_counter

from benchmarks.check.traffic import write
from benchmarks.relay.figures import Row, Target
from benchmarks.relay.report import machine, summary
from tests.tui.web.browser import Browser

FRAMES, ROUNDS = 10_000, 5
FILTER = '"no rain expected" kind:result'  # the filter searches the text of every frame
ASK = """
    const [filter, rows] = arguments;
    const [box, list] = ["filter", "rows"].map((id) => document.getElementById(id));
    const start = performance.now();
    new MutationObserver((_, observer) => {
      if (list.getAttribute("aria-rowcount") !== String(rows + 1)) return;
      observer.disconnect();
      requestAnimationFrame(() => arguments[2]((performance.now() - start) / 1000));
    }).observe(list, { attributes: true });
    box.value = filter;
    box.dispatchEvent(new Event("input"));
"""


def main() -> int:
    options = _options()
    facts = machine()  # read before the benchmark itself loads the machine
    frames, rounds = (500, 1) if options.quick else (FRAMES, ROUNDS)
    matches = (frames - 5) // 2  # the results after the handshake and the listing
    shown, filtered = [], []
    with tempfile.TemporaryDirectory() as folder:
        capture, page = os.path.join(folder, "a.jsonl"), os.path.join(folder, "a.html")
        write(capture, frames)
        written = [_shared(capture, page) for _ in range(rounds)]
        size = os.path.getsize(page)
        with closing(Browser(pathlib.Path(folder))) as browser:
            for _ in range(rounds):
                browser.ask("/url", url="about:blank")
                start = perf_counter()
                browser.ask("/url", url=pathlib.Path(page).as_uri())
                browser.until("document.body.dataset.ready && document.querySelector('#rows-body .row')")
                shown.append(perf_counter() - start)
                browser.until("document.body.dataset.ready === 'all'")
                filtered.append(browser.ask("/execute/async", script=ASK, args=[FILTER, matches]))
    rows = [
        Row(f"{frames:,} frames: to write the page, start-up included", written, Target(3, unit="s")),
        Row("in Chromium: until the rows show", shown, Target(1, unit="s")),
        Row("in Chromium: from the last letter of a filter to its rows", filtered, Target(1, unit="s")),
        Row("size of the page", [], text=f"{size / 1e6:.2f} MB"),
    ]
    summary(rows, options, facts, f"{rounds} rounds")
    return 0


def _shared(capture: str, page: str) -> float:
    """Return how long `mcpspy share` takes."""
    start = perf_counter()
    command = [sys.executable, "-m", "mcpspy", "share", capture, "-o", page, "--yes", "--force"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return perf_counter() - start


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.share", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that all of it works")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", metavar="FILE", help="write every figure there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
