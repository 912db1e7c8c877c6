"""What counts as a difference between runs over HTTP."""

from mcpspy.contract.verify.differences import http_checks
from mcpspy.contract.verify.http import HttpRun, TappedRequest, TappedResponse
from mcpspy.contract.verify.session import SessionPlan, Transcript
from mcpspy.transport.http_client import ClientExchange
from tests.each import each


def run(*, sent=b"{}", got=b"{}", gave=b"[]", heard=b"[]", head=(), reply=(), status=200, open_=False):
    exchange = ClientExchange("POST", sent, status, "OK", tuple(reply), heard, open_)
    request = TappedRequest(0, "POST", "/mcp", tuple(head), bytearray(got))
    return HttpRun([exchange], [(request, TappedResponse(status, "OK", (), gave))], Transcript())


def differing(bare, through):
    return {it.name: list(it.differences) for it in http_checks(SessionPlan(()), bare, through) if not it.equal}


def test_equal_runs_do_not_differ():
    assert differing([run(), run()], [run()]) == {}


@each(
    "through, found",
    [
        (
            run(got=b"{ }"),
            {"client to server": ["request 1, byte 2 of 2: the client sent '}', the server got ' }'"]},
        ),
        (run(heard=b"["), {"server to client": ["response 1, byte 2 of 2: the server gave ']', the client got ''"]}),
        (run(heard=b"[", open_=True), {}),
        (run(head=[("Via", "x")]), {"requests": ["request 1: the header via is absent bare, x through"]}),
        (run(head=[("Connection", "close"), ("Date", "x")]), {}),
        (
            run(reply=[("Set-Cookie", "s3cr3t")]),
            {"responses": ["response 1: the header set-cookie is absent bare, another one through"]},
        ),
        (run(status=500), {"responses": ["response 1 is 200 OK bare, 500 OK through"]}),
    ],
)
def test_what_differs(through, found):
    assert differing([run(), run()], [through]) == found


def test_a_header_that_is_new_in_each_run_is_the_servers_own():
    runs = [run(reply=[("ETag", tag)]) for tag in "abc"]
    assert differing(runs[:2], runs[2:]) == {}
    assert list(differing(runs[:1] * 2, runs[2:])) == ["responses"]


def test_a_session_id_may_be_new():
    runs = [run(head=[("Mcp-Session-Id", name)], reply=[("mcp-session-id", name)]) for name in "ab"]
    assert differing(runs[:1] * 2, runs[1:]) == {}


def test_a_request_too_many():
    more = run()
    assert differing([run(), run()], [HttpRun(more.exchanges * 2, more.tapped * 2, more.transcript)]) == {
        "requests": ["the server got 1 requests bare, 2 through"],
        "responses": ["the client got 1 responses bare, 2 through"],
    }


def test_without_a_tap_the_client_alone_is_compared():
    bare = HttpRun(run().exchanges, None, Transcript())
    assert [it.name for it in http_checks(SessionPlan(()), [bare, bare], [bare])] == ["responses", "answers"]
