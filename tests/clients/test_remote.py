"""What `doctor` says about a remote server, and that it sends one request and shows no secret."""

import http.client
import socket
import ssl
import threading

import pytest

from mcpspy.clients import remote
from mcpspy.clients.check import FINE, NOTE, PROBLEM
from mcpspy.clients.places import Found
from mcpspy.clients.remote import (
    RemoteResponse,
    headers_of,
    mistakes_of,
    of_request,
    of_response,
    request,
    transport_of,
)
from mcpspy.clients.servers import Server
from mcpspy.clients.table import BOTH, BY_ID, HTTP, SSE, WEBSOCKET
from tests.clients.configurations import machine
from tests.each import each

SECRET = "s3cr3t-t0ken"


def server(client="cursor", **members):
    url = next((value for key, value in members.items() if key in BY_ID[client].remote), "https://h/mcp")
    return Server(Found(BY_ID[client], BY_ID[client].places[0], "x"), "s", "s", url=url, members=members)


@each(
    "client, members, transport",
    [
        ("cursor", {"url": "x"}, BOTH),
        ("vscode", {"url": "x"}, BOTH),
        ("vscode", {"url": "x", "type": "sse"}, SSE),
        ("vscode", {"url": "x", "type": "stdio"}, ""),
        ("claude-code", {"url": "x"}, ""),
        ("claude-code", {"url": "x", "type": "http"}, HTTP),
        ("claude-desktop", {"url": "x", "type": "http"}, ""),
        ("gemini-cli", {"url": "x"}, BOTH),
        ("qwen", {"url": "x"}, SSE),
        ("qwen", {"httpUrl": "x"}, HTTP),
        ("claude-code", {"url": "x", "type": "ws"}, WEBSOCKET),
        ("gemini-cli", {"url": "x", "type": "http"}, HTTP),
        ("gemini-cli", {"httpUrl": "x"}, HTTP),
        ("cline", {"url": "x"}, SSE),
        ("codex", {"url": "x"}, HTTP),
        ("opencode", {"url": "x"}, ""),
        ("opencode", {"url": "x", "type": "remote"}, BOTH),
        ("cursor", {"url": "x", "type": 3}, BOTH),
    ],
)
def test_each_client_has_its_own_way_to_name_a_transport(client, members, transport):
    assert transport_of(server(client, **members)) == transport


@each(
    "members, headers",
    [
        ({"headers": {"A": "b", "N": None, "I": 3}}, {"A": "b", "I": "3"}),
        ({"http_headers": {"A": "b"}}, {"A": "b"}),
        ({"requestOptions": {"headers": {"A": "b"}}}, {"A": "b"}),
        ({"headers": ["A"], "requestOptions": "x"}, {}),
        ({}, {}),
    ],
)
def test_headers_are_found_where_clients_have_them(members, headers):
    assert headers_of(server(**members)) == headers


@each(
    "members, said",
    [
        ({"headers": {"A\n": "x"}}, "is not a valid name of a header"),
        ({"headers": {"A": "x\n"}}, "the header A has a blank at an end"),
        ({"headers": {"A": "€"}}, "a character that no header can have"),
        ({"headers": {"authorization": SECRET}}, "has a value without a scheme"),
        ({"headers": {"Authorization": "Bearer <token>"}}, "the header Authorization is the placeholder <token>"),
        ({"headers": {"Authorization": "Bearer ${env:NONE}"}}, "needs NONE, which is not set here"),
        ({"url": "https://h/mcp?key=YOUR_API_KEY"}, "its URL is the placeholder YOUR_API_KEY"),
        ({"url": "https://h/${NONE}"}, "its URL: Cursor does not replace ${NONE}"),
        ({"url": "h/mcp"}, "its URL is not valid: h/mcp"),
        ({"url": "https://h:x/"}, "its URL is not valid"),
        ({"url": "https://[/"}, "its URL is not valid"),
        ({"url": "ws://h/"}, "its URL is not valid"),
    ],
)
def test_a_mistake_in_the_entry_is_a_problem(tmp_path, members, said):
    made = list(mistakes_of(server(**members), machine(tmp_path)))
    assert any(check.level == PROBLEM and said in check.text and check.fix for check in made), made
    assert not any(SECRET in f"{check.text}{check.fix}" for check in made)


