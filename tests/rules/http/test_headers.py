"""Headers that repeat members of a request: cases that the rule examples do not cover."""

import pytest

from mcpspy.rules.http.headers import decoded
from tests.rules.examples import findings, told

LISTED = """
    >> 1 tools/list {META}
    << 200 1 = {"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[{"name":"q","inputSchema":\
{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"at":{"type":"object",\
"properties":{"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B"}}}}}}]}
"""


def calls(arguments, headers=""):
    return f'{LISTED}\n>> {headers} 2 tools/call {{META "name":"q","arguments":{arguments}}}'


def of(text, *rules):
    return [(it.severity, it.pointer, it.message) for it in findings(text) if it.rule in rules]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("us-west1", "us-west1"),
        ("=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界"),
        ("=?base64?IHBhZGRlZCA=?=", " padded "),
        ("=?base64?bGluZTEKbGluZTI=?=", "line1\nline2"),
        ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?="),
        ("=?base64??=", ""),
        ("=?BASE64?SGk=?=", "=?BASE64?SGk=?="),
        ("=?base64?SGk?=", None),
        ("=?base64?/w==?=", None),
        ("=?base64?=", "=?base64?="),
    ],
)
def test_a_value_that_no_header_can_have_goes_in_base64(value, text):
    """H-13; the encoding examples of 2026-07-28."""
    assert decoded(value) == text


@pytest.mark.parametrize(
    ("line", "told_of"),
    [
        (">> [mcp-method: Tools/list] 1 tools/list {META}",
         'Mcp-Method is "Tools/list", but the body has "tools/list"'),
        (">> [mcp-protocol-version: 2025-11-25] 1 tools/list {META}",
         'MCP-Protocol-Version is "2025-11-25", but the body has "2026-07-28"'),
        ('>> [mcp-name: =?base64?SGk?=] 1 prompts/get {META "name":"Hi"}', "Mcp-Name is not valid base64"),
        ('>> [mcp-name: écho] 1 prompts/get {META "name":"écho"}',
         "Mcp-Name has characters that must be encoded as base64"),
        ('>> [mcp-name: a:b] 1 resources/read {META "uri":"a:c"}', 'Mcp-Name is "a:b", but the body has "a:c"'),
        (">> [mcp-name: other] 1 tools/list {META}", None),
        ('>> [mcp-name: «redacted:01234567»] 1 prompts/get {META "name":"a"}', None),
    ],
)  # fmt: skip
def test_a_header_is_compared_with_what_it_repeats(line, told_of):
    assert [message for *_, message in of(line, "http/header-mismatch")] == ([told_of] if told_of else [])


def test_every_header_that_is_missing_is_named():
    text = '>> [mcp-protocol-version:] [mcp-method:] [mcp-name:] 1 resources/read {META "uri":"a:b"}'
    assert of(text, "http/header-missing") == [
        ("error", "", "the request has no MCP-Protocol-Version and no Mcp-Method and no Mcp-Name")
    ]


def test_a_notification_needs_no_headers():
    """2026-07-28: "header requirements for notification POSTs are not defined by this revision"."""
    text = '>> [mcp-protocol-version: 2026-07-28] [mcp-method: x] notifications/cancelled {"requestId":1}\n<< 202'
    assert told(text, "http/") == []


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ('{"region":"eu","at":{"n":42,"b":true}}', "[mcp-param-region: eu] [mcp-param-n: 42.0] [mcp-param-b: true]"),
        ('{"region":null,"at":{"n":-7}}', "[mcp-param-n: -7]"),
        ("{}", "[mcp-param-other: 5]"),
        ('{"region":["no","string"]}', ""),
    ],
)
def test_arguments_stand_in_headers_as_the_listing_has_it(arguments, headers):
    assert told(calls(arguments, headers), "http/") == []


@pytest.mark.parametrize(
    ("arguments", "headers", "told_of"),
    [
        ('{"region":"eu"}', "[mcp-param-region: us]", 'Mcp-Param-Region is "us", but the body has "eu"'),
        ('{"at":{"n":42}}', "[mcp-param-n: 43]", 'Mcp-Param-N is "43", but the body has 42'),
        ('{"at":{"b":true}}', "[mcp-param-b: True]", 'Mcp-Param-B is "True", but the body has true'),
        ('{"at":{"n":1}}', "[mcp-param-n: one]", 'Mcp-Param-N is "one", but the body has 1'),
        ('{"region":null}', "[mcp-param-region: eu]", "Mcp-Param-Region is set, but the body does not have its value"),
    ],
)
def test_an_argument_is_compared_with_its_header(arguments, headers, told_of):
    ((severity, pointer, message),) = of(calls(arguments, headers), "http/header-mismatch")
    assert (severity, message[: len(told_of)]) == ("error", told_of)
    assert pointer.startswith("/params/arguments/")


def test_an_argument_without_its_header_is_a_warning_for_it_may_be_a_client_that_listed_nothing():
    assert of(calls('{"at":{"n":0}}'), "http/header-missing") == [
        ("warning", "/params/arguments/at/n", "the request has no Mcp-Param-N, which the tool's inputSchema asks for")
    ]


@pytest.mark.parametrize(
    "between",
    [
        "<< 200 events\n<- notifications/tools/list_changed",
        "",
    ],
)
def test_nothing_is_told_of_a_tool_whose_listing_is_not_known(between):
    listed = LISTED if between else LISTED.replace('"resultType"', '"nextCursor":"2","resultType"')
    text = f"{listed}\n{'>> 9 prompts/list {META}' if between else ''}\n{between}\n" + calls('{"region":"eu"}').replace(
        LISTED, ""
    )
    assert [it for it in told(text, "http/") if "header" in it] == []


def test_a_tool_that_a_client_must_leave_out_has_no_headers():
    text = calls('{"region":"eu"}').replace('"x-mcp-header":"N"', '"x-mcp-header":"region"')
    assert told(text, "http/") == []


def test_a_server_that_answers_what_it_had_to_refuse_is_to_blame():
    text = '>> [mcp-method: tools/call] 1 tools/list {META}\n<< 200 1 = {"resultType":"complete","tools":[]}'
    (found,) = (it for it in findings(text) if it.rule == "http/mismatch-accepted")
    assert (found.blame, found.related) == ("server", (3,)) or found.related
    assert found.message == (
        'the request is answered, although Mcp-Method is "tools/call", but the body has "tools/list"'
    )
