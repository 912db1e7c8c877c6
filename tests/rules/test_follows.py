"""One fault gives one finding: the most specific rule reports it, and findings that follow from it are left out."""

import pytest

from mcpspy.rules import RULES
from mcpspy.rules.follows import FOLLOWS, FOLLOWS_FROM_LOCK, LOST_ANSWER, UNFIT, specific
from mcpspy.rules.rule import Fault
from tests.rules.examples import findings, told

LISTED = "= 2025-06-18\n> 2 tools/list\n"
LATER = "\n@65 > 20 ping\n@66 < 20 = {}"


def test_the_tables_name_rules():
    assert {*FOLLOWS, *UNFIT, *LOST_ANSWER, *(name for names in FOLLOWS.values() for name in names)} <= {*RULES}
    assert {*FOLLOWS_FROM_LOCK, *FOLLOWS_FROM_LOCK.values()} <= {*RULES}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (LISTED + '< 2 = {"tools":[{"name":"f"}]}', "tools/schema-not-object"),
        (LISTED + '< 2 = {"tools":[{"name":"f","inputSchema":{"type":"string"}}]}', "tools/schema-not-object"),
        (LISTED + '< | {"jsonrpc":"2.0","id":2,"result":{"tools":[]},"error":{}}', "jsonrpc/result-and-error"),
        ('= 2025-11-25\n> notifications/cancelled {"requestId":[1]}', "schema/invalid"),
    ],
)
def test_of_two_rules_about_one_part_the_more_specific_stands(text, rule):
    """R-07."""
    assert [it.rule for it in findings(text) if it.severity != "info"] == [rule]


@pytest.mark.parametrize("version", ["", '"jsonrpc":"1.0",', '"jsonrpc":2.0,'])
@pytest.mark.parametrize(
    ("rest", "others"),
    [
        ('"id":6,"method":"ping"', []),
        ('"method":"notifications/roots/list_changed"', []),
        (
            '"id":6,"method":"tools/call","params":{"arguments":{}}',
            [("/params", 'CallToolRequest: expected the member "name", got {"arguments": \u2026}')],
        ),
    ],
)
def test_a_missing_version_is_one_finding_and_hides_no_other_fault(version, rest, others):
    """R-07."""
    missing, *more = sorted(findings(f"= 2025-11-25\n> | {{{version}{rest}}}"), key=lambda it: it.rule)
    assert missing.rule == "jsonrpc/version-missing"
    assert [(it.pointer, it.message) for it in more if it.rule == "schema/invalid"] == others


@pytest.mark.parametrize("body", ["{}", "null", "OK", '{"ok":true}', '{"jsonrpc":"2.0","id":1}'])
def test_a_notification_that_is_answered_with_something_is_one_finding(body):
    """R-07: the content of the body does not matter, because there should be no body."""
    text = f"= 2025-11-25 http\n>> notifications/roots/list_changed\n<< 200 [content-type: application/json] | {body}"
    assert [it.rule for it in findings(text)] == ["http/notification-status"]


def test_an_object_that_is_no_message_is_one_finding():
    """R-07: a log line in JSON, as loggers write it to stdout."""
    text = '= 2025-11-25\n< | {"level":30,"time":1732000000000,"msg":"listening"}'
    assert [it.rule for it in findings(text)] == ["jsonrpc/neither-result-nor-error"]


def test_what_is_missing_beside_the_version_is_told_by_what_was_found():
    """R-07: the finding quotes the original message."""
    (_, told_of) = findings('= 2025-11-25\n> | {"id":6,"method":"tools/call"}')
    assert told_of.message.endswith('expected the member "params", got {"id": \u2026, "method": \u2026}')


def test_two_faults_of_one_message_are_two_findings():
    """R-07: the two findings are about different parts."""
    tools = '{"tools":[{"name":"f"}],"nextCursor":5}'
    found = {it.rule for it in findings(f"{LISTED}< 2 = {tools}")}
    assert "tools/schema-not-object" in found


class CountedPointer(str):
    """A pointer that counts how often it is formatted, hashed, compared or split."""

    __slots__ = ()
    looked_at = 0

    def _count(self):
        type(self).looked_at += 1

    def __format__(self, spec):
        self._count()
        return super().__format__(spec)

    def __hash__(self):
        self._count()
        return super().__hash__()

    def __eq__(self, other):
        self._count()
        return super().__eq__(other)

    def rpartition(self, separator):
        self._count()
        return super().rpartition(separator)


