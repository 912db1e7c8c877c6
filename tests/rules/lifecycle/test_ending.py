"""The end of a session: a server that ends by itself is blamed for requests in flight, a client that leaves is not."""

from dataclasses import replace

import pytest

from tests.conversation.http import SSE, Exchange, request, result
from tests.rules.examples import findings, judged

ASK = '> 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}'
CALL = '= 2025-06-18\n> 2 tools/call {"name":"a"}'


def above_info(text):
    return [(it.frame, it.severity, it.rule, it.message) for it in findings(text) if it.severity != "info"]


@pytest.mark.parametrize(
    ("text", "frame", "sentence"),
    [
        (f"{ASK}\n. exit 0", 2, "the server ended with exit code 0 and did not answer initialize"),
        (f"{ASK}\n. exit 1", 2, "the server ended with exit code 1 and did not answer initialize"),
        (f"{ASK}\n. stdout closed\n. stdin closed\n. exit 1", 4, "with exit code 1 and did not answer initialize"),
        ("> 1 tools/list {META}\n. exit 0", 2, "the server ended with exit code 0 and did not answer tools/list"),
        ("! Traceback\n. exit 1", 2, "the server ended with exit code 1 before its client sent a request"),
        (". stdout closed\n. killed 11", 2, "the server ended by signal 11 before its client sent a request"),
        (f"{CALL}\n. exit 3", 5, "the server ended with exit code 3 while tools/call waited for an answer"),
        (f"{CALL}\n. killed 11", 5, "the server ended by signal 11 while tools/call waited for an answer"),
        (
            f"{CALL}\n> 3 ping\n. killed 9",
            6,
            "the server ended by signal 9 while tools/call and 1 more waited for an answer",
        ),
        (f"{CALL}\n. stdout closed\n. signal 15\n. killed 11", 7, "by signal 11 while tools/call waited for an answer"),
        (
            f"{CALL}\n. stdout closed\n@2 . signal 15 group\n. killed 11",
            7,
            "by signal 11 while tools/call waited for an answer",
        ),
        (". unstarted cannot start the server: not found", 1, "cannot start the server: not found"),
    ],
)
def test_a_server_that_ends_by_itself_with_requests_in_flight_is_one_error(text, frame, sentence):
    """R-09, R-07: the requests have no finding of their own that they are unanswered."""
    (found,) = findings(text)
    assert (found.frame, found.severity, found.rule, found.blame) == (frame, "error", "lifecycle/server-exit", "server")
    assert found.message.endswith(sentence)


@pytest.mark.parametrize(
    "text",
    [
        f"{CALL}\n. stdin closed\n. exit 1",
        f"{CALL}\n. stdin closed\n. killed 9",
        f"{CALL}\n. signal 15\n. exit 143",
        f"{CALL}\n. signal 2\n. killed 15",
        f"{CALL}\n. stdout closed\n. signal 15 group\n. killed 15",
        f"{ASK}\n. signal 15\n. killed 15",
        f"{ASK}\n. stdin closed\n. exit 0",
        ". stdin closed\n. exit 1",
        f'{CALL}\n> notifications/cancelled {{"requestId":2}}\n. exit 1',
        "= 2025-06-18\n> 2 ping\n< 2 = {}\n. exit 1",
        ". exit 0",
        ". stdout closed\n. exit 0",
        '> 1 tools/list {META}\n> notifications/cancelled {"requestId":1}\n. exit 0',
        '> 1 tools/list {META}\n> notifications/cancelled {"requestId":1}\n. exit 1',
        '> 1 subscriptions/listen {META "notifications":{}}\n. killed 15',
    ],
)
def test_what_a_leaving_client_did_is_not_the_servers_fault(text):
    """R-09: clients end servers by closing stdin and by signals."""
    assert above_info(text) == []


@pytest.mark.parametrize("end", ["exit 0", "exit 1", "killed 9"])
@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ('{"jsonrpc":"2.0","id":"1","result":{}}', "pairing/id-loose-match"),
        ('{"jsonrpc":"2.0","id":9,"result":{}}', "pairing/orphan-response"),
        ('{\n< | "jsonrpc":"2.0","id":1,"result":{}\n< | }', "framing/multiline-json"),
    ],
)
def test_an_end_after_an_answer_that_has_its_own_finding_is_none(answer, rule, end):
    """R-07: the server did answer, but the client could not use the answer."""
    assert [it.rule for it in findings(f"{ASK}\n< | {answer}\n. stdout closed\n. {end}")] == [rule]


