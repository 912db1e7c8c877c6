"""CF-10: `docs/recipes/clients.md` agrees with the table of clients."""

import re

from mcpspy.clients.table import CLIENTS
from tests.clients import page


def test_the_page_is_what_the_table_says():
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.document(text) == text, "write it again: scripts/write-rules"


def test_every_client_that_was_run_has_a_section():
    written = re.findall(r"<!-- ([\w-]+) -->", page.PAGE.read_text(encoding="utf-8"))
    assert sorted(written) == sorted(client.id for client in CLIENTS if client.version)
