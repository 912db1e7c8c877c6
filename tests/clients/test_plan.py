"""The edits of install and uninstall in a text: the entries change as planned, and no other character does."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.clients import plan
from mcpspy.clients.entries import Entry, entries, launch, wrapped
from mcpspy.clients.formats import read
from mcpspy.clients.places import Found, Machine
from mcpspy.clients.plan import CANNOT, LEAVE, REFUSE, ROUTE, UNDO, WRAP
from mcpspy.clients.routes import Route
from mcpspy.clients.table import BY_ID
from mcpspy.clients.tree import edited, plain, quote
from mcpspy.errors import ConfigError
from tests.clients.configurations import FIXTURES, LAUNCHER, Jsonc, Toml, Yaml, fixture, generated, place
from tests.each import each
from tests.limits import proportionate

HERE = Machine("/home/me", "linux", {}, "/home/me/app")
CURSOR = Found(BY_ID["cursor"], BY_ID["cursor"].places[0], "mcp.json")


def put_on(text, found=CURSOR, names=(), launcher=LAUNCHER, routes=None):
    return plan.install(text, found, HERE, names, launcher, routes or {})


def take_off(text, found=CURSOR, names=(), routes=None, original=None):
    return plan.uninstall(text, found, HERE, names, routes or {}, original)


def lines(text):
    """Return the command line of each server."""
    listed = entries(read(text, "json"), CURSOR, HERE, text)
    return {entry.name: launched.words for entry in listed if (launched := launch(entry))}


def one(entry):
    return f'{{"mcpServers": {{"s": {entry}}}}}'


@each("name", FIXTURES)
def test_in_a_fixture_nothing_but_commands_args_and_urls_differs(name):
    text, found = fixture(name).decode(), place(name)
    new = put_on(text, found).text
    before, after = plain(read(text, found.place.form)), plain(read(new, found.place.form))
    assert before != after
    blank(before)
    blank(after)
    assert before == after
    assert ("\r\n" in new) == (name.split(".")[2] == "win32")
    assert re.search(r"(?<!\r)\n" if "\r\n" in text else "\r", new) is None
    assert new.startswith("\ufeff") == text.startswith("\ufeff")


def blank(value):
    """Remove from a value the members that an edit may change."""
    if isinstance(value, dict):
        for key in ("command", "path", "args", "url", "httpUrl", "serverUrl", "baseUrl"):
            if not isinstance(value.get(key), dict):
                value.pop(key, None)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        blank(inner)


def named(value, found):
    """Return the entries of a configuration by name, from a mapping or a list."""
    servers = value[found.place.root[0]]
    return {entry["name"]: entry for entry in servers} if isinstance(servers, list) else servers


@pytest.mark.parametrize(
    ("writer", "client"), [(Jsonc, "cursor"), (Toml, "codex"), (Yaml, "continue")], ids=["json", "toml", "yaml"]
)
@given(data=st.data())
def test_in_any_text_nothing_outside_the_entry_changes(writer, client, data):
    """CF-01."""
    servers, text = data.draw(generated(writer))
    found = Found(BY_ID[client], BY_ID[client].places[0], "x")
    value = plain(read(text, found.place.form))
    assert {name: {k: v for k, v in e.items() if k != "name"} for name, e in named(value, found).items()} == servers
    name = next(iter(servers))
    entry = named(value, found)[name]
    own = [entry["command"], *entry.get("args", [])]

    new = put_on(text, found, [name]).text
    if not wrapped(own):
        label = Entry(name, None, found.client).label
        entry["command"], entry["args"] = LAUNCHER[0], ["wrap", "--name", label, "--", *own]
    assert plain(read(new, found.place.form)) == value
    assert re.findall(r"c\d+c", new) == re.findall(r"c\d+c", text), "the comments, in their order"
    assert put_on(new, found, [name]).text == new
    if not wrapped(own):
        assert take_off(new, found, [name], original=text).text == text


@pytest.mark.parametrize(
    "words",
    [
        ["cmd", "/c", "npx", "-y", "@x/y"],
        ["uv", "--directory", "/a b/c", "run", "server"],
        ["docker", "run", "-i", "--rm", "-e", "A=b c", "image"],
        ["server", "--", "--", "-x", "--name", "wrap"],
        ["mcpspy", "mock", "x.jsonl"],
        ["server", 'say "hi"', "it's", "back\\slash", ""],
        ["${env:BIN}/server", "${input:key}", "$HOME", "${workspaceFolder}"],
        ["-server"],
    ],
)
@pytest.mark.parametrize("launcher", [LAUNCHER, ["/bin/python3", "-m", "mcpspy"]])
def test_a_command_line_survives_word_by_word(words, launcher):
    """CF-02."""
    entry = {"command": words[0], "args": words[1:], "env": {"A": "${env:A}"}, "cwd": "~"}
    text = one(json.dumps(entry))
    new = put_on(text, launcher=launcher)
    assert lines(new.text) == {"s": [*launcher, "wrap", "--name", "s", "--", *words]}
    rest = json.loads(new.text)["mcpServers"]["s"]
    assert (rest["env"], rest["cwd"]) == ({"A": "${env:A}"}, "~")
    assert take_off(new.text, original=text).text == text


SELDOM = {
    "cursor": (
        '{"mcpServers": {"a": {"command": "x"}, "a": {"args": ["1"], "command": "y", "args": ["2"]}}}',
        '{"mcp\\u0053ervers": {"\\ud83d\\ude00": {"comm\\u0061nd": "x", "\\u0061rgs": ["1"]}}}',
        '{\r"mcpServers": {\r"a": {"command": "x", // c\r"args": ["1"]\r}}}',
        f'{{"x": 1e999, "y": {"[" * 150 + "]" * 150}, "mcpServers": {{"a": {{"command": "x", "args": [1, 2.50]}}}}}}',
    ),
    "codex": (
        'mcp_servers = { a = { command = "x", args = ["1"] }, b = {command="y"} } # c\n',
        "mcp_servers.a.command = 'x' # c\nmcp_servers . 'a' . args = ['1']\nmcp_servers.b.command='y'",
        "[mcp_servers]\n# c\na.command = 'x'\na . env . B = '1'\nb = {command='y'}\n[mcp_servers.c]\ncommand='z'\n",
        "[mcp_servers.a]\ncommand='x'\n[[mcp_servers.a.tools]]\ncommand='t'\n[[mcp_servers.a.tools]]\nargs=[]\n",
        '[mcp_servers.a.env]\nA="1"\n[mcp_servers.a] # c\r\ncommand="x" # d\r\n',
        "[mcp_servers.a]\ncommand = 'x'\nargs = ['''\\\n a \\\n c''', '''d\n]''', 1979-05-27, 'e'] # ]\n",
    ),
    "librechat": (
        '%YAML 1.2\n--- # c\nmcpServers: {a: {command: x, args: [\n1,\n"2" # d\n]}, b: {command: y}}\n...\n',
        "d: &d {env: {A: 1}}\nmcpServers:\n  a:\n    <<: *d\n    command: x\n    args: !!seq [-y]\n",
        "x: !secret y\nmcpServers: !foo\n  ? a\n  : command: yes\n    args: # c\n\n    # d\n    - on\n    - 0o7\n",
    ),
    "continue": ("mcpServers:\n-   command: y\n    name: b\n-\n  name: c\n  args:\n    -   z # c\n  command: x # d",),
}


@each("client, text", [(client, text) for client, texts in SELDOM.items() for text in texts])
def test_what_people_write_seldom_comes_back(client, text):
    found = Found(BY_ID[client], BY_ID[client].places[0], "x")
    new = put_on(text, found)
    assert {step.action for step in new.steps} == {WRAP}
    assert put_on(new.text, found).text == new.text
    assert take_off(new.text, found, original=text).text == text


@each(
    "words",
    [
        ["mcpspy", "wrap", "--", "npx"],
        ["uv", "tool", "run", "mcpspy==0.1", "wrap", "--", "npx"],
        ["sh", "-c", "cd /srv && exec '/opt/my tools/mcpspy' wrap -- npx"],
        ["cmd", "/c", "C:\\x\\mcpspy.exe wrap -- npx"],
    ],
)
def test_what_is_wrapped_is_never_wrapped_again(words):
    text = one(json.dumps({"command": words[0], "args": words[1:]}))
    planned = put_on(text)
    assert planned.text == text
    assert [(step.action, step.detail) for step in planned.steps] == [(LEAVE, "wrapped already")]


@each(
    "words, left",
    [
        (["mcpspy", "wrap", "--", "npx", "-y"], ["npx", "-y"]),
        (["python3", "-m", "mcpspy", "wrap", "--", "npx"], ["npx"]),
        (["uvx", "mcpspy", "wrap", "--name", "x", "--", "npx", "--", "y"], ["npx", "--", "y"]),
        (["docker", "run", "image", "mcpspy", "wrap", "--", "npx"], None),
        (["mcpspy", "wrap", "--"], None),
        (["sh", "-c", "mcpspy wrap -- npx"], None),
        (["npx", "wrap", "--", "x"], "not wrapped"),
    ],
)
def test_what_was_wrapped_by_hand_is_undone_where_it_is_plain_how(words, left):
    text = one(json.dumps({"command": words[0], "args": words[1:]}))
    planned = take_off(text, names=["s"])
    if isinstance(left, list):
        assert lines(planned.text) == {"s": left}
    else:
        assert planned.text == text
        assert planned.steps[0].action == (LEAVE if left else CANNOT)


@each("options", [[], ["--check", "-o", "f.jsonl"], ["--name", "x", "--check"]])
def test_a_wrap_that_install_did_not_make_is_undone_only_by_name(options):
    text = one(json.dumps({"command": "mcpspy", "args": ["wrap", *options, "--", "npx"]}))
    [step] = take_off(text).steps
    assert (step.action, step.edits) == (LEAVE, ())
    assert "name it" in step.detail
    assert lines(take_off(text, names=["s"]).text) == {"s": ["npx"]}


@each("rest", ["x = nan\n", "x = [nan, inf]\n", 'x = """a\nb"""\n', "d = 1979-05-27T07:32:00Z\n"])
def test_any_value_beside_the_servers_is_kept(rest):
    found = Found(BY_ID["codex"], BY_ID["codex"].places[0], "x")
    text = f'{rest}[mcp_servers.s]\ncommand = "npx"\n'
    new = put_on(text, found)
    assert [step.action for step in new.steps] == [WRAP]
    assert new.text.startswith(rest)
    assert take_off(new.text, found, original=text).text == text


def test_after_other_changes_only_our_edit_is_undone():
    text = one('{\n "command": "npx"\n}')
    changed = put_on(text).text.replace("}}}", ', "env": {}}}}').replace('"s":', '/* mine */ "s":')
    undone = take_off(changed, original=text).text
    assert lines(undone) == {"s": ["npx"]}
    assert "/* mine */" in undone
    assert "args" not in undone


@pytest.mark.parametrize("form", ['["wrap", "--name", "s", "--", "npx",]', '[\n"wrap","--name","s","--","npx"\n]'])
def test_a_formatter_may_have_been_there(form):
    text = one(f'{{"command": "{LAUNCHER[0]}", "args": {form}}}')
    assert lines(take_off(text).text) == {"s": ["npx"]}


def test_a_name_that_a_command_line_cannot_hold_is_replaced():
    text = '{"mcpServers": {"--": {"command": "a"}, "": {"command": "b"}, "x\\u0007y": {"command": "c"}}}'
    new = put_on(text).text
    assert [words[3] for words in lines(new).values()] == ["server", "server", "x-y"]
    assert take_off(new, original=text).text == text


@each(
    "entry, reason",
    [
        ("true", "it is true, not an object"),
        ("[]", "it is a list, not an object"),
        ('{"command": 3}', "its command is a number or a date, not a string"),
        ('{"command": {}}', "its command is an object without a path"),
        ('{"command": "npx", "args": "-y"}', "its args are a string, not a list"),
        ('{"command": "npx", "args": null}', "its args are empty, not a list"),
        ('{"command": "npx", "args": [["x"]]}', "one of its args is a list"),
        ('{"url": 1}', "its url is a number or a date, not a string"),
        ("{}", "it has neither a command nor url"),
        ('{"url": "unix:///tmp/s.sock"}', "its URL is neither http nor https"),
        *(
            (f'{{"url": "{url}"}}', "the origin of its URL has a variable")
            for url in (
                "https://${env:HOST}/mcp",
                "https://$HOST/mcp",
                "https://h:$PORT/mcp",
                "https://${H:-h}/",
                "$URL",
                "${URL}/mcp",
                "${{ secrets.URL }}",
            )
        ),
        *(
            (f'{{"url": "https://h/", "{key}": {{}}}}', "it logs in with OAuth, which another origin would break")
            for key in ("auth", "oauth", "authProviderType", "requiresOAuth")
        ),
        ('{"url": "https://me:hunter2@h/"}', "its URL holds a password"),
        ('{"url": "https://me:hunter2@[zz/"}', "its URL holds a password"),
        ('{"url": "https://h:99999/"}', "its URL has no valid host or port"),
        ('{"url": "https://h:port/"}', "its URL has no valid host or port"),
        ('{"url": "https://[::1/"}', "its URL has no valid host or port"),
        ('{"url": "https://:443/"}', "its URL has no valid host"),
        ('{"url": "https://<your-host>/mcp"}', "its URL has no valid host, but '<your-host>'"),
        ('{"url": "https://exämple.org/"}', "its URL has no valid host, but 'exämple.org': write it in ASCII"),
        *(
            (f'{{"url": "http://{host}:6278/mcp"}}', "it is behind a proxy already: port 6278 is mcpspy's own")
            for host in ("127.0.0.1", "localhost", "LOCALHOST", "127.1.2.3", "[::1]", "0.0.0.0", "a.localhost")  # noqa: S104
        ),
    ],
)
def test_an_entry_that_cannot_be_changed_is_left_alone_with_the_reason_and_the_place(entry, reason):
    text = f'{{"mcpServers": {{\n "bad": {entry},\n "good": {{"command": "npx"}}}}}}'
    bad, good = put_on(text).steps
    assert (bad.action, good.action) == (CANNOT if '"url": "' in entry else REFUSE, WRAP)
    assert bad.detail.startswith(f"line 2, column 9: {reason}")


@each(
    "entry, reason",
    [
        ("&a {command: npx}\n  t: *a", "it has a YAML anchor or is an alias"),
        ("{command: &a npx, args: [*a]}", "its command has a YAML anchor or is an alias"),
        ("{command: npx, args: &a [x]}", "its list of args has a YAML anchor or is an alias"),
        ("\n    command: >-\n      npx", "its command is a YAML block of text"),
        ("\n    command: npx\n    args:\n", "its list of args is empty"),
        ("\n    command: npx\n    args: !!seq\n    - x\n", "its list of args has a YAML tag"),
        ("\n    command: 2026-11-20\n", "its command is a number or a date, not a string"),
        ("\n    <<: {command: npx}\n", "it has neither a command nor url"),
    ],
)
def test_yaml_that_stands_for_more_than_itself_is_left_alone(entry, reason):
    found = Found(BY_ID["librechat"], BY_ID["librechat"].places[0], "x")
    text = f"mcpServers:\n  s: {entry}"
    planned = put_on(text, found)
    assert planned.text == text
    assert reason in planned.steps[0].detail


@each(
    "text, fault",
    [
        ("[]", "line 1, column 1: the whole is a list, not an object"),
        ('{\n "mcpServers": [1]}', "line 2, column 16: mcpServers is a list, not an object"),
        ('{"mcpServers": "x"}', "line 1, column 16: mcpServers is a string, not an object"),
        ('{\n  "mcpServers": {\n    "a" {}\n}}', "line 3, column 9: expected ':' after the key 'a', got '{'"),
    ],
)
def test_a_configuration_that_is_none_says_where_and_why(text, fault):
    with pytest.raises(ConfigError, match=f"^{re.escape(fault)}"):
        put_on(text)


def test_a_configuration_without_servers_has_none():
    for text in ("{}", '{"mcpServers": {}}', '{"mcpServers": null}'):
        assert put_on(text).steps == []


def test_only_the_servers_that_are_named_are_changed():
    text = '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}'
    planned = put_on(text, names=["b"])
    assert [step.server for step in planned.steps] == ["b"]
    assert planned.servers == ["a", "b"]
    assert lines(planned.text)["a"] == ["x"]


@each(
    "url, routed",
    [
        ("https://h.example/mcp?a=${X}#f", "http://127.0.0.1:6278/s/mcp?a=${X}#f"),
        ("https://h.example", "http://127.0.0.1:6278/s"),
        ("HTTP://h.example:8080?x", "http://127.0.0.1:6278/s?x"),
        ("https://h.example/$A/${B}?k=$K", "http://127.0.0.1:6278/s/$A/${B}?k=$K"),
    ],
)
def test_a_remote_server_gets_another_origin_and_keeps_the_rest(url, routed):
    """CF-03."""
    text = one(json.dumps({"url": url, "headers": {"Authorization": "Bearer x"}}))
    planned = put_on(text)
    assert json.loads(planned.text)["mcpServers"]["s"] == {"url": routed, "headers": {"Authorization": "Bearer x"}}
    [step] = planned.steps
    assert (step.action, step.notes) == (ROUTE, ())
    assert take_off(planned.text, routes=planned.routes).text == text


def test_a_remote_server_without_credentials_may_want_a_login():
    assert "mcpspy mitm" in put_on(one('{"url": "https://h/mcp"}')).steps[0].notes[0]
    assert not put_on(one('{"url": "http://localhost:3000/mcp"}')).steps[0].notes


def test_a_route_whose_origin_is_unknown_is_left_alone():
    text = one('{"url": "http://127.0.0.1:6278/s/mcp"}')
    assert put_on(text).text == text
    assert take_off(text, routes={"t": Route("https://h", {})}).steps[0].action == CANNOT


def test_a_route_that_is_lost_is_known_from_the_text_before():
    before, now = one('{"url": "https://h/mcp?a"}'), one('{"url": "http://127.0.0.1:6278/s/mcp?a"}')
    assert take_off(now, original=before).text == before
    assert take_off(now, original=now).steps[0].action == CANNOT
    assert take_off(now, original=before.replace("?a", "?b")).steps[0].action == CANNOT


def test_a_configuration_that_came_with_a_route_is_one_of_those_that_hold_it():
    route = Route("https://h", {"zed": ("/z.json",)})
    planned = put_on(one('{"url": "http://127.0.0.1:6278/r/mcp"}'), routes={"r": route})
    assert [(step.action, step.detail) for step in planned.steps] == [(LEAVE, "routed already")]
    assert planned.routes == {"r": Route("https://h", {"zed": ("/z.json",), "cursor": ("mcp.json",)})}


def test_the_url_is_swapped_in_the_clients_own_key_only():
    found = Found(BY_ID["gemini-cli"], BY_ID["gemini-cli"].places[0], "x")
    text = one('{"httpUrl": "https://a.example/mcp", "url": "https://b.example/sse"}')
    assert json.loads(put_on(text, found).text)["mcpServers"]["s"] == {
        "httpUrl": "http://127.0.0.1:6278/s/mcp",
        "url": "https://b.example/sse",
    }


def test_a_disabled_server_is_wrapped_and_said_to_be_disabled():
    text = one('{"command": "x", "disabled": true}')
    [step] = put_on(text).steps
    assert (step.action, step.notes) == (WRAP, ("disabled in the client",))
    [step] = take_off(put_on(text).text).steps
    assert step.action == UNDO


@pytest.mark.parametrize("more", ['"other"', '"npx"], "new": ["x"', '"npx"], "env": {"A": "2"}, "args": ["x'])
def test_an_edit_that_would_change_more_is_refused(monkeypatch, more):
    """A bug in mcpspy must not damage a configuration."""
    monkeypatch.setattr(plan, "quote", lambda word: more if word == "--" else quote(word))
    with pytest.raises(ConfigError, match="by hand"):
        put_on(one('{"command": "npx", "env": {"A": "1"}}'))


def test_an_edit_elsewhere_is_refused(monkeypatch):
    monkeypatch.setattr(plan, "edited", lambda text, edits: edited(text, edits).replace("dark", "light"))
    with pytest.raises(ConfigError, match="by hand"):
        put_on('{"theme": "dark", "mcpServers": {"s": {"command": "npx"}}}')


@each("name", ['say "hi"', "back\\slash", "${env:X}", "'", "ü"])
def test_the_name_of_a_server_is_escaped(name):
    text = json.dumps({"mcpServers": {name: {"command": "npx"}}})
    assert lines(put_on(text).text) == {name: [LAUNCHER[0], "wrap", "--name", name, "--", "npx"]}


@pytest.mark.parametrize("entry", [{"command": "node", "args": ["a.js"]}, {"command": "node"}])
def test_the_time_grows_with_the_number_of_servers(entry):
    """A-21: `install` and `uninstall` of many servers in one file."""
    text = json.dumps({"mcpServers": {f"server {number}": entry for number in range(1000)}}, indent=2)
    found, machine = Found(BY_ID["cursor"], BY_ID["cursor"].places[0], "/x"), Machine("/", "linux", {}, "/")
    with proportionate(2):
        planned = plan.install(text, found, machine, [], ["mcpspy"], {})
        assert plan.uninstall(planned.text, found, machine, [], {}, text).text == text


@each("args", [["wrap", "npx"], ["wrap", "npx", "--", "x"], ["-m", "mcpspy", "wrap", "npx"]])
def test_a_server_that_was_wrapped_by_hand_without_a_separator_is_left_as_it_is(args):
    """V-03: such a command works, but only a person knows where the server's own command begins."""
    text = one(json.dumps({"command": "python3" if "-m" in args else "mcpspy", "args": args}))
    assert [step.action for step in put_on(text).steps] == [LEAVE]
    [step] = take_off(text, names=["s"]).steps
    assert (step.action, "undo it by hand" in step.detail) == (CANNOT, True)


@each("kind, program", [("node", "node"), ("debugpy", "python")])
def test_a_server_with_a_debugger_of_vs_code_stays_as_it_is(kind, program):
    """V-03: with `dev.debug`, VS Code accepts no other command. The other servers are wrapped."""
    entry = {"command": program, "dev": {"debug": {"type": kind}, "watch": "**"}}
    text = json.dumps({"servers": {"s": entry, "t": {"command": "node", "dev": {"watch": "**"}}}})
    code = Found(BY_ID["vscode"], BY_ID["vscode"].places[0], "/x")
    planned = put_on(text, code)
    assert [step.action for step in planned.steps] == [CANNOT, WRAP]
    assert f"only if {program} is the command: remove dev.debug" in planned.steps[0].detail
    assert json.loads(planned.text)["servers"]["s"] == entry
    cursor = json.dumps({"mcpServers": {"s": entry}})
    assert [step.action for step in put_on(cursor).steps] == [WRAP]
    assert take_off(planned.text, code).text == text
