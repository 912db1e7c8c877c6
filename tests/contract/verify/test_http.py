"""Sessions over HTTP: a tap keeps the bytes that pass, and a proof finds the faults of a proxy."""

import http.client
from urllib.parse import urlsplit

import pytest

from mcpspy.contract.verify import proof as proofs
from mcpspy.contract.verify.http import HttpBench, Tap
from mcpspy.contract.verify.proof import found_out, proof
from mcpspy.process.child import environment
from tests.contract.verify.web import proxied, serving
from tests.each import each
from tests.limits import LIMIT

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = b'{"jsonrpc": "2.0", "id": 1, "result": {}}'


@pytest.fixture
def tap():
    with serving() as url, Tap(url) as found:
        yield found


def connection(tap):
    return http.client.HTTPConnection(urlsplit(tap.url).hostname, urlsplit(tap.url).port, timeout=LIMIT)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_request_and_its_response(tap, chunked):
    link = connection(tap)
    link.request("POST", "/mcp?a=b", iter([PING[:9], PING[9:]]) if chunked else PING, {"X-One": "two"})
    assert link.getresponse().read() == PONG
    link.close()
    ((request, response),) = tap.taken()
    assert (request.method, request.target, bytes(request.body)) == ("POST", "/mcp?a=b", PING)
    assert ("X-One", "two") in request.headers
    assert (response.status, response.body) == (200, PONG)


def test_requests_on_one_connection_have_their_own_responses(tap):
    link = connection(tap)
    for method, target in (("POST", "/a"), ("GET", "/b"), ("POST", "/c")):
        link.request(method, target, PING if method == "POST" else None)
        link.getresponse().read()
    link.close()
    taken = tap.taken()
    assert [request.target for request, _ in taken] == ["/a", "/b", "/c"]
    assert [response.status for _, response in taken] == [200, 405, 200]
    assert tap.taken() == []


def test_a_server_that_is_gone_ends_the_connection():
    with serving() as url:
        gone = Tap(url)
    with gone as tap:
        link = connection(tap)
        with pytest.raises((OSError, http.client.HTTPException)):
            asked(link)


def asked(link):
    link.request("GET", "/")
    return link.getresponse()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_cannot_be_reached_is_an_error(scheme):
    with serving() as url:
        port = urlsplit(url).port
        if scheme == "https":  # the server has no TLS
            with pytest.raises(OSError, match="TLS"):
                Tap(f"https://127.0.0.1:{port}/")
    if scheme == "http":
        with pytest.raises(OSError, match="refused"):
            Tap(url)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(proofs, "STARTS", 1)
    monkeypatch.setattr(proofs, "PINGS", 3)


def verified(url, folder, through=None, headers=()):
    with HttpBench(url, through, dict(headers), environment(), str(folder), 20) as bench:
        return proof(bench, found_out(bench.connect, 20, {}))


def differing(found):
    return {check.name: " ".join(check.differences) for check in found.checks if not check.equal}


def test_the_proxy_is_transparent(tmp_path):
    with serving() as url:
        found = verified(url, tmp_path, headers={"X-Key": "s3cr3t"})
    assert differing(found) == {}
    assert [check.name for check in found.checks] == [
        "requests",
        "client to server",
        "responses",
        "server to client",
        "answers",
        "delay",
    ]
    assert found.checks[0].detail == "method, target and headers of 8 requests"  # with the GET and DELETE at the end
    assert len(found.figures.latencies.through) == 3


@each(
    "fault, names, sentence",
    [
        ("none", set(), ""),
        ("header", {"responses"}, "response 1: the header via is absent bare, 1.1 planted through"),
        ("status", {"responses"}, "is 202 Accepted bare, 200 OK through"),
        ("body", {"responses", "answers"}, '/result/content/0/text is "é" bare, "e" through'),
    ],
)
def test_a_planted_fault_is_told(tmp_path, fault, names, sentence):
    with serving() as url, proxied(url, fault) as through:
        found = differing(verified(url, tmp_path, through))
    assert set(found) == names
    assert sentence in " ".join(found.values())
