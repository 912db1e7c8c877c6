"""The entry of `mcpspy mcp` is added to the configuration of every client; removing it restores every byte."""

import pytest

from mcpspy.clients.formats import read
from mcpspy.clients.places import Found
from mcpspy.clients.plan import add_agent, install, remove_agent
from mcpspy.clients.table import BY_ID
from mcpspy.clients.tree import plain
from mcpspy.errors import Unwrappable
from tests.clients.configurations import FIXTURES, fixture, machine, place
from tests.each import each

WORDS = ["/opt/my tools/mcpspy", "mcp"]


def servers(text, found):
    return plain(read(text, found.place.form))[found.place.root[0]]


@each("name", FIXTURES)
def test_it_comes_and_goes(name, tmp_path):
    found, here, text = place(name), machine(tmp_path), fixture(name).decode()
    made = add_agent(text, found, here, WORDS).text
    there = servers(made, found)
    entry = there["mcpspy"] if isinstance(there, dict) else next(it for it in there if it.get("name") == "mcpspy")
    command = entry["command"]
    assert (command if isinstance(command, list) else [command, *entry["args"]]) == WORDS
    assert ("\r\n" in made) == ("\r\n" in text)
    assert remove_agent(made, found, here).text == text
    assert add_agent(made, found, here, WORDS).text == made
    assert install(made, found, here, ["mcpspy"], ["mcpspy"], {}).text == made


EMPTY = {
    "cursor": ["{}", '{"mcpServers": {}}', "// mine\n{\n  // none\n}\n", '{"mcpServers": {/* none */}}', '{"x": 1}'],
    "codex": ["", 'model = "x"\n', 'model = "x"', "[mcp_servers]\n"],
    "librechat": ["version: 1\n", "version: 1"],
    "opencode": ['{"mcp": {}}', "{}"],
}


@each("client, text", [(client, text) for client, texts in EMPTY.items() for text in texts])
def test_it_goes_where_no_server_is(client, text, tmp_path):
    found, here = Found(BY_ID[client], BY_ID[client].places[0], "file"), machine(tmp_path)
    made = add_agent(text, found, here, WORDS).text
    assert "mcpspy" in servers(made, found)
    removed = remove_agent(made, found, here).text
    assert not (plain(read(removed, found.place.form)) or {}).get(found.place.root[0])


def test_an_entry_between_others_is_removed_with_one_comma(tmp_path):
    found, here = Found(BY_ID["cursor"], BY_ID["cursor"].places[0], "file"), machine(tmp_path)
    own, other = '"mcpspy": {"command": "mcpspy", "args": ["mcp"]}', '{"command": "a"}'
    for text, left in (
        (f'{{"mcpServers": {{"a": {other}, {own}}}}}', f'{{"mcpServers": {{"a": {other}}}}}'),
        (
            f'{{"mcpServers": {{"a": {other}, {own}, "b": {other}}}}}',
            f'{{"mcpServers": {{"a": {other}, "b": {other}}}}}',
        ),
        (f'{{"mcpServers": {{{own},}}}}', '{"mcpServers": {}}'),
    ):
        assert remove_agent(text, found, here).text == left


@each(
    "client, text, sentence",
    [
        (
            "cursor",
            '{"mcpServers": {"mcpspy": {"command": "npx", "args": ["other"]}}}',
            "another server called 'mcpspy'",
        ),
        ("cursor", '{"mcpServers": 5}', "an object|not a list"),
        ("cursor", "[]", "object"),
        ("librechat", "mcpServers: {a: {command: b}}\n", "by hand"),
    ],
)
def test_what_cannot_be_edited_is_said(client, text, sentence, tmp_path):
    found = Found(BY_ID[client], BY_ID[client].places[0], "file")
    with pytest.raises(Unwrappable, match=sentence):
        add_agent(text, found, machine(tmp_path), WORDS)


def test_another_server_of_that_name_is_not_removed(tmp_path):
    found = Found(BY_ID["cursor"], BY_ID["cursor"].places[0], "file")
    text = '{"mcpServers": {"mcpspy": {"command": "npx", "args": ["other"]}}}'
    assert remove_agent(text, found, machine(tmp_path)).text == text
