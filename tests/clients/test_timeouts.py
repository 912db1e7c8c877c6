import re

import pytest

from mcpspy.clients.table import BY_ID
from mcpspy.clients.timeouts import BY_CLIENT, TIME_OUTS, time_outs_of


def test_each_row_is_of_a_client_that_we_know_and_has_a_source_and_a_date():
    assert len(BY_CLIENT) == len(TIME_OUTS)
    for row in TIME_OUTS:
        assert row.client in BY_ID
        assert row.source.startswith("https://")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row.dated)
        assert row.version
        assert bool(row.begin_key) <= bool(row.setting)


@pytest.mark.parametrize(
    ("client", "entry", "begin"),
    [
        ("cline", {}, 3),
        ("cline", {"timeout": 120}, 120),
        ("opencode", {"timeout": 5000}, 5),
        ("qwen", {"timeout": 5000, "discoveryTimeoutMs": 60000}, 60),
        ("codex", {"startup_timeout_sec": 2.5}, 2.5),
        ("codex", {"startup_timeout_sec": "x"}, 10),
        ("codex", {"startup_timeout_sec": True}, 10),
        ("codex", {"startup_timeout_sec": 0}, 10),
        ("claude-code", {"timeout": 1000}, 30),
    ],
)
def test_an_entry_may_give_its_server_more_time_to_begin(client, entry, begin):
    """CF-11."""
    assert BY_CLIENT[client].begin_of(entry.get) == begin


@pytest.mark.parametrize(
    ("name", "client"),
    [
        ("opencode", "opencode"),
        ("Cline (weather)", "cline"),
        ("@cline/core", "cline"),
        ("an opencode", None),
        ("", None),
    ],
)
def test_a_client_is_known_by_how_it_calls_itself(name, client):
    row = time_outs_of(name)
    assert (row and row.client) == client