def test_a_server_over_websocket_is_not_asked(tmp_path):
    one = server("claude-code", url="ws://h/mcp", type="ws")
    assert not list(mistakes_of(one, machine(tmp_path)))
    [check] = of_request(one, machine(tmp_path))
    assert (check.level, "which is not asked here" in check.text) == (NOTE, True)


def test_an_input_is_only_noted(tmp_path):
    [check] = mistakes_of(server("vscode", headers={"A": "${input:key}"}), machine(tmp_path))
    assert (check.level, check.text) == (NOTE, "the header A asks for key, which is not set here")


def responses(status=200, kind="application/json", body=b"", trouble=None, **headers):
    return RemoteResponse(status, "Reason", {"content-type": kind, **headers}, body, 0.1, trouble)


RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"n","version":"2"},"protocolVersion":"2025-06-18"}}'
REFUSED = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no"}}'


@each(
    "transport, response, level, said",
    [
        ("", responses(body=RESULT), FINE, "initialize was answered after 0.1 s, n 2, 2025-06-18"),
        ("", responses(body=REFUSED), NOTE, "it answered initialize with an error: no"),
        ("", responses(400, body=REFUSED), NOTE, "it answered initialize with an error: no (HTTP 400 Reason)"),
        ("http", responses(404, body=b'{"jsonrpc":"2.0","id":null,"error":3}'), NOTE, "with an error: 3 (HTTP 404"),
        ("", responses(body=b"[]"), PROBLEM, "it answered with no message of MCP: []"),
        ("", responses(kind="text/html", body=b"<title>a\x1b</title>"), PROBLEM, "it answered with a web page: a"),
        ("", responses(202), PROBLEM, "it answered with no message of MCP"),
        ("", responses(302, location="/x?token=s3cr3t"), PROBLEM, "it redirects to https://h/x?token=«withheld» (HTTP"),
        ("", responses(301, location="/mcp/"), PROBLEM, "(HTTP 301 Reason), which makes a GET of a POST"),
        ("", responses(307, location="/mcp/"), NOTE, "it redirects to https://h/mcp/ (HTTP 307 Reason), which clients"),
        ("sse", responses(301, location="/mcp/"), NOTE, "which clients follow"),
        ("", responses(405), NOTE, "it accepts no POST (HTTP 405 Reason); Cursor then tries HTTP+SSE"),
        ("http", responses(405), PROBLEM, "it accepts no POST (HTTP 405 Reason), so it may speak HTTP+SSE"),
        (
            "sse",
            responses(405),
            PROBLEM,
            "it has no event stream here (HTTP 405 Reason), so",
        ),
        (
            "sse",
            responses(400, body=REFUSED),
            PROBLEM,
            "it has no event stream here (HTTP 400 Reason), so",
        ),
        ("sse", responses(404), PROBLEM, "there is nothing at this path (HTTP 404"),
        ("", responses(404), NOTE, "it accepts no POST (HTTP 404 Reason); Cursor then tries HTTP+SSE"),
        ("sse", responses(body=RESULT), PROBLEM, "it sent application/json, not an event stream"),
        ("sse", responses(kind="text/event-stream"), PROBLEM, "its stream names no endpoint"),
        (
            "sse",
            responses(kind="text/event-stream", body=b"/m"),
            FINE,
            "the stream began after 0.1 s, its endpoint is /m",
        ),
        ("sse", responses(kind="text/event-stream", body=b"http://i/m"), PROBLEM, "an endpoint at another origin"),
        ("", responses(401), PROBLEM, "it requires credentials, and names no place to log in (HTTP 401"),
        (
            "",
            responses(401, **{"www-authenticate": 'Bearer resource_metadata="https://h"'}),
            NOTE,
            "it requires a login, and names where; Cursor may offer that",
        ),
        ("", responses(502, body=b"<title>Bad\nGateway</title>"), PROBLEM, "it answered HTTP 502 Reason: Bad Gateway"),
        ("", responses(trouble=ConnectionRefusedError()), PROBLEM, "nothing listens on h"),
        ("", responses(trouble=socket.gaierror(-2, "Name unknown")), PROBLEM, "h cannot be reached: Name unknown"),
        ("", responses(trouble=TimeoutError()), PROBLEM, "h sent nothing for 10 s"),
        ("", responses(trouble=ssl.SSLError(1, "wrong version")), PROBLEM, "h does not speak TLS"),
        ("", responses(trouble=http.client.BadStatusLine("x")), PROBLEM, "h does not answer in HTTP"),
    ],
)
def test_each_response_is_judged(transport, response, level, said):
    client = {"http": "claude-code", "sse": "claude-code"}.get(transport, "cursor")
    one = server(client, url="https://h/mcp", **({"type": transport} if transport else {}))
    [check] = of_response(response, "https://h/mcp", {}, one)
    assert (check.level, said in check.text) == (level, True), check
    assert bool(check.fix) >= (level == PROBLEM)


