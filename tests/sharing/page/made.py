"""A page made of a session and a capture, which need not belong together, for tests of what the page does with them."""

import base64
import gzip
import json

from mcpspy.capture.reader import Capture
from mcpspy.sharing.page.assemble import page
from mcpspy.sharing.page.contents import Contents

ABOUT = {"file": "session.jsonl", "scrubbed": True, "raw": False, "replaced": [], "filter": None}


def session(path, **about):
    """What the page shows of a capture; `about` replaces what is said of it."""
    contents = Contents(Capture(str(path)), live=False, about=ABOUT | about, most=1_000_000)
    return json.loads(b"".join(contents.json()))


def write(target, data, capture):
    """Write the page that carries a session and the bytes of a capture; returns its address."""
    before, after = page()
    elements = _element("session", json.dumps(data).encode()), _element("capture", capture)
    target.write_text("".join([before, *elements, after]), encoding="utf-8")
    return target.as_uri()


def _element(name, content):
    packed = base64.b64encode(gzip.compress(content)).decode()
    return f'<script type="application/gzip;base64" id="{name}">{packed}</script>\n'
