import json

import pytest

from mcpspy.agent.resources import CAPTURE, PROMPTS, RULE, TEMPLATES, listed, prompt_text, read
from mcpspy.errors import UsageError
from mcpspy.rules import RULES


def test_captures_come_first_and_then_the_rules_in_pages(folder):
    name = folder.add()
    found, cursor = [], None
    while True:
        page, cursor = listed(folder.captures, cursor)
        found += [it.uri for it in page]
        if cursor is None:
            break
    assert found[0] == f"{CAPTURE}{name}"
    assert len(found) == 1 + len(RULES) == len(set(found))
    with pytest.raises(UsageError, match="does not belong"):
        listed(folder.captures, "x")


def test_resources_are_read(folder):
    name = folder.add()
    text, mime = read(folder.captures, f"{CAPTURE}{name}")
    assert json.loads(text)["session"] == name
    assert mime == "application/json"
    text, mime = read(folder.captures, f"{RULE}tools/arguments")
    assert text.startswith("tools/arguments: error")
    assert mime == "text/plain"
    assert [it.uri for it in TEMPLATES] == ["mcpspy://capture/{id}", "mcpspy://rule/{+id}"]


@pytest.mark.parametrize("uri", ["", "file:///etc/passwd", CAPTURE, f"{CAPTURE}zzzzzz", f"{RULE}x", "mcpspy://rules"])
def test_another_resource_is_refused(folder, uri):
    folder.add()
    with pytest.raises(UsageError):
        read(folder.captures, uri)


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.name)
def test_prompts_take_a_session_or_none(prompt):
    assert "(session weather)" in prompt_text(prompt.name, {"session": "weather"})[1]
    assert "{" not in prompt_text(prompt.name, {})[1]


def test_another_prompt_or_argument_is_refused():
    with pytest.raises(UsageError, match="there is no prompt 'x'; there are why_did_my_last_call_fail"):
        prompt_text("x", {})
    with pytest.raises(UsageError, match="has no argument 'x'; it takes session"):
        prompt_text("review_session", {"x": "1"})
