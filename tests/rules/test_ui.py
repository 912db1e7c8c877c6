"""MCP Apps: correct sessions (X-01), and interfaces that are named incorrectly."""

import pytest

from tests.rules.examples import findings, told

UI = "io.modelcontextprotocol/ui"
HINTS = '"resultType":"complete","ttlMs":0,"cacheScope":"public"'


def listing(*metas):
    tools = ",".join(
        f'{{"name":"t{n}","inputSchema":{{"type":"object"}},"_meta":{meta}}}' for n, meta in enumerate(metas)
    )
    return f'> 1 tools/list {{META with {UI}}}\n< 1 = {{{HINTS},"tools":[{tools}]}}'


def content(mime, settings="{}"):
    capabilities = f'"io.modelcontextprotocol/clientCapabilities":{{"extensions":{{"{UI}":{settings}}}}}'
    kind = f'"mimeType":"{mime}",' if mime else ""
    return f"""
        > 1 resources/read {{"uri":"ui://a","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28",{capabilities}}}}}
        < 1 = {{{HINTS},"contents":[{{"uri":"ui://a",{kind}"text":""}}]}}
    """


BOTH = '{"ui":{"resourceUri":"ui://a","visibility":["app"]},"ui/resourceUri":"ui://a"}'
CLEAN = [
    listing('{"ui":{"resourceUri":"ui://a","visibility":["model"]}}', '{"ui":{"visibility":[]}}', "{}"),
    listing(BOTH),  # as the official SDK writes it for older clients
    content("text/html;profile=mcp-app"),
    content("Text/HTML ; Profile=mcp-app"),
    content('text/html; profile=\\"mcp-app\\"'),
    content("image/svg+xml; a=1;b=2", '{"mimeTypes":[7,"image/svg+xml;b=2;a=1"]}'),
    content("text/uri-list", '{"mimeTypes":["text/uri-list"]}'),
    content("text/html").replace(UI, "com.example/other"),  # for clients of another convention
    """
        > 1 initialize {"protocolVersion":"2025-11-25","capabilities":{"extensions":{"io.modelcontextprotocol/ui":\
{"mimeTypes":["text/html;profile=mcp-app"]}}},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},\
"serverInfo":{"name":"s","version":"1"}}
        > notifications/initialized
        > 2 tools/list
        < 2 = {"tools":[{"name":"map","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://map"}}}]}
        > 3 resources/read {"uri":"ui://map"}
        < 3 = {"contents":[{"uri":"ui://map","mimeType":"text/html;profile=mcp-app","text":"<!DOCTYPE html>"}]}
    """,
]


@pytest.mark.parametrize("text", CLEAN)
def test_x_01_a_session_with_interfaces_that_is_right_has_no_finding(text):
    assert told(text) == []


@pytest.mark.parametrize(
    ("text", "rule", "pointer"),
    [
        (listing('{"ui":{"resourceUri":"/a"}}'), "ui/resource-uri", "/result/tools/0/_meta/ui/resourceUri"),
        (listing("{}", '{"ui/resourceUri":"/a"}'), "ui/resource-uri", "/result/tools/1/_meta/ui~1resourceUri"),
        (listing(BOTH.replace('ui://a"}', 'ui://b"}')), "ui/resource-uri", "/result/tools/0/_meta/ui~1resourceUri"),
        (listing('{"ui/resourceUri":"ui://a"}'), "ui/flat-resource-uri", "/result/tools/0/_meta/ui~1resourceUri"),
        (listing('{"ui":{"visibility":["user"]}}'), "schema/invalid", "/result/tools/0/_meta/ui/visibility/0"),
        (listing('{"ui":{"resourceUri":7}}'), "schema/invalid", "/result/tools/0/_meta/ui/resourceUri"),
        (content("text/html"), "ui/mime-type", "/result/contents/0/mimeType"),
        (content("text/html; profile=other"), "ui/mime-type", "/result/contents/0/mimeType"),
        (content(""), "ui/mime-type", "/result/contents/0"),
    ],
)
def test_x_01_what_names_an_interface_wrongly_is_found(text, rule, pointer):
    assert (rule, pointer) in [(it.rule, it.pointer) for it in findings(text)]


def test_x_01_without_the_extension_its_members_are_not_judged():
    text = listing('{"ui":{"visibility":["user"]}}').replace(UI, "com.example/other")
    assert told(text) == []


def test_the_deprecated_member_is_told_once_a_session():
    text = "\n".join([listing('{"ui/resourceUri":"ui://a"}', '{"ui/resourceUri":"ui://b"}')] * 2)
    (found,) = [it for it in findings(text) if it.rule == "ui/flat-resource-uri"]
    assert found.message.startswith('"t0" and 1 more name their interfaces in the deprecated')
    (found,) = findings(listing('{"ui/resourceUri":"ui://a"}'))
    assert found.message.startswith('"t0" names its interface in the deprecated')
