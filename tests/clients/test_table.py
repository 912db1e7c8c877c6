"""The table of clients and of their time-outs is whole, and `docs/recipes/clients.md` agrees with it (CF-10)."""

import re

import pytest

from mcpspy.clients.formats import JSON, TOML, YAML
from mcpspy.clients.table import BY_ID, CLIENTS, SCOPES, client
from mcpspy.errors import UsageError
from mcpspy.spec.client_limits import BY_CLIENT, TIME_OUTS, time_outs_of
from tests.clients import page
from tests.clients.configurations import FIXTURES, place
from tests.each import each


@each("name", ["cursor", "Cursor", "CURSOR", "Claude Desktop", "claude_desktop", "VS Code"])
def test_a_client_is_found_by_id_and_by_name(name):
    assert client(name).id in ("cursor", "claude-desktop", "vscode")


@each(
    "name, hint",
    [
        ("curser", "did you mean 'cursor'?"),
        ("gemini", "did you mean 'gemini-cli'?"),
        ("vs-code2", "did you mean 'vscode'?"),
        ("xyz", "the clients are cursor, claude-desktop, "),
        ("", "the clients are"),
    ],
)
def test_an_unknown_client_answers_with_the_nearest(name, hint):
    with pytest.raises(UsageError, match=re.escape(hint)):
        client(name)


def test_the_table_is_whole():
    assert len(BY_ID) == len(CLIENTS) == 15
    for one in CLIENTS:
        assert one.source.startswith("https://")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", one.checked)
        for here in one.places:
            assert here.scope in SCOPES
            assert here.form in (JSON, TOML, YAML)


def test_every_client_has_a_fixture_on_every_platform_that_it_is_told_apart_on():
    fixtures = {tuple(name.split(".")[0:3:2]) for name in FIXTURES}
    assert {client for client, _ in fixtures} == set(BY_ID)
    for one in CLIENTS:
        assert {platform for client, platform in fixtures if client == one.id} == {"darwin", "linux", "win32"}
    assert all(place(name) for name in FIXTURES)


def test_each_row_is_of_a_client_that_we_know_and_has_a_source_and_a_date():
    assert len(BY_CLIENT) == len(TIME_OUTS)
    for row in TIME_OUTS:
        assert row.client in BY_ID
        assert row.source.startswith("https://")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row.dated)
        assert row.version
        assert bool(row.begin_key) <= bool(row.setting)


@each(
    "client, entry, begin",
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


@each(
    "name, client",
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


def test_the_page_is_what_the_table_says():
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.document(text) == text, "write it again: scripts/write-rules"


def test_every_client_that_was_run_has_a_section():
    written = re.findall(r"<!-- ([\w-]+) -->", page.PAGE.read_text(encoding="utf-8"))
    assert sorted(written) == sorted(client.id for client in CLIENTS if client.version)
