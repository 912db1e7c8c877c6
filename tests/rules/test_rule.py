"""Every rule finds something in the example that fails, and nothing in the one that passes."""

import re
from functools import cache

import pytest

from mcpspy.conversation.context import other
from mcpspy.conversation.facts import Operations
from mcpspy.json_values import nearest, resolve
from mcpspy.report.checked import check
from mcpspy.rules import FORMER, RULES, SEVERITIES, Finding, current, worst
from mcpspy.rules.rule import rule
from mcpspy.spec.client_limits import CLIENTS
from mcpspy.spec.revisions import Revision
from tests.each import each
from tests.findings import CAPTURES
from tests.rules.examples import findings

EACH = each("rule", RULES.values(), ids=lambda rule: rule.id)
JUDGED = each("rule", [it for it in RULES.values() if not it.id.startswith("expect/")], ids=lambda rule: rule.id)
"""The rules that the judge runs; `tests/contract/test_watch.py` tests the examples of the others, `expect`."""


@cache
def examined(name):
    """Return the findings in the two examples of a rule, with the clients or `Operations` that its group needs."""
    rule = RULES[name]
    options = CLIENTS if name.startswith("compat/") else (), Operations() if name.startswith("ops/") else None
    return findings(rule.fails, *options), findings(rule.passes, *options)


@JUDGED
def test_a_rule_finds_what_is_wrong_in_its_example(rule):
    found = [finding for finding in examined(rule.id)[0] if finding.rule == rule.id]
    assert found
    for finding in found:
        assert finding.message
        assert not finding.message.endswith(".")
        assert finding.blame in ("client", "server")
        assert finding.spec.startswith("https://")


@EACH
def test_an_example_that_passes_has_no_error_but_by_design(rule):
    """A passing example has no finding of its rule and no error, except those that the notation causes."""
    allowed = {"pairing/unanswered", "pairing/orphan-response", "jsonrpc/not-an-object"}
    found = examined(rule.id)[1]
    assert rule.id not in {finding.rule for finding in found}
    assert {finding.rule for finding in found if finding.severity == "error"} <= allowed


@EACH
def test_a_rule_explains_itself(rule):
    group, _, name = rule.id.partition("/")
    assert group
    assert name
    assert rule.severity in SEVERITIES
    assert rule.explanation.endswith(".")
    assert not rule.explanation[0].islower()
    for revision in Revision:
        assert rule.url(revision).startswith("https://")


SIDES = {"client": {"client"}, "server": {"server"}}
"""The sides that a rule can blame, by its declared `blame`; both sides for any other value."""
LONGEST = 160  # characters of a sentence of advice
FORBIDDEN = re.compile(
    r"\b(packets?|items?|data|info|managers?|handlers?|processors?|helpers?|utils?|said|told|asks?|asked|of which)\b"
)
"""Words that the advice of a rule must not use; names in backquotes may contain them."""


@EACH
def test_a_rule_tells_how_to_fix_what_it_finds(rule):
    """In short sentences, for each side that it can blame and, if the rule has such advice, for the other side."""
    for text in (rule.fix, *filter(None, [rule.meanwhile])):
        sentences = re.split(r"(?<=\.)\s", text)
        assert len(sentences) <= 2
        for sentence in sentences:
            assert sentence[0].isupper()
            assert sentence.endswith(".")
            assert len(sentence) <= LONGEST
        assert not FORBIDDEN.search(re.sub("`[^`]*`", "", text))
        assert text.count("`") % 2 == 0
    for blamed in SIDES.get(rule.blame, {"client", "server"}):
        (title, fix), *others = rule.advice(blamed)
        assert (title, fix) == (f"fix ({blamed})", rule.fix)
        assert others == ([(f"meanwhile ({other(blamed)})", rule.meanwhile)] if rule.meanwhile else [])


@EACH
def test_a_rule_blames_no_side_but_the_one_that_it_declares(rule):
    blamed = {finding.blame for found in examined(rule.id) for finding in found if finding.rule == rule.id}
    assert blamed <= SIDES.get(rule.blame, blamed)


@EACH
def test_the_id_of_a_rule_tells_its_file(rule):
    group = rule.id.partition("/")[0]
    assert f"{rule.check.__module__}.".startswith(f"mcpspy.rules.{group}.")


@pytest.mark.parametrize(
    ("rule", "revision", "page"),
    [
        ("framing/not-json", Revision.R2026_07_28, "specification/2026-07-28/basic/transports/stdio"),
        ("jsonrpc/id-null", Revision.R2024_11_05, "specification/2024-11-05/basic/messages#requests"),
        ("jsonrpc/id-null", Revision.R2025_03_26, "specification/2025-03-26/basic#requests"),
        ("schema/invalid", Revision.R2025_03_26, "blob/main/schema/2025-03-26/schema.ts"),
        ("tools/schema-invalid", Revision.R2025_06_18, "specification/2025-06-18/server/tools#tool"),
        ("tools/schema-invalid", Revision.R2025_11_25, "specification/2025-11-25/basic#json-schema-usage"),
    ],
)
def test_a_link_leads_to_where_its_revision_says_so(rule, revision, page):
    assert RULES[rule].url(revision).endswith(page)