def test_of_many_requests_in_flight_some_are_named_and_none_is_unanswered_as_well():
    """R-07."""
    text = "= 2025-06-18" + "".join(f"\n> {number} ping" for number in range(2, 5000))
    (found,) = findings(f"{text}\n. exit 1")
    assert found.message.endswith("while ping and 4997 more waited for an answer")
    assert len(found.related) == 100


def test_a_server_that_could_not_be_started_answers_nothing():
    """R-07."""
    (found,) = findings(f"{ASK}\n. unstarted cannot start the server: not found")
    assert found.rule == "lifecycle/server-exit"


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        (f"{ASK}\n@12 . stdin closed\n. exit 0", "warning"),
        (f"{ASK}\n@30 . signal 15\n. killed 15", "warning"),
        (f"{ASK}\n@2 . signal 15\n. killed 15", None),
        (f"{CALL}\n@61 . signal 15\n. killed 15", "warning"),
        (f"{CALL}\n@30 . signal 15\n. killed 15", None),
    ],
)
def test_a_server_that_hangs_until_its_client_leaves_is_a_warning(text, severity):
    """R-09, C-03: no side is blamed for a request that the client gives up this early."""
    expected = [("pairing/unanswered", severity, "server")] if severity else []
    assert [(it.rule, it.severity, it.blame) for it in findings(text)] == expected


def broken(how, sender="server", status=200, then=None):
    """Return the findings about an HTTP request whose response stream ends as `how`."""
    http = Exchange()
    asked = http.ask(request(1, "tools/list"), mcp_session_id="s")
    channel = http.answer(asked, status=status, kind=SSE, end=False)
    http.records[-1] = replace(http.records[-1], sender=sender)
    if then:
        http.event(channel, then)
    http.close(channel, how)
    return [it for it in judged(http.records) if it.rule in ("lifecycle/server-exit", "pairing/unanswered")]


def test_over_http_a_server_that_breaks_off_its_answer_is_the_same_error():
    """R-09, the same rule on both transports."""
    (found,) = broken("reset")
    assert (found.rule, found.severity, found.message) == (
        "lifecycle/server-exit", "error", "the server broke off its answer to tools/list",
    )  # fmt: skip


def test_each_transport_has_its_own_page_of_the_specification():
    """R-09."""
    (over_http,), (over_stdio,) = broken("reset"), findings("> 1 tools/list {META}\n. exit 1")
    assert [it.spec.rpartition("/specification/")[2] for it in (over_http, over_stdio)] == [
        "2025-03-26/basic/transports#sending-messages-to-the-server",
        "2026-07-28/basic/transports/stdio#unexpected-termination",
    ]


@pytest.mark.parametrize("status", [502, 504])
def test_a_server_that_cannot_be_reached_is_the_same_error(status):
    """R-09: the relay answers in place of the server."""
    (found,) = broken("eof", sender="mcpspy", status=status)
    assert (found.rule, found.blame) == ("lifecycle/server-exit", "server")
    assert found.message == "the server was unreachable for tools/list"


def test_a_stream_that_breaks_after_the_answer_or_is_left_by_its_client_is_no_fault():
    """R-09."""
    assert broken("reset", then=result(1, tools=[])) == []
    assert broken("abort") == []  # C-03
    assert broken("eof", status=502) == []


def test_an_error_that_the_relay_gave_in_the_servers_place_is_that_error():
    """R-09: `proxy` answers 502 with a JSON-RPC error."""
    http = Exchange()
    asked = http.ask(request(1, "tools/list"), mcp_session_id="s")
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "mcpspy: cannot be reached"}}
    http.answer(asked, error, status=502)
    http.records[-3] = replace(http.records[-3], sender="mcpspy")
    (found,) = judged(http.records)
    assert (found.rule, found.severity, found.blame) == ("lifecycle/server-exit", "error", "server")
    assert found.message == "the server did not answer tools/list: mcpspy: cannot be reached"


