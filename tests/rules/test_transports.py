"""The same fault has the same finding on stdio and over HTTP."""

import pytest

from tests.rules.examples import findings

CLIENT = '"clientInfo":{"name":"c","version":"1"}'
ASK = f'> 1 initialize {{"protocolVersion":"2025-06-18","capabilities":{{}},{CLIENT}}}'
AGREE = (
    '< 1 = {"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},'
    '"serverInfo":{"name":"s","version":"1"}}\n'
)
BEGUN = "= 2025-06-18\n"
DONE = '"resultType":"complete","ttlMs":0,"cacheScope":"public"'
TOOLS = '"tools":[{"name":"echo","inputSchema":{"type":"object","required":["text"]}}]'
LISTED = f"> 2 tools/list\n< 2 = {{{TOOLS}}}\n"
MODERN = f"> 2 tools/list {{META}}\n< 2 = {{{TOOLS},{DONE}}}\n"
SUPPORTED = '"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}'
DISCOVERED = f"> 1 server/discover {{META}}\n< 1 = {{{SUPPORTED},{DONE}}}\n"
FAULTS = {
    "unknown tool": BEGUN + LISTED + '> 3 tools/call {"name":"ecko"}\n< 3 = {"content":[]}',
    "unknown tool of 2026": MODERN
    + '> 3 tools/call {META "name":"ecko"}\n< 3 = {"content":[],"resultType":"complete"}',
    "arguments": BEGUN + LISTED + '> 3 tools/call {"name":"echo","arguments":{}}\n< 3 = {"content":[]}',
    "arguments of 2026": MODERN
    + '> 3 tools/call {META "name":"echo","arguments":{}}\n< 3 = {"content":[],"resultType":"complete"}',
    "another id": BEGUN + "> 2 ping\n< 3 = {}",
    "another id of 2026": f'> 2 tools/list {{META}}\n< 3 = {{"tools":[],{DONE}}}',
    "loose id": BEGUN + '> 2 ping\n< | {"jsonrpc":"2.0","id":"2","result":{}}',
    "no version": BEGUN + '> 2 ping\n< | {"id":2,"result":{}}',
    "NaN": BEGUN + '> 2 ping\n< | {"jsonrpc":"2.0","id":2,"result":{"a":NaN}}',
    "no content": BEGUN + '> 2 tools/call {"name":"a"}\n< 2 = {}',
    "malformed request": BEGUN + '> 2 tools/call {}\n< 2 ! {"code":-32602,"message":"no name"}',
    "declared, not served": BEGUN + '> 2 prompts/list\n< 2 ! {"code":-32601,"message":"no"}',
    "unknown method": BEGUN + '> 2 tools/find\n< 2 ! {"code":-32601,"message":"no"}',
    "undeclared capability": f'{ASK}\n{AGREE}> notifications/initialized\n> 2 prompts/list\n< 2 = {{"prompts":[]}}',
    "undeclared capability of 2026": DISCOVERED + f'> 2 prompts/list {{META}}\n< 2 = {{"prompts":[],{DONE}}}',
    "undeclared input of 2026": '> 2 tools/call {META "name":"a"}\n< 2 = {"resultType":"input_required",'
    '"inputRequests":{"a":{"method":"roots/list","params":{}}}}',
    "no meta after discovery": DISCOVERED + f'> 2 tools/list\n< 2 = {{"tools":[],{DONE}}}',
    "no meta after meta": MODERN + f'> 3 tools/list\n< 3 = {{"tools":[],{DONE}}}',
    "server request of 2026": '> 2 tools/call {META can roots "name":"a"}\n< 7 roots/list\n'
    '< 2 = {"content":[],"resultType":"complete"}',
    "half a meta": '> 2 tools/list {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}\n'
    f'< 2 = {{"tools":[],{DONE}}}',
    "unasked log message of 2026": '> 2 tools/call {META "name":"a"}\n'
    '< notifications/message {"level":"info","data":1}\n< 2 = {"content":[],"resultType":"complete"}',
    "progress without a token": BEGUN + '> 2 tools/call {"name":"a"}\n'
    '< notifications/progress {"progressToken":5,"progress":1}\n< 2 = {"content":[]}',
    "initialize is cancelled": f'{ASK}\n> notifications/cancelled {{"requestId":1}}\n{AGREE}',
    "initialize twice": f"{BEGUN}{ASK}\n{AGREE}",
    "not initialized": f"{ASK}\n{AGREE}> 2 tools/list\n< 2 = {{{TOOLS}}}",
    "unknown cursor": BEGUN + '> 2 tools/list {"cursor":"x"}\n< 2 = {"tools":[]}',
}


def over_http(text):
    """Return the transcript over HTTP, with each answer in the response to the last request."""
    lines, streams, waiting = [], False, False
    for line in text.split("\n"):
        mark, _, rest = line.partition(" ")
        asks = rest.split(" ")[0].isdigit() and rest.split(" ")[1] not in "=!"
        if mark == "=":
            lines.append(f"{line} http")
        elif mark == ">":
            modern = "META" in text and "META" not in rest and "resultType" in text
            lines.append(f">> {'[mcp-protocol-version: 2026-07-28] ' if modern else ''}{rest}")
            if asks or rest.startswith("|"):
                streams, waiting = False, True
            else:
                lines.append("<< 202")
        elif mark == "<":
            if waiting and not streams and (asks or rest.startswith("notifications/")):
                lines.append("<< 200 events")
                streams = True
            lines.append(f"<- {rest}" if streams else f"<< 200 {rest}")
    return "\n".join(lines)


def rules(text):
    return sorted((it.rule, it.severity, it.blame) for it in findings(text) if not it.rule.startswith("http/"))


@pytest.mark.parametrize("name", FAULTS)
def test_the_same_fault_has_the_same_finding_on_both_transports(name):
    """R-12."""
    text = FAULTS[name]
    found = rules(text)
    assert [it for it in found if it[1] != "info"]
    assert rules(over_http(text)) == found