@pytest.mark.parametrize(
    "rules", [("schema/invalid", "tools/schema-invalid"), ("tools/schema-invalid", "schema/format")]
)
def test_how_often_a_pointer_is_looked_at_does_not_grow_with_the_number_of_faults(rules):
    """R-07: one response may have thousands of invalid entries."""
    CountedPointer.looked_at = 0
    some = 300
    pointers = [CountedPointer(f"/result/tools/{n}/inputSchema") for n in range(some)]
    specific([(RULES[name], Fault("bad", pointer)) for pointer in pointers for name in rules])
    assert CountedPointer.looked_at <= 20 * some


@pytest.mark.parametrize(
    ("general", "better", "left"),
    [
        ("", "/result/tools/0", 1),
        ("/result/tools/0", "", 1),
        ("/result/tools/0", "/result/tools/0", 1),
        ("/result/tools/1", "/result/tools/0", 2),
        ("/result/tools/10", "/result/tools/1", 2),
        ("/result/tools/1", "/result/tools/10", 2),
    ],
)
def test_a_fault_follows_where_one_pointer_lies_within_the_other(general, better, left):
    """R-07."""
    faults = [(RULES["schema/invalid"], Fault("a", general)), (RULES["tools/schema-invalid"], Fault("b", better))]
    assert len(specific(faults)) == left


@pytest.mark.parametrize("number", ["null", "true", "1.5"])
def test_an_answer_that_repeats_the_id_of_its_request_is_not_to_blame_for_it(number):
    """R-04, R-07."""
    asked = f'= 2025-06-18\n> | {{"jsonrpc":"2.0","id":{number},"method":"ping"}}'
    found = findings(f'{asked}\n< | {{"jsonrpc":"2.0","id":{number},"result":{{}}}}')
    assert [(it.frame, it.blame) for it in found] == [(4, "client")]


@pytest.mark.parametrize(
    "asked",
    [
        '{"jsonrpc":"2.0","id":null,"method":"ping"}',
        '{"jsonrpc":"2.0","id":true,"method":"ping"}',
        '{"jsonrpc":"2.0","id":2.5,"method":"ping"}',
        '{"id":2,"method":"ping"}',
        '{"jsonrpc":"2.0","id":2,"method":"tools/list","params":[1]}',
        '{"jsonrpc":"2.0","id":2,"method":"ping","extra":1}',
        '{"jsonrpc":"2.0","id":2,"id":3,"method":"ping"}',
        r'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":"\ud800"}}',
        '[{"jsonrpc":"2.0","id":2,"method":"ping"}]',
    ],
)
def test_a_malformed_request_is_not_unanswered_by_the_other_side(asked):
    """R-04."""
    found = findings(f"= 2025-06-18\n> | {asked}{LATER}")
    assert {it.blame for it in found} == {"client"}


def test_a_request_that_lacks_its_meta_is_not_unanswered_by_the_other_side():
    """R-04."""
    text = '> 1 tools/list {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}'
    assert told(text) == ["#1 lifecycle/meta-missing"]


def test_of_two_requests_with_one_id_the_one_without_an_answer_is_the_clients_fault():
    """R-04."""
    assert told(f"= 2025-06-18\n> 2 ping\n> 2 ping\n< 2 = {{}}{LATER}") == ["#5 pairing/id-in-flight"]


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ("< 9 = {}", "pairing/orphan-response"),
        ('< | {"jsonrpc":"2.0","id":"2","result":{}}', "pairing/id-loose-match"),
        ('< | {\n< | "jsonrpc":"2.0","id":2,"result":{}\n< | }', "framing/multiline-json"),
    ],
)
def test_a_request_whose_answer_nobody_can_take_is_not_unanswered_as_well(answer, rule):
    """R-07."""
    assert [it.rule for it in findings(f"= 2025-06-18\n> 2 ping\n{answer}{LATER}")] == [rule]


def test_an_answer_under_another_id_leaves_two_requests_unanswered_where_nothing_tells_which_it_was_for():
    found = told("= 2025-06-18\n> 2 ping\n> 3 ping\n< 9 = {}")
    assert found == ["#4 pairing/unanswered", "#5 pairing/unanswered", "#6 pairing/orphan-response"]


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ("<< 200 9 = {}", "pairing/orphan-response"),
        ("<< 200 events\n<- 9 = {}", "pairing/orphan-response"),
        ("<< 200 | {", "http/not-json"),
        ("<< 200 events\n<- | {", "http/not-json"),
        ("<< 202", "http/answer-type"),
        (
            "<< 200 [content-encoding: gzip] | not gzip\n<x the compressed body is damaged: Error -3",
            "framing/undecodable",
        ),
    ],
)
def test_over_http_the_same(answer, rule):
    """R-07."""
    later = "\n@65 >> 20 ping\n@66 << 200 20 = {}"
    assert [it.rule for it in findings(f"= 2025-06-18 http\n>> 2 ping\n{answer}{later}")] == [rule]
