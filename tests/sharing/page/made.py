"""A page made of a capture, and of anything that a hostile one may hold."""

import base64
import gzip
import hashlib
import json
import re

import orjson

from mcpspy.capture.reader import Capture
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import Message
from mcpspy.overview import Announced
from mcpspy.rules import RULES
from mcpspy.sharing.page.rows import page_row
from mcpspy.timeline import final_rows
from tests.sharing.page.sources import PAGE

ABOUT = {
    "file": "session.jsonl", "live": False, "scrubbed": True, "raw": False, "damage": [], "replaced": [],
    "filter": None, "made": "mcpspy 0.1.0",
}  # fmt: skip


def session(path, **about):
    """What the page shows of a capture."""
    capture = Capture(str(path))
    header = capture.header
    rows = list(final_rows(capture.records, live=False))
    announced, conversation = Announced(), Conversation()
    for record in capture.records():
        for event in conversation.feed(record):
            if isinstance(event, Message):
                announced.add(event)
    for row in rows:
        for finding in row.findings:
            announced.find(finding, row.method, row.name)
    found = {finding.rule: finding for row in rows for finding in row.findings}
    named = {"name": header.name, "transport": header.transport, "started": header.started, "tool": header.tool}
    ends = [row.text for row in rows if row.kind == "end"]
    return {
        "about": ABOUT
        | named
        | {"argv": header.argv, "url": header.url, "id": header.id, "end": (ends or [None])[-1]}
        | about,
        "peers": {"client": _peer(announced.client), "server": _peer(announced.server)},
        "rows": [orjson.loads(orjson.dumps(page_row(row, header))) for row in rows],
        "rules": {name: _rule(RULES[name], finding) for name, finding in found.items()},
        "tools": [_tool(tool) for tool in announced.tools.values()],
    }


def write(target, data, capture):
    """Write the page that carries a session and the bytes of a capture; returns its address."""
    names = []
    _visit("main.js", names)
    script = '"use strict";\n' + "\n".join(_bare((PAGE / name).read_text()) for name in names)
    styles = (PAGE / "page.css").read_text()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(styles)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = (PAGE / "page.html").read_text()
    carried = "".join(
        _element(name, text) for name, text in (("session", json.dumps(data).encode()), ("capture", capture))
    )
    for place, text in (
        (
            '<meta charset="utf-8">',
            f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">',
        ),
        ('<link rel="stylesheet" href="page.css">', f"<style>{styles}</style>"),
        ('<script type="module" src="main.js"></script>', f"{carried}<script>{script}</script>"),
    ):
        assert page.count(place) == 1
        page = page.replace(place, text)
    target.write_text(page)
    return target.as_uri()


def _element(name, text):
    carried = base64.b64encode(gzip.compress(text)).decode()
    return f'<script type="application/gzip;base64" id="{name}">{carried}</script>\n'


def _visit(name, names):
    for other in re.findall(r'^import [^"]*"\./([\w-]+\.js)";$', (PAGE / name).read_text(), re.MULTILINE):
        if other not in names:
            _visit(other, names)
    names.append(name)


def _bare(source):
    source = re.sub(r'^import [^"]*"\./[\w-]+\.js";\n', "", source, flags=re.MULTILINE)
    return re.sub(r"^export ", "", source, flags=re.MULTILINE)


def _hash(text):
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _peer(peer):
    return peer and {
        name: getattr(peer, name) for name in ("name", "version", "revision", "capabilities", "instructions")
    }


def _rule(rule, finding):
    fix = " ".join(text for _, text in rule.advice(finding.blame))
    return {
        "summary": rule.summary,
        "explanation": rule.explanation,
        "fix": fix,
        "severity": finding.severity,
        "spec": finding.spec,
    }


def _tool(tool):
    quantiles = [value / 1e9 for value in tool.quantiles(0.5, 0.95)] or [None, None]
    return {
        "name": tool.name, "bytes": tool.size, "listed": tool.listed, "called": tool.called, "calls": tool.calls,
        "errors": tool.errors, "found": tool.found, "p50": quantiles[0], "p95": quantiles[1],
        "max": tool.longest / 1e9 if quantiles[0] is not None else None,
    }  # fmt: skip