def precise(value, text):
    """Replace `nearest`, which cuts a pointer at the first missing part: only the last part may be missing."""
    found = nearest(value, text)
    assert found in (text, text.rpartition("/")[0])
    resolve(value, found)
    return found


@EACH
def test_every_pointer_of_an_example_resolves_in_its_message(rule, monkeypatch):
    monkeypatch.setattr("mcpspy.rules.rule.nearest", precise)
    for text in (rule.fails, rule.passes):
        assert findings(text) is not None


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_a_golden_capture_blames_who_its_rules_declare_and_every_pointer_resolves(path, monkeypatch):
    """Also under the newest revision."""
    monkeypatch.setattr("mcpspy.rules.rule.nearest", precise)
    for revision in (None, list(Revision)[-1]):
        for finding in check(str(path), revision).findings:
            assert finding.blame in SIDES.get(RULES[finding.rule].blame, {finding.blame}), finding


MARKED = """
    > 1 tools/list {META}
    < 1 = {"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[{"name":"q","inputSchema":\
{"type":"object","properties":{"a~/b":{"type":"string","x-mcp-header":"My Region"}}}}]}
"""


@pytest.mark.parametrize(
    ("text", "rule", "pointer"),
    [
        ('> | {"jsonrpc":"2.0","id":1,"method":"ping","a~/b":1}', "jsonrpc/extra-member", "/a~0~1b"),
        (
            '> 1 ping {"_meta":{"io.modelcontextprotocol/x":12345678901234567890}}',
            "jsonrpc/number-range",
            "/params/_meta/io.modelcontextprotocol~1x",
        ),
        ('> 1 ping {"a~/b":{"c":[0,{"d":12345678901234567890}]}}', "jsonrpc/number-range", "/params/a~0~1b/c/1/d"),
        (r'> | {"jsonrpc":"2.0","id":1,"method":"ping","params":{"a~/b":"\ud800"}}', "jsonrpc/lone-surrogate",
         "/params/a~0~1b"),
        (r'> | {"jsonrpc":"2.0","id":1,"method":"ping","params":{"a~/\ud800":1}}', "jsonrpc/lone-surrogate",
         "/params/a~0~1\ud800"),
        (r'> | {"jsonrpc":"2.0","id":1,"method":"ping","params":{"a~/b":["\u202e"]}}', "security/hidden-text",
         "/params/a~0~1b/0"),
        (MARKED, "tools/header-annotation",
         "/result/tools/0/inputSchema/properties/a~0~1b/x-mcp-header"),
    ],
)  # fmt: skip
def test_names_are_escaped_in_a_pointer(text, rule, pointer):
    assert [finding.pointer for finding in findings(text) if finding.rule == rule] == [pointer]


def test_a_pointer_of_a_long_name_leads_to_what_holds_it():
    text = f'> 1 ping {{"a":{{"{"x" * 5000}":12345678901234567890}}}}'
    assert [finding.pointer for finding in findings(text) if finding.rule == "jsonrpc/number-range"] == ["/params/a"]


def test_a_name_that_utf_8_cannot_hold_is_not_in_a_pointer():
    """`schema/invalid` checks a copy of the message that both validators accept."""
    name = r"a\ud800"
    text = (
        f'= 2025-06-18\n< | {{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{{"message":"x",'
        f'"requestedSchema":{{"type":"object","properties":{{"{name}":{{"type":5}}}}}}}}}}'
    )
    found = [finding.pointer for finding in findings(text) if finding.rule == "schema/invalid"]
    assert found == ["/params/requestedSchema/properties"]


def test_a_renamed_rule_is_known_by_its_former_id():
    """The decorator adds a test rule, and the test removes it again."""
    enter = rule(
        "new/name", "info", "It is new.", fix="Fix it.", spec="schema", fails="", passes="", former=("old/name",)
    )

    def check(message, history):
        yield from ()

    try:
        assert enter(check) is check
        assert (current("old/name"), current("new/name"), current("other/name")) == (
            "new/name",
            "new/name",
            "other/name",
        )
        assert RULES["new/name"].former == ("old/name",)
    finally:
        del RULES["new/name"], FORMER["old/name"]


def test_no_former_id_is_one_that_a_rule_has():
    assert not FORMER.keys() & RULES.keys()


def test_an_error_is_worse_than_a_warning_and_that_worse_than_an_info():
    found = {it: Finding("a/b", it, "server", 1, 0, (), "", "", None, "") for it in SEVERITIES}
    assert worst(found[it] for it in ("info", "error", "warning")) == "error"
    assert worst(found[it] for it in ("info", "warning", "info")) == "warning"
    assert worst([]) is None