BEGUN = "= 2025-06-18 http"
OVER_HTTP = {
    "no answer in a minute": (f"{BEGUN}\n>> 2 tools/list\n@62 <. left", "pairing/unanswered", "warning"),
    "no answer in a minute of 2026": (">> 2 tools/list {META}\n@62 <. left", "pairing/unanswered", "warning"),
    "no answer to a discovery": (">> 1 server/discover {META}\n@12 <. left", "pairing/unanswered", "warning"),
    "no answer to initialize": (f">{ASK}\n@12 <. left", "pairing/unanswered", "warning"),
    "a client that leaves soon": (f"{BEGUN}\n>> 2 tools/list\n@5 <. left", "pairing/unanswered", None),
    "a client that cancels soon": (">> 2 tools/list {META}\n@5 <. left", "pairing/unanswered", None),
    "no answer in a stream": (
        f"{BEGUN}\n>> 2 tools/list\n<< 200 events\n@62 <. left", "pairing/unanswered", "warning",
    ),
    "a stream of 2026 is left, which cancels": (
        ">> 2 tools/list {META}\n<< 200 events\n@62 <. left", "pairing/unanswered", None,
    ),
    "a stream ends without the answer": (
        f"{BEGUN}\n>> 2 tools/list\n<< 200 events\n<. closed", "lifecycle/server-exit", "error",
    ),
    "a stream of 2026 ends without the answer": (
        ">> 2 tools/list {META}\n<< 200 events\n<. closed", "lifecycle/server-exit", "error",
    ),
    "a stream that can go on": (
        f"{BEGUN}\n>> 2 tools/list\n<< 200 events\n<- [id: 1]\n<. closed", "pairing/unanswered", "info",
    ),
    "a stream ends after another answer": (
        f"{BEGUN}\n>> 2 tools/list\n<< 200 events\n<- 3 = {{}}\n<. closed", "pairing/orphan-response", "error",
    ),
    "an empty body": (
        f"{BEGUN}\n>> 2 tools/list\n<< 200 [content-type: application/json]", "lifecycle/server-exit", "error",
    ),
    "a body with something else": (
        f"{BEGUN}\n>> 2 tools/list\n<< 200 notifications/tools/list_changed", "lifecycle/server-exit", "error",
    ),
    "a redirect": (f"{BEGUN}\n>> 2 tools/list\n<< 307 [location: /mcp/]", "pairing/unanswered", "info"),
    "a stream breaks off": (
        f"{BEGUN}\n>> 2 tools/list\n<< 200 events\n<. broken", "lifecycle/server-exit", "error",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OVER_HTTP)
def test_over_http_a_server_that_hangs_or_is_gone_breaks_the_same_rules(name):
    """R-09, R-07: also if the server never sent the head of a response."""
    text, rule, severity = OVER_HTTP[name]
    expected = [(rule, severity, "server")] if severity else []  # C-03: the client gave up early
    assert [(it.rule, it.severity, it.blame) for it in findings(text)] == expected


def legacy(how, t=0):
    """Return records of an HTTP+SSE request; its session's stream ends as `how`, `t` nanoseconds after the start."""
    http = Exchange()
    stream = http.answer(http.ask(method="GET", target="/sse"), kind=SSE, end=False)
    http.event(stream, raw=b"event: endpoint\ndata: /messages?session_id=s\n")
    http.answer(http.ask(request(1, "tools/list"), target="/messages?session_id=s"), status=202, kind=None)
    http.wait(t)
    http.close(stream, how)
    return http.records


def socket(how, t=0):
    """Return records of a WebSocket request; the server's direction ends as `how`, `t` nanoseconds after the start."""
    http = Exchange()
    ours, theirs = http.websocket()
    http.say(ours, request(1, "tools/list"))
    http.wait(t)
    http.close(theirs, how)
    return http.records


@pytest.mark.parametrize("channel", [legacy, socket])
def test_the_one_stream_of_a_session_breaks_off_or_is_left(channel):
    """R-09: HTTP+SSE and WebSocket."""
    for how, t, expected in [
        ("reset", 0, ("lifecycle/server-exit", "error")),
        ("abort", 62 * 10**9, ("pairing/unanswered", "warning")),
        ("abort", 0, None),  # C-03
    ]:
        found = [(it.rule, it.severity) for it in judged(channel(how, t)) if it.blame == "server"]
        assert found == ([expected] if expected else []), how
