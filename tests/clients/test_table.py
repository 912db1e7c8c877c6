import re

import pytest

from mcpspy.clients.formats import JSON, TOML, YAML
from mcpspy.clients.table import BY_ID, CLIENTS, SCOPES, client
from mcpspy.errors import UsageError
from tests.clients.configurations import FIXTURES, place


@pytest.mark.parametrize("name", ["cursor", "Cursor", "CURSOR", "Claude Desktop", "claude_desktop", "VS Code"])
def test_a_client_is_found_by_id_and_by_name(name):
    assert client(name).id in ("cursor", "claude-desktop", "vscode")


@pytest.mark.parametrize(
    ("name", "hint"),
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
