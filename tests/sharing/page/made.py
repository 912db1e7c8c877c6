"""Pages of sessions with changes that no writer would make."""

import base64
import gzip
import json

from mcpspy.sharing.page.sources import page
from tests.sharing.page import written


def session(path, **about):
    """Return the session in the page of a scrubbed capture, with some members of `about` changed."""
    found = written.session(written.written(path))
    found["about"] |= {"raw": False, "scrubbed": True} | about
    return found


def write(target, data, capture):
    """Write a page that contains a session and the bytes of a capture; return its URL."""
    frame = page()
    carried = _element("session", json.dumps(data).encode()) + _element("capture", capture)
    target.write_text(frame.before + carried + frame.after)
    return target.as_uri()


def _element(name, text):
    packed = base64.b64encode(gzip.compress(text)).decode()
    return f'<script type="application/gzip;base64" id="{name}">{packed}</script>\n'
