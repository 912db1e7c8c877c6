"""Variables in configurations, and values that are withheld from them."""

import json

from mcpspy.clients.servers import expanded, has_variable, unexpanded, unresolved
from mcpspy.clients.table import BY_ID
from mcpspy.clients.withheld import withheld
from tests.clients.configurations import machine
from tests.each import each
from tests.limits import proportionate


@each(
    "client, text, value",
    [
        ("cursor", "a ${env:B} ${B}", "a b ${B}"),
        ("continue", "a ${env:B} ${B}", "a b b"),
        ("claude-code", "a ${env:B} ${B}", "a ${env:B} b"),
        ("claude-desktop", "a ${env:B} ${B} ~", "a ${env:B} ${B} ~"),
        ("claude-code", "${C:-d}${userHome}", "d${userHome}"),
        ("cursor", "${userHome}${/}x", "HOME/x"),
        ("cursor", "${workspaceFolder}", "CWD"),
        ("cursor", "${input:x}", "${input:x}"),
        ("cursor", "${env:C}", "${env:C}"),
        ("cursor", "$B {B} ~/x ~", "$B {B} ~/x ~"),
        ("cursor", "~/x", "~/x"),
        ("vscode", "~/x", "HOME/x"),
        ("vscode", "~", "HOME"),
        ("vscode", "~x", "~x"),
        ("gemini-cli", "$B/${B} $C $1 $ ~", "b/b $C $1 $ ~"),
        ("gemini-cli", "${B}$B ${B $B", "bb ${B b"),
        ("cursor", "${env:B} ${B", "b ${B"),
    ],
)
def test_variables_that_the_client_knows_are_replaced(tmp_path, client, text, value):
    here = machine(tmp_path, environ={"B": "b"})
    assert expanded(text, BY_ID[client], here) == value.replace("HOME", here.home).replace("CWD", here.cwd)


def test_opencode_has_variables_in_braces(tmp_path):
    here = machine(tmp_path, environ={"B": "b"})
    assert expanded("{env:B} ${B} {B}", BY_ID["opencode"], here) == "b ${B} {B}"
    assert unresolved("{env:B} {env:C} {file:x}", BY_ID["opencode"], here) == ["env:C", "file:x"]


@each("client", ["cursor", "gemini-cli", "opencode"])
def test_braces_that_are_not_closed_take_no_time(tmp_path, client):
    """A-21: each was compared with the whole rest of the text."""
    text = ("{env:" if client == "opencode" else "${a") * 200_000
    with proportionate(5):
        assert not has_variable(text, BY_ID[client])
        assert expanded(text, BY_ID[client], machine(tmp_path)) == text
        assert has_variable("{env:x}${x}${env:x}" + text, BY_ID[client])


@each(
    "entry, shown",
    [
        ({"env": {"DB": "pass", "N": 1, "E": ""}}, {"env": {"DB": "«withheld»", "N": 1, "E": ""}}),
        ({"headers": {"X": ["a", {"b": "c"}]}}, {"headers": {"X": ["«withheld»", {"b": "«withheld»"}]}}),
        ({"api_key": "s"}, {"api_key": "«withheld»"}),
        ({"args": ["--token", "s", "--x", "y"]}, {"args": ["--token", "«withheld»", "--x", "y"]}),
        ({"args": ["A_TOKEN=s", ["sk-abc123"]]}, {"args": ["A_TOKEN=«withheld»", ["«withheld»"]]}),
        ({"url": "https://u:p@h/?api_key=s&q=1"}, {"url": "https://u:«withheld»@h/?api_key=«withheld»&q=1"}),
        ({"command": "npx", "args": ["-y", "--name"]}, {"command": "npx", "args": ["-y", "--name"]}),
    ],
)
def test_secrets_and_nothing_else_are_withheld(entry, shown):
    text = json.dumps({"servers": {"s": entry}})
    assert json.loads(withheld(text, "json")) == {"servers": {"s": shown}}


def test_all_else_is_as_it_was_written():
    text = '{ // c\r\n\t"env" : { "A":"s" , }, /* d */ "x":\'\'}'.replace("''", '"\\u0041"')
    assert withheld(text, "json") == text.replace('"s"', '"«withheld»"')
    assert withheld("env: {A: s}\nb: x", "yaml") == 'env: {A: "«withheld»"}\nb: x'
    assert withheld("env.A = 's'\nb = 'x'", "toml") == "env.A = \"«withheld»\"\nb = 'x'"


def test_an_alias_is_withheld_once():
    assert withheld("env:\n  A: &a s\n  B: *a\n", "yaml").count("«withheld»") == 1


@each(
    "client, text, left",
    [
        ("cursor", "${env:B} ${userHome} ${input:x} ${B} {env:B}", ["${B}", "{env:B}"]),
        ("claude-code", "${B} ${B:-c} ${env:B}", ["${env:B}"]),
        ("claude-desktop", "Bearer ${B}${{ secrets.B }}", ["${B}", "${{ secrets.B }}"]),
        ("gemini-cli", "$B ${B} ${env:B}", ["${env:B}"]),
        ("opencode", "{env:B} ${B}", ["${B}"]),
        ("continue", "${B} ${env:B} ${{ secrets.B }}", []),
        ("cursor", "{a} $5 ${1} $ ${ }", []),
        ("cursor", "$HOME/x", ["$HOME"]),
        ("cursor", "$API_KEY", ["$API_KEY"]),
        ("claude-desktop", "%APPDATA%\\x", ["%APPDATA%"]),
        ("gemini-cli", "$HOME/x", []),
        ("cursor", "a$HOME $x cost$ 50%20%20 US$100 $HOMEx", []),
    ],
)
def test_variables_in_the_form_of_another_client_are_known(client, text, left):
    assert unexpanded(text, BY_ID[client]) == left
