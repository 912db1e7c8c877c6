"""Placeholders: what stands in the place of a secret and is none; anything else stays a secret."""

import pytest

from mcpspy.secrets.redactor import Redactor
from mcpspy.secrets.tokens import placeholder, unfilled
from tests.secrets.examples import KINDS, token

VARIABLES = (
    "${MY_TOKEN} ${my_token} ${env:MY_TOKEN} ${input:my-token} ${MY_TOKEN:-} ${{secrets.TOKEN}} {{MY_TOKEN}} {{token}}"
    " $MY_TOKEN $VAR $TOKEN_2 $env:TOKEN %MY_TOKEN% %TOKEN%"
    " %7B%7BTOKEN%7D%7D %24%7BMY_TOKEN%7D \"${MY_TOKEN}\" '$TOKEN'"
)
EXAMPLES = ("YOUR_API_KEY", "your-token-here", "your api key", "<token>", "<YOUR_API_KEY>", "INSERT_TOKEN_HERE",
            "<YourApiKey>", "<your name>", "enter your password...", "your_github_pat")  # fmt: skip
NOTHING = ("undefined", "null", "None", "[object Object]", " null ")
SECRETS = ("hunter2", "$hunter2", "$token", "${Zk39dKw02Lq8Xm4P}", "${A}x", "${A:-hunter2}", "x${A}", "%41%",
           '"hunter2"', '"', "%7B%7BZk39dKw02Lq8%7D%7D",
           "<hunter>", "your-hunter2", "", "nullhunter",
           "$1Password", "${A} ${B}", "$" + "A" * 200, "my-secret", "Enter_The_Dragon", "enter the secret garden",
           "replace correct horse battery staple", "your-mom-goes-to-college", "<keyboard cat>")  # fmt: skip


@pytest.mark.parametrize("value", VARIABLES.split())
def test_a_variable_is_no_secret(value):
    assert placeholder(value) == "variable"


@pytest.mark.parametrize("value", EXAMPLES)
def test_an_example_is_no_secret(value):
    assert placeholder(value) == "example"


@pytest.mark.parametrize("value", NOTHING)
def test_the_text_of_no_value_is_no_secret(value):
    assert placeholder(value) == "no value"


@pytest.mark.parametrize("value", SECRETS)
def test_anything_else_may_be_a_secret(value):
    assert placeholder(value) is None


def test_a_token_in_the_form_of_a_variable_is_a_secret():
    assert [kind.name for kind in KINDS if placeholder("{{" + token(kind, kind.literals[0]) + "}}")] == []


def test_the_placeholders_of_a_command_line_are_found_and_kept():
    words = ["server", "--api-key", "${KEY}", "--url=${URL}", "TOKEN=undefined", "--mode", "none", "--token", "null"]
    assert [*unfilled(words)] == [
        ("--api-key", "${KEY}"),
        ("--url", "${URL}"),
        ("TOKEN", "undefined"),
        ("--token", "null"),
    ]
    assert Redactor().argv(words) == words
    assert Redactor().url("http://h/?api_key=$%7BKEY%7D&token=null") == "http://h/?api_key=$%7BKEY%7D&token=null"
    assert Redactor().body_elsewhere(b'{"token":"undefined"}') == b'{"token":"undefined"}'
