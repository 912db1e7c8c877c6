"""The reason why a session did not start."""

import pytest

from mcpspy.agent.start import explain_start

HELLO = '> 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}\n'
WELCOME = '< 1 = {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}\n'


@pytest.mark.parametrize(
    ("text", "ending", "why"),
    [
        ("", {"code": None, "why": "cannot start the server: no such file"}, "cannot start the server: no such file"),
        (HELLO, {"code": None, "why": "cannot start the server: not found"}, "cannot start the server: not found"),
        ("", {"code": 1}, "the client has sent nothing; the server exited with code 1"),
        (HELLO + "! KeyError: API_KEY", {"code": 1}, "the server exited with code 1 before it answered initialize"),
        (
            HELLO + "< | Listening on port 3000",
            {"code": 0},
            "lines to stdout that are not JSON, and no answer to initialize",
        ),
        (HELLO, {"code": None, "why": "the client left"}, "the session ended before the server answered initialize"),
        (HELLO + '< 1 ! {"code":-32602,"message":"old"}', {"code": 0}, "answered initialize with an error: -32602 old"),
        (HELLO + WELCOME, {"code": 0}, "the client never sent notifications/initialized"),
        ("> 1 tools/list", {"code": 0}, "the client sent messages, but no initialize"),
    ],
)
def test_the_reason_is_told(folder, text, ending, why):
    folder.add(text, **ending)
    answer = explain_start(folder.captures)
    assert not answer["started"]
    assert why in answer["why"]
    assert answer["advice"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("= 2025-11-25", "nothing else was answered"),
        ("= 2025-11-25\n> 2 ping\n< 2 = {}", "requests were answered"),
        (HELLO + "@15 " + WELCOME + "@15.1 > notifications/initialized", "succeeded after 15 s"),
    ],
)
def test_a_session_that_started_says_so(folder, text, why):
    folder.add(text)
    answer = explain_start(folder.captures)
    assert answer["started"]
    assert why in answer["why"]


def test_the_facts_are_beside_it(folder):
    name = folder.add(HELLO + "! KeyError: API_KEY", argv=("node", "--token", "hunter2xyz"))
    answer = explain_start(folder.captures, session=name)
    assert answer["handshake"]["request"] == f"{name}#5"
    assert answer["stderr"][0]["text"] == "KeyError: API_KEY"
    assert answer["command"][0] == "node"
    assert "hunter2xyz" not in str(answer)


def test_a_live_session_may_still_be_answered(folder):
    writer, _ = folder.begin()
    for ch, sender, role in ((1, "client", "stdin"), (2, "server", "stdout"), (3, "server", "stderr")):
        writer.open(ch, 0, sender, role, "lines")
    writer.frame(1, 0, b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}', more=False, cut=False)
    assert "has not answered initialize yet" in explain_start(folder.captures)["why"]
    writer.end(0, 0, None)
