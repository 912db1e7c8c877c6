import base64
import json

import pytest

from mcpspy.capture.records import Close, Frame, Header, Omitted, Open
from mcpspy.exporters.har_entry import ArchivedExchange

HEADER = Header("0" * 32, "2026-03-17T10:00:00.000000Z", "mcpspy 0.1.0", "http", "weather", url="http://example.test")
HEAD = {"method": "POST", "target": "/mcp?page=2&x", "version": "1.1", "headers": [["Host", "a"], ["X", "\ud800"]]}
MS = 1_000_000


def request(head=HEAD, **fields):
    return Open(2, 1, 0, "client", "request", "body", head=head, **fields)


def response(framing="body", status=200, sender="server", headers=(("content-type", "application/json"),)):
    head = {"status": status, "reason": "OK", "headers": [list(it) for it in headers]}
    return Open(4, 2, 15 * MS, sender, "response", framing, answers=1, head=head)


def entry(exchange):
    found = json.loads(b"".join(exchange.json(HEADER, "page_1")))
    exchange.close()
    return found


def exchange(opened=None, answered=None, posted=b"{}", content=b"{}", how="eof"):
    opened, answered = opened or request(), answered or response()
    found = ArchivedExchange(opened, [1, 2], asked=5 * MS, response=answered)
    found.add(Frame(3, 1, 4 * MS, posted), opened, HEADER)
    found.add(Frame(5, 2, 20 * MS, content), answered, HEADER)
    found.end = Close(6, 2, 20 * MS, how)
    return found


def test_heads_bodies_and_times_stand_where_browsers_put_them():
    found = entry(exchange())
    assert found["startedDateTime"] == "2026-03-17T10:00:00.000000Z"
    assert found["time"] == 20
    assert {name: found["timings"][name] for name in ("send", "wait", "receive")} == {
        "send": 5, "wait": 10, "receive": 5,
    }  # fmt: skip
    asked = found["request"]
    assert (asked["url"], asked["httpVersion"]) == ("http://example.test/mcp?page=2&x", "HTTP/1.1")
    assert asked["queryString"] == [{"name": "page", "value": "2"}, {"name": "x", "value": ""}]
    assert asked["headers"] == [{"name": "Host", "value": "a"}, {"name": "X", "value": "\ud800"}]
    assert asked["postData"] == {"mimeType": "x-unknown", "text": "{}"}
    assert found["response"]["content"] == {"size": 2, "mimeType": "application/json", "text": "{}"}
    assert "comment" not in found


def test_bodies_that_are_no_text_are_base64():
    found = entry(exchange(posted=b"\xff", content=b"\xfe"))
    assert found["request"]["postData"]["encoding"] == found["response"]["content"]["encoding"] == "base64"
    assert base64.b64decode(found["response"]["content"]["text"]) == b"\xfe"


def test_an_event_has_the_blank_line_that_ended_it():
    found = entry(exchange(answered=response("sse"), content=b"data: {}\n"))
    assert found["response"]["content"]["text"] == "data: {}\n\n"


@pytest.mark.parametrize(
    ("how", "error"), [("eof", None), ("abort", "the client left"), ("reset", "the server broke off")]
)
def test_how_a_response_ended_is_an_error_as_in_chrome(how, error):
    assert entry(exchange(how=how))["response"].get("_error") == error


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"content": "«redacted:0f3c9a12»".encode()}, "mcpspy replaced secrets when it recorded this"),
        ({"content": "«withheld: 1234 bytes»".encode()}, "mcpspy replaced secrets when it recorded this"),
        (
            {"opened": request(HEAD | {"headers": [["authorization", "Bearer «redacted:0f3c9a12»"]]})},
            "mcpspy replaced secrets in the heads",
        ),
        ({"opened": request(sent={"target": "/x"}, by="route")}, "the request was forwarded with other headers"),
        ({"answered": response(sender="mcpspy", status=502)}, "mcpspy sent this response, not the server"),
    ],
)
def test_a_comment_says_what_an_archive_cannot_hold(changed, words):
    assert words in entry(exchange(**changed))["comment"]


def test_what_a_gate_did_is_a_comment():
    found = exchange()
    found.add(Frame(7, 2, 20 * MS, b"x", sent=b"y", by="gate slow"), found.response, HEADER)
    assert "#7 was changed, dropped or replaced by gate slow" in entry(found)["comment"]


def test_a_redirect_has_its_target():
    moved = response(status=307, headers=(("Location", "/elsewhere"),))
    found = entry(exchange(answered=moved))["response"]
    assert (found["redirectURL"], found["status"]) == ("/elsewhere", 307)


def test_a_frame_that_is_too_large_to_be_joined_is_left_out_and_counted():
    found = exchange(content=b"")
    found.add(Frame(7, 2, 20 * MS, b"begin", omitted=Omitted(99_000_000, b"end")), found.response, HEADER)
    content = entry(found)["response"]["content"]
    assert content == {"size": 99_000_000, "mimeType": "application/json"}
