import pytest

from mcpspy.agent.clean import Scrubber
from mcpspy.agent.problems import find_problems
from mcpspy.agent.rulebook import explain_rule, told_findings
from mcpspy.errors import UsageError
from mcpspy.rules import FORMER, RULES, Finding


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_explained(rule):
    answer = explain_rule(rule=rule)
    assert answer["rule"] == rule
    assert answer["spec"].startswith("https://")
    assert answer["fix"]


def test_a_former_id_is_taken_and_an_unknown_one_has_a_nearest():
    for former, rule in FORMER.items():
        assert explain_rule(rule=former)["rule"] == rule
    with pytest.raises(UsageError, match="did you mean tools/arguments"):
        explain_rule(rule="tools/argument")


def test_a_fix_is_told_once(folder):
    name = folder.add()
    capture = folder.captures.open(folder.captures.find(name))
    finding = Finding("tools/arguments", "error", "client", 7, 0, (5,), "/params", "wrong", None, "https://spec")
    told = told_findings(Scrubber(), capture, "abc123", [finding, finding], 4000)
    assert ["fix" in it for it in told] == [True, False]
    assert (told[0]["at"], told[0]["related"]) == ("abc123#7", ["abc123#5"])


def test_a_finding_may_quote_a_secret(folder):
    """The call succeeds and is not shown otherwise, but its frame is still read, to know its secrets."""
    listed = '< 2 = {"tools":[{"name":"login","inputSchema":{"properties":{"password":{"type":"integer"}}}}]}'
    call = '> 3 tools/call {"name":"login","arguments":{"password":"hunter2xyz"}}\n< 3 = {"content":[]}'
    folder.add(f"= 2025-11-25\n> 2 tools/list\n{listed}\n{call}")
    answer = find_problems(folder.captures)
    assert "is not of type" in str(answer["findings"])
    assert "hunter2xyz" not in str(answer)


def test_a_finding_about_text_shows_the_text(folder):
    folder.add("= 2025-11-25\n< | Listening on port 3000")
    assert find_problems(folder.captures)["findings"][0]["text"] == "Listening on port 3000"