def test_a_redirect_to_another_origin_loses_the_headers():
    response = responses(308, location="https://other/mcp")
    for headers, level in (({}, NOTE), ({"Authorization": f"Bearer {SECRET}"}, PROBLEM)):
        [check] = of_response(response, "https://h/mcp", headers, server())
        assert (check.level, check.fix) == (level, "write that URL: https://other/mcp")


def test_a_secret_that_the_server_repeats_is_not_shown():
    headers = {"Authorization": f"Bearer {SECRET}", "X-Api-Key": "0ther-key"}
    body = f"no: {SECRET}, 0ther-key, key=qu3ry-key".encode()
    url = "https://h/mcp?key=qu3ry-key"
    for response in (
        responses(400, body=body), responses(200, body=body), responses(401, body=body),
        responses(301, location=f"/{SECRET}?x=0ther-key"), responses(trouble=OSError(5, f"bad {SECRET}")),
    ):  # fmt: skip
        for check in of_response(response, url, headers, server("codex", url=url)):
            assert not any(secret in f"{check.text}{check.fix}" for secret in (SECRET, "0ther-key", "qu3ry-key")), check


@pytest.fixture
def peer():
    """A server whose one connection answers with given chunks; `requests` has what it received."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(10)
    requests, answers = [], []

    def serve():
        connection, _ = listener.accept()
        with connection:
            requests.append(connection.recv(65536))
            for answer in answers:
                connection.sendall(answer)
            while connection.recv(65536):
                pass

    thread = threading.Thread(target=serve, daemon=True)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", requests, answers, thread
    thread.join(10)
    listener.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n"


@pytest.mark.parametrize(
    ("transport", "kind", "body", "begins", "said"),
    [
        (HTTP, b"text/event-stream", b": c\n\nevent: message\ndata: " + RESULT + b"\n\n", b"POST /mcp", RESULT),
        (SSE, b"text/event-stream; charset=utf-8", b"event: endpoint\ndata: /m\n\n", b"GET /mcp", b"/m"),
    ],
)
def test_of_a_stream_the_first_message_is_enough(peer, transport, kind, body, begins, said):
    """The stream stays open; the request does not wait for its end."""
    url, requests, answers, thread = peer
    answers += [HEAD % kind, body]
    thread.start()
    response = request(url, {"X-Key": SECRET}, transport)
    assert (response.status, response.body, response.trouble) == (200, said, None)
    [sent] = requests
    assert sent.startswith(begins)
    assert f"X-Key: {SECRET}".encode() in sent


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nX: ", HEAD % b"text/event-stream", b"", b"SSH-2.0-x\r\n"])
def test_a_server_that_says_nothing_more_is_left(peer, monkeypatch, answer):
    monkeypatch.setattr(remote, "PATIENCE", 0.2)
    url, _, answers, thread = peer
    answers.append(answer)
    thread.start()
    before = threading.active_count()
    response = request(url, {}, HTTP)
    assert response.trouble is not None or response.body == b""
    assert threading.active_count() <= before, "a server can be started only while there is one thread"


def test_codex_takes_headers_from_variables(peer, tmp_path):
    url, requests, answers, thread = peer
    answers += [HEAD % b"application/json", RESULT]
    here = machine(tmp_path, environ={"T": SECRET, "K": "0ther-key"})
    one = server("codex", url=url, bearer_token_env_var="T", env_http_headers={"X-Key": "K", "Y": "NONE"})
    answers.insert(1, b"")
    thread.start()
    answers[0] = answers[0].replace(b"\r\n\r\n", f"\r\nContent-Length: {len(RESULT)}\r\n\r\n".encode())
    [check] = of_request(one, here)
    assert check.level == FINE
    assert f"Authorization: Bearer {SECRET}".encode() in requests[0]
    assert b"X-Key: 0ther-key" in requests[0]
    assert b"Y:" not in requests[0]
