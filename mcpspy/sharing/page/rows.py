"""The rows of a page, as its scripts read them: those of `show --json`, without what the capture contains anyway.

The page has the whole capture, so a row contains no message and no frame; what cannot be taken from there is added.
"""

import re
from typing import Any

from mcpspy.capture.records import Header
from mcpspy.conversation.preview import LONGEST
from mcpspy.timeline import Row, row_fields, text_json

_PLAIN = re.compile(r"0|-?[1-9]\d{0,14}")  # a number that every JSON parser keeps unchanged


def page_row(row: Row, header: Header) -> dict[str, Any]:
    """Return a row for orjson: the members of `docs/json.md` except `message`, `text` and `tail`, and three others.

    `preview` is a short text to show beside the method. `text` is the text of a row without a frame. `token` is the
    exact text of an id that is null or a number that JavaScript would write differently.
    """
    fields = row_fields(row, header)
    if row.id and (row.id.kind == "null" or (row.id.kind == "number" and not _PLAIN.fullmatch(row.id.token))):
        fields["token"] = row.id.token
    if not row.raw:
        fields["text"] = text_json(row.text or "")
    elif preview := row.preview or row.text:
        fields["preview"] = text_json(preview[:LONGEST])
    return fields
