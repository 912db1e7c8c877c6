"""Requests without a handshake: cases that the rule examples do not cover."""

import pytest

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


DISCOVERED = """
    > 1 server/discover %s
    < 1 = {"resultType":"complete","supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{"tools":{}},\
"ttlMs":0,"cacheScope":"public"}
"""
LISTED = '< 2 = {"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public"}'
INFO = '"clientInfo":{"name":"c","version":"1"}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{DISCOVERED % '{META}'}> 2 tools/list\n{LISTED}", ["#3 lifecycle/meta-missing"]),
        (
            f"{DISCOVERED % ''}> 2 tools/list\n{LISTED}",
            ["#1 lifecycle/discover-missing-meta", "#3 lifecycle/meta-missing"],
        ),
        (
            f"> 1 tools/list {{META}}\n{LISTED.replace('2', '1', 1)}\n> 2 tools/list\n{LISTED}",
            ["#3 lifecycle/meta-missing"],
        ),
        (f"{DISCOVERED % '{META}'}< 7 roots/list", ["#3 lifecycle/wrong-direction"]),
        (f"{DISCOVERED % '{META}'}< 7 ping", ["#3 schema/method-not-in-revision"]),
        (
            f'{DISCOVERED % "{META}"}> 2 resources/list {{META}}\n< 2 ! {{"code":-32601,"message":"no"}}',
            ["#3 lifecycle/capability-missing"],
        ),
    ],
)
def test_a_session_without_a_handshake_is_judged_by_what_its_requests_have_stated(text, expected):
    """R-10."""
    assert told(text) == expected


@pytest.mark.parametrize("probe", ["{META}", ""])
def test_a_probe_that_is_refused_states_nothing(probe):
    """R-10: the handshake follows, and servers of the handshake era may send requests."""
    text = f"""
        > 1 server/discover {probe}
        < 1 ! {{"code":-32601,"message":"Method not found"}}
        > 2 initialize {{"protocolVersion":"2025-11-25","capabilities":{{"roots":{{}}}},{INFO}}}
        < 2 = {{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},{INFO.replace("client", "server")}}}
        > notifications/initialized
        > 3 tools/list
        < 3 = {{"tools":[]}}
        < 7 roots/list
        > 7 = {{"roots":[]}}
    """
    assert told(text) == ([] if probe else ["#1 lifecycle/discover-missing-meta"])
