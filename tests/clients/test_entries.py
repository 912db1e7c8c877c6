from dataclasses import replace

import pytest

from mcpspy.clients.entries import MOST_SERVERS, Entry, Refusal, entries, kind, launch, remote, unknown, wrapped
from mcpspy.clients.formats import read
from mcpspy.clients.launcher import is_agent
from mcpspy.clients.places import Found, Machine
from mcpspy.clients.table import BY_ID, Place
from mcpspy.clients.tree import Node
from mcpspy.errors import ConfigError, Unwrappable
from tests.each import each

HERE = Machine("/home/me", "linux", {}, "/home/me/app/deep")


def listed(text, place, machine=HERE, client=BY_ID["cursor"]):
    return entries(read(text, place.form), Found(client, place, "x"), machine, text)


def entry(text):
    [only] = listed(f'{{"mcpServers": {{"s": {text}}}}}', Place("user", "x", "json"))
    return only


def test_the_root_may_lie_deep():
    place = Place("user", "x", "json", ("a", "b"))
    assert [one.name for one in listed('{"a": {"b": {"x": {}, "y": {}}}}', place)] == ["x", "y"]
    assert listed('{"a": {}}', place) == []


@each(
    "key, cwd, platform",
    [
        ("/home/me/app", "/home/me/app", "linux"),
        ("/home/me/app", "/home/me/app/deep/er", "linux"),
        ("C:\\\\src\\\\app", "C:\\src\\app", "win32"),
        ("C:/src/app", "C:\\src\\app", "win32"),
    ],
)
def test_the_nearest_project_is_found(key, cwd, platform):
    [_, local, _] = BY_ID["claude-code"].places
    text = f'{{"projects": {{"/home": {{}}, "{key}": {{"mcpServers": {{"s": {{}}}}}}}}}}'
    home = "C:\\Users\\me" if platform == "win32" else "/home/me"
    assert [one.name for one in listed(text, local, Machine(home, platform, {}, cwd))] == ["s"]


def test_in_a_list_the_entries_say_their_names():
    place = Place("user", "x", "yaml")
    text = "mcpServers:\n- name: a\n- command: b\n- name: 3\n- x\n"
    assert [one.name for one in listed(text, place)] == ["a", "2", "3", "4"]
    with pytest.raises(ConfigError, match="mcpServers is a list"):
        listed('{"mcpServers": []}', Place("user", "x", "json"))


def test_a_root_that_stands_for_others_is_refused():
    with pytest.raises(ConfigError, match=r"^line 1, column 13: mcpServers has a YAML anchor"):
        listed("mcpServers: &a\n  s: {command: x}\n", Place("user", "x", "yaml"))


def test_a_launch_is_the_command_with_its_arguments():
    launched = launch(entry('{"args": ["-y", 3], "command": "npx"}'))
    assert launched.words == ["npx", "-y", "3"]
    assert launch(entry('{"command": "npx"}')).words == ["npx"]
    assert launch(entry('{"url": "x"}')) is None


def test_a_command_may_be_an_object():
    """Zed wrote it so before 2025-06."""
    one = entry('{"command": {"path": "npx", "args": ["x"]}, "args": ["not these"]}')
    assert launch(one).words == ["npx", "x"]


def test_the_first_of_the_clients_keys_is_the_url():
    one = entry('{"url": "a", "serverUrl": "b"}')
    assert remote(replace(one, client=BY_ID["windsurf"])).node.value == "b"
    assert remote(one).node.value == "a"
    assert remote(entry('{"httpUrl": "a"}')) is None


@each(
    "text, disabled",
    [('{"disabled": true}', True), ('{"enabled": false}', True), ('{"disabled": false}', False), ("{}", False)],
)
def test_a_server_may_be_disabled(text, disabled):
    assert entry(text).disabled is disabled


def test_what_is_no_object_has_no_members():
    with pytest.raises(Refusal, match="it is a string, not an object"):
        _ = entry('"x"').members


@each(
    "name, label",
    [("weather", "weather"), ("a b/ü", "a b/ü"), ("--", "server"), ("", "server"), ("-x", "-x"), ("a\nb", "a-b")],
)
def test_a_capture_is_called_like_the_server_if_a_command_line_can_hold_that(name, label):
    assert Entry(name, Node(0, 0, {}), BY_ID["cursor"]).label == label


@each(
    "words, launcher, own, ours",
    [
        (["/x/mcpspy", "wrap", "--name", "n", "--", "a", "--", "b"], ["/x/mcpspy"], ["a", "--", "b"], True),
        (["py", "-m", "mcpspy", "wrap", "--", "a"], ["py", "-m", "mcpspy"], ["a"], True),
        (["uvx", "mcpspy@1", "wrap", "--", "a"], ["uvx", "mcpspy@1"], ["a"], True),
        (["/usr/bin/uvx", "mcpspy", "wrap", "--", "a"], ["/usr/bin/uvx", "mcpspy"], ["a"], True),
        (
            ["C:\\x\\UV.exe", "tool", "run", "mcpspy", "wrap", "--", "a"],
            ["C:\\x\\UV.exe", "tool", "run", "mcpspy"],
            ["a"],
            True,
        ),
        (["pipx", "run", "mcpspy", "wrap", "--", "a"], ["pipx", "run", "mcpspy"], ["a"], True),
        (["uv", "run", "mcpspy", "wrap", "--", "a"], ["uv", "run", "mcpspy"], ["a"], False),
        (["cmd", "/c", "MCPSPY.EXE", "wrap", "--", "a"], ["cmd", "/c", "MCPSPY.EXE"], ["a"], False),
    ],
)
def test_what_is_behind_mcpspy_is_told(words, launcher, own, ours):
    behind = wrapped(words)
    assert (behind.launcher, behind.words, behind.ours) == (launcher, own, ours)


