"""A page as `mcpspy share --raw` writes it, and its contents."""

import base64
import gzip
import io
import json
import re

from mcpspy.capture.reader import Capture
from mcpspy.filters import parse
from mcpspy.sharing.page.writer import Shared, write_page
from mcpspy.sharing.selection import raw_lines

RAW = {"scrubbed": False, "raw": True, "replaced": []}


def written(path, wanted=None):
    """Return the text of the page of an unscrubbed capture, with only the lines that a filter keeps."""
    chosen = None if wanted is None else parse(wanted, Capture(str(path)).header.started)
    output = io.BytesIO()
    write_page(Shared(str(path), lambda: raw_lines(str(path)), RAW, chosen), output)
    return output.getvalue().decode()


def carried(page, name="capture"):
    """Return the bytes in an element of a page."""
    element = re.search(rf'<script type="application/gzip;base64" id="{name}">([^<]*)</script>', page)
    return gzip.decompress(base64.b64decode(element[1], validate=True))


def session(page):
    """Return the session in a page."""
    return json.loads(carried(page, "session"))
