"""Requests that stand by themselves: what the examples of the rules leave open."""

from tests.rules.examples import told


def test_a_fault_elsewhere_in_a_request_without_meta_is_still_told():
    text = '> 2 tools/call {"name":5,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}'
    rules = told(text, "lifecycle/meta", "schema/invalid")
    assert "#1 lifecycle/meta-missing" in rules


PROBE = """
    > 1 server/discover {META}
    < notifications/message {"level":"info","data":"starting"}
    < notifications/tools/list_changed
    < 1 %s
"""


def test_what_a_server_says_before_it_answers_the_probe_is_of_no_era():
    refused = PROBE % '! {"code":-32601,"message":"Method not found"}'
    assert told(refused, "lifecycle/", "subscription/") == []
    agreed = '= {"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"logging":{}},"ttlMs":0,\
"cacheScope":"public"}'
    late = '< notifications/message {"level":"info","data":"ready"}'
    assert told(f"{PROBE % agreed}{late}", "lifecycle/") == ["#5 lifecycle/logging-without-level"]