@each(
    "words",
    [["npx", "mcpspy"], ["mcpspy", "show", "--", "x"], ["mcpspy", "wrap", "x"], ["my-mcpspy", "wrap", "--", "x"], []],
)
def test_what_is_not_behind_mcpspy_is_not(words):
    assert wrapped(words) is None


@each(
    "value, said",
    [({}, "an object"), ([], "a list"), ("", "a string"), (None, "empty"), (True, "true"), (1, "a number or a date")],
)
def test_kinds_are_said_in_words(value, said):
    assert kind(Node(0, 0, value)) == said


@each(
    "client, text, words",
    [
        ("opencode", '{"type": "local", "command": ["npx", "-y", "x"], "args": ["no"]}', ["npx", "-y", "x"]),
        ("mcporter", '{"command": ["npx", "x"]}', ["npx", "x"]),
        ("mcporter", '{"command": "npx", "args": ["a b"]}', ["npx", "a b"]),
        ("cline", '{"transport": {"type": "stdio", "command": "npx", "args": ["x"]}}', ["npx", "x"]),
        ("cline", '{"command": "npx", "args": ["x"]}', ["npx", "x"]),
        ("cline", '{"transport": "stdio", "command": "npx"}', ["npx"]),
    ],
)
def test_each_client_has_forms_of_its_own(client, text, words):
    """CF-10."""
    assert launch(replace(entry(text), client=BY_ID[client])).words == words


@each(
    "client, text, reason",
    [
        ("cursor", '{"command": ["npx"]}', "its command is a list, not a string"),
        ("opencode", '{"command": "npx"}', "its command is a string, not a list"),
        ("opencode", '{"command": []}', "its command is an empty list"),
        ("opencode", '{"command": ["x", {}]}', "one of its args is an object"),
        ("mcporter", '{"command": 3}', "its command is a number or a date, not a string or a list"),
        ("mcporter", '{"command": "npx -y x"}', "mcporter splits its command at the blanks"),
        ("cline", '{"transport": {"command": 3}}', "its command is a number"),
    ],
)
def test_a_form_that_the_client_does_not_have_is_refused(client, text, reason):
    """CF-10."""
    with pytest.raises(Refusal, match=f"^{reason}"):
        launch(replace(entry(text), client=BY_ID[client]))


def test_what_was_found_instead_is_told():
    """CF-10."""
    assert str(unknown(entry('{"transport": {}, "exe": "x"}'))) == (
        "it has neither a command nor url; found transport, exe"
    )


def test_servers_under_the_key_of_another_client_are_not_overlooked():
    """CF-10."""
    with pytest.raises(
        Unwrappable, match=r"^line 1, column 2: found servers under 'servers'; Cursor reads 'mcpServers'"
    ):
        listed('{"servers": {"a": {}}}', Place("user", "x"))
    for text in ('{"servers": {"a": 1}}', '{"servers": []}', '{"other": {"a": {}}}'):
        assert listed(text, Place("user", "x")) == []


def test_claude_code_names_a_project_by_the_root_of_the_main_working_tree():
    """CF-10: also outside the home, and in a working tree that `git worktree` added."""
    here = Machine("/home/me", "linux", {}, "/srv/second/deep", "/srv/second", "/srv/main")
    [_, local, _] = BY_ID["claude-code"].places
    text = '{"projects": {"/srv/main": {"mcpServers": {"s": {}}}, "/srv/second": {"mcpServers": {"t": {}}}}}'
    assert [one.name for one in listed(text, local, here)] == ["s"]


def test_the_number_of_servers_is_limited():
    """A-21: 200,000 servers in the file of a project took a minute, also in `status`."""
    place, names = Place("user", "x", "json"), ", ".join(f'"s{number}": {{}}' for number in range(MOST_SERVERS))
    assert len(listed(f'{{"mcpServers": {{{names}}}}}', place)) == MOST_SERVERS
    with pytest.raises(ConfigError, match="line 1, column 16: mcpServers has more than 10,000 servers"):
        listed(f'{{"mcpServers": {{{names}, "t": {{}}}}}}', place)


AGENTS = ["mcpspy mcp", "/opt/bin/mcpspy mcp /captures", r"C:\bin\mcpspy.exe mcp", "python3 -m mcpspy mcp"]
AGENTS += ["uvx --from mcpspy[agent] mcpspy mcp", "uvx mcpspy[agent] mcp", "uvx mcpspy@1.0 mcp"]
OTHERS = ["", "mcpspy", "mcpspy wrap -- npx mcp", "npx mcp", "mcp mcpspy", "mcpspyx mcp", "node mcp mcpspy"]


@each("words, known", [*((words, True) for words in AGENTS), *((words, False) for words in OTHERS)])
def test_the_server_for_agents_is_known_by_its_words(words, known):
    assert is_agent(words.split()) is known


@each("form, text", [("json", '\n{"a" = 1}'), ("toml", "\na = = 1"), ("yaml", "\na: ]")])
def test_an_error_in_any_format_says_line_column_and_reason(form, text):
    with pytest.raises(ConfigError, match=r"^line 2, column \d: .+"):
        read(text, form)
