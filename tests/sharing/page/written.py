"""A page as `mcpspy share --raw` writes it, and what it carries."""

import base64
import gzip
import io
import json
import re

from mcpspy.capture.reader import Capture
from mcpspy.filters import parse
from mcpspy.sharing.page.writer import Shared, raw_lines, write_page

RAW = {"scrubbed": False, "raw": True, "replaced": []}


def written(path, wanted=None):
    """The text of the page of a capture as it is, with only what a filter leaves of it."""
    chosen = None if wanted is None else parse(wanted, Capture(str(path)).header.started)
    output = io.BytesIO()
    write_page(Shared(str(path), lambda: raw_lines(str(path)), RAW, chosen), output)
    return output.getvalue().decode()


def carried(page, name="capture"):
    """The bytes that an element of a page carries."""
    element = re.search(rf'<script type="application/gzip;base64" id="{name}">([^<]*)</script>', page)
    return gzip.decompress(base64.b64decode(element[1], validate=True))


def session(page):
    """The session that a page carries."""
    return json.loads(carried(page, "session"))
