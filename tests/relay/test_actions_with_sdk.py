"""How a client of the Python SDK reacts to every action, over stdio and over Streamable HTTP."""

import sys

import pytest

from tests.peers import prepare
from tests.peers.serving import serving
from tests.relay.talking import talking
from tests.replay.webs import listening

needs_sdk = pytest.mark.needs(".peers/python1")
OK, LATE = "the text", "McpError Timed out"
CASES = {
    "drop-request": ("drop = true", LATE),
    "drop-result": ("drop = true", LATE),
    "repeat-result": ("repeat = 2", OK),
    "answer-request": ('answer = { error = { code = -32603, message = "down" } }', "McpError down"),
    "answered-request": ('answer = { result = { content = [{ type = "text", text = "made up" }] } }', "made up"),
    "edit-request": ('edit = [{ op = "replace", path = "/params/arguments/text", value = "other" }]', "other"),
    "edit-result": ('edit = [{ op = "replace", path = "/result/content/0/text", value = "other" }]', "other"),
    "delay-request": ('delay = "50ms"', OK),
    "delay-result": ('delay = "50ms"', OK),
    "throttle-result": ('throttle = "50kB/s"', OK),
    "hold-request": ('hold = "50ms"', OK),
    "hold-result": ('hold = "50ms"\nreorder = true', OK),
    "send-result": ('send = "oops"', LATE),
    "cut-result": ("cut = 20", LATE),
    "not-json-result": ('garble = "not-json"', LATE),
    "bom-result": ('garble = "bom"', LATE),
}
"""The action of a gate, and the beginning of the line that the client prints."""
STDIO = CASES | {"repeat-request": ("repeat = 2", OK), "exit-request": ("exit = 3", "McpError Connection closed")}
HTTP = CASES | {"status-request": ("status = 503", "HTTPStatusError Server error '503 Service Unavailable'")}
"""The last case of each transport ends the session."""


def gates(folder, cases):
    """Write a file with a gate for each case, which acts on the call whose text is the name of the case."""
    tables = []
    for name, (action, _) in cases.items():
        sender = "client" if name.endswith("request") else "server"
        tables.append(f"[[gate]]\nname = '{name}'\nwhen = 'method:tools/call from:{sender} \"{name}\"'\n{action}\n")
    path = folder / "gates.toml"
    path.write_text("\n".join(tables))
    return path


def judge(talk, cases):
    said = {name: talk.ask(f"!{name}") for name in cases}
    expected = {name: name if line is OK else line for name, (_, line) in cases.items()}
    assert {name: line[: len(expected[name])] for name, line in said.items()} == expected
    assert not any(said[name] == name for name, (_, line) in cases.items() if line is not OK)


@needs_sdk
def test_stdio(tmp_path):
    wrap = [sys.executable, "-m", "mcpspy", "wrap", "--gate", str(gates(tmp_path, STDIO)), "-o", str(tmp_path / "a")]
    with talking(prepare.talker("stdio", *wrap, "--", *prepare.server("python1"))) as talk:
        judge(talk, STDIO)


@pytest.mark.field
@needs_sdk
def test_streamable_http(tmp_path):
    with serving("python1", "http") as url, listening("proxy", url, "--gate", gates(tmp_path, HTTP)) as proxy:
        with talking(prepare.talker("http", proxy.url)) as talk:
            judge(talk, HTTP)
        proxy.end()
