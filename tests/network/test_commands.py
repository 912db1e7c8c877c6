"""Commands behind a company's proxy, with client certificates, and on Unix sockets: real processes and real TLS."""

import http.client
import json
import os
import re
import signal
import socket
import ssl
import sys
import threading
from base64 import b64encode
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Open
from mcpspy.network.access import PASSPHRASE
from tests import limits
from tests.contract.verify.web import serving, serving_on
from tests.each import each
from tests.network import authority as made
from tests.network.scripted_proxy import forwarding
from tests.optional import fork_terminal
from tests.peers import warm
from tests.relay.interception import Mitm, intercepting

LOGIN = "bob:p%40ss%20w%C3%B6rd"
PLAIN = "bob:p@ss wörd"
CODED = b64encode(PLAIN.encode())
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'
HEADS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def environment(**variables):
    """Return the environment of this process without proxies, and with these variables."""
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return clean | variables


def mcpspy(*words, cwd, **variables):
    """Run a command; return its exit status, stdout and stderr."""
    environ = environment(HOME=str(cwd), **variables)
    if words[0] == "proxy" or "--" in words:
        code, out, err = warm.finish(*words, environ=environ, cwd=cwd)
    else:  # it starts `mcpspy proxy` with the environment that it was started with itself
        command = [sys.executable, "-m", "mcpspy", *words]
        done = limits.run(command, cwd=cwd, env=environ, capture_output=True, text=True, stdin=-3)
        code, out, err = done.returncode, done.stdout, done.stderr
    assert "Traceback" not in err, err
    return code, out, err


@contextmanager
def proxying(*words, cwd, **variables):
    """Run `mcpspy proxy`; the value is the process and the URL that it prints."""
    place = () if "--listen" in words else ("--listen", "127.0.0.1:0")
    environ = environment(HOME=str(cwd), **variables)
    with warm.start("proxy", *place, *words, environ=environ, cwd=cwd) as process:
        url = process.stdout.readline().strip()
        assert url, process.stderr.read()
        try:
            yield process, url
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


def port_of(url):
    return urlsplit(url).port


def post(url, body=INITIALIZE):
    """Send a message; return the status and the body of the response."""
    there = urlsplit(url)
    connection = http.client.HTTPConnection(there.hostname, there.port, timeout=limits.LIMIT)
    connection.request("POST", f"{there.path}?{there.query}", body, HEADS)
    response = connection.getresponse()
    found = response.status, response.read()
    connection.close()
    return found


def recorded(path):
    """Return the frames of a capture, and the heads without those of the client's own hop."""
    heads, frames = [], []
    for record in Capture(str(path)).records(1 << 62):
        if isinstance(record, Open):
            head = record.head or {}
            fields = [field for field in head.get("headers", ()) if field[0] not in ("Host", "Date")]
            heads.append({**head, "headers": [it for it in fields if it[0] != "Mcp-Session-Id"]})
        elif isinstance(record, Frame):
            frames.append(record.raw)
    return heads, frames


@pytest.fixture(params=["http", "https"])
def behind(request, authority):
    """A server behind a proxy with a login: its URL, options, the variable for the proxy, its own URL, the proxy."""
    secure = request.param == "https"
    with serving(authority.tls() if secure else None) as url, forwarding(port_of(url), login=PLAIN) as proxy:
        options = ("--ca", authority["ca.pem"]) if secure else ()
        variable = f"http://{LOGIN}@127.0.0.1:{proxy.port}"
        yield f"{request.param}://{made.HOST}/mcp?a=b", options, variable, url, proxy


def test_the_commands_that_ask_reach_a_server_behind_a_proxy(behind, tmp_path):
    """No file of theirs has the login."""
    url, options, variable, _, proxy = behind
    code, out, err = mcpspy("lock", "--url", url, *options, cwd=tmp_path, all_proxy=variable)
    assert (code, out) == (0, "server: 1 tool, ~8 tokens (new)\n"), err
    code, out, err = mcpspy("verify", "--url", url, *options, cwd=tmp_path, all_proxy=variable)
    assert (code, err) == (0, ""), out
    with proxying(url, *options, "-o", "one.jsonl", cwd=tmp_path, all_proxy=variable) as (_, own):
        post(own)
    new = ("--shape", "-o", "new.jsonl")
    code, out, err = mcpspy("replay", "one.jsonl", "--url", url, *options, *new, cwd=tmp_path, all_proxy=variable)
    assert code == 0, out + err
    assert all(b"Proxy-Authorization: Basic " + CODED in head for head in proxy.heads)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            raw = path.read_bytes()
            assert CODED not in raw
            assert b"ss w" not in raw
            assert b"Proxy-Auth" not in raw


def test_what_is_recorded_through_a_proxy_is_what_is_recorded_directly(behind, tmp_path):
    """And the client gets the same bytes."""
    url, options, variable, direct, proxy = behind
    near = url.replace(made.HOST, f"127.0.0.1:{port_of(direct)}")
    insecure = ("--insecure",) if options else ()  # its certificate has another name
    answers = []
    for name, words, variables in (
        ("direct", (near, *insecure), {}),
        ("through", (url, *options), {"https_proxy": ""}),
    ):
        variables |= {"all_proxy": variable}
        with proxying(*words, "-o", f"{name}.jsonl", cwd=tmp_path, **variables) as (_, own):
            answers.append([post(own), post(own, b'{"jsonrpc":"2.0","id":2,"method":"tools/call"}')])
    assert recorded(tmp_path / "direct.jsonl") == recorded(tmp_path / "through.jsonl")
    assert answers[0] == answers[1]
    assert answers[0][0][0] == 200
    assert len(proxy.heads) == (1 if options else 2)  # no request to this machine has come to it


def told(tmp_path, url, *options, **variables):
    """Return what `lock`, and a client of `proxy`, are told; both name the same failure. `proxy` may end at once."""
    code, out, err = mcpspy("lock", "--url", url, *options, cwd=tmp_path, **variables)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    try:
        with proxying(url, *options, cwd=tmp_path, **variables) as (_, own):
            status, body = post(own)
    except AssertionError as error:
        return err, str(error)
    assert status in (502, 504)
    return err, json.loads(body)["error"]["message"]


REFUSALS = [
    (
        {"login": PLAIN},
        "",
        "it requires a user and a password (407); put them into all_proxy, as http://USER:PASSWORD@",
    ),
    ({"login": PLAIN}, "bob:hunter2@", "it does not accept the user and the password in all_proxy (407); correct them"),
    ({"login": PLAIN, "asks": b"NTLM"}, "", "it requires a login by NTLM (407), and mcpspy has only Basic"),
    (
        {"login": PLAIN, "asks": b"Negotiate\r\nProxy-Authenticate: NTLM"},
        "",
        "it requires a login by Negotiate, NTLM (407)",
    ),
]
TUNNEL_REFUSALS = [
    (
        {"refuses": b"HTTP/1.1 403 Filtered\r\nContent-Length: 0\r\n\r\n"},
        "",
        "it refuses the connection (403 Filtered); ask who runs it to allow this, or put mcp.example.test into",
    ),
    ({"refuses": b"SSH-2.0-OpenSSH_9\r\n"}, "", "it does not answer in HTTP; correct all_proxy"),
]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_refuses_is_one_sentence(tmp_path, authority, scheme):
    url = f"{scheme}://{made.HOST}/mcp"
    for options, login, words in REFUSALS + (TUNNEL_REFUSALS if scheme == "https" else []):
        with forwarding(9, **options) as proxy:
            for sentence in told(tmp_path, url, all_proxy=f"http://{login}127.0.0.1:{proxy.port}"):
                through = (
                    f"{scheme}://{made.HOST}[^ ]* cannot be reached through the proxy {proxy.url} \\(all_proxy\\): "
                )
                assert re.search(through + re.escape(words), sentence), sentence
                assert "hunter2" not in sentence


@each(
    "variable, words",
    [
        ("http://bob:hunter2@127.0.0.1:1", "the proxy http://127.0.0.1:1 (all_proxy): connection refused; correct"),
        ("http://bob:hunter2@proxy.invalid", "http://proxy.invalid:1080 (all_proxy): its name cannot be resolved"),
        ("socks5h://bob:hunter2@127.0.0.1:1", "all_proxy is a SOCKS proxy"),
        ("https://bob:hunter2@127.0.0.1:1", "all_proxy is a proxy with TLS"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_one_sentence(tmp_path, variable, words):
    for sentence in told(tmp_path, f"https://{made.HOST}/mcp", all_proxy=variable):
        assert words in sentence
        assert "hunter2" not in sentence


@contextmanager
def secured(authority, **options):
    """Run a server with TLS behind a proxy; the value is the variables."""
    with serving(authority.tls(**options)) as url, forwarding(port_of(url)) as proxy:
        yield {"https_proxy": proxy.url}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_a_server_with_client_certificates(tmp_path, authority, version):
    url, ca = f"https://{made.HOST}/mcp", ("--ca", authority["ca.pem"])
    files = ("--cert", authority["client.pem"], "--key", authority["client.key"])
    with secured(authority, wants_client=True, version=version) as variables:
        for words in (files, ("--cert", authority["pair.pem"])):
            code, out, err = mcpspy("lock", "--url", url, *ca, *words, cwd=tmp_path, **variables)
            assert code == 0, err
        if version == ssl.TLSVersion.TLSv1_3:
            code, out, err = mcpspy("verify", "--url", url, *ca, *files, cwd=tmp_path, **variables)
            assert code == 0, out + err
        for sentence in told(tmp_path, url, *ca, **variables):
            assert "client certificate" in sentence
            assert "give --cert FILE and --key FILE" in sentence
        other = ("--cert", authority["other.pem"], "--key", authority["other.key"])
        for sentence in told(tmp_path, url, *ca, *other, **variables):
            assert f"does not accept the client certificate in {authority['other.pem']} (" in sentence


def test_certificates_of_servers(tmp_path, authority):
    with secured(authority) as variables:
        for sentence in told(tmp_path, f"https://{made.HOST}/mcp", **variables):
            assert "has a certificate that cannot be verified (unable to get local issuer" in sentence
            assert "with --ca FILE" in sentence
        for sentence in told(tmp_path, "https://else.test/mcp", "--ca", authority["ca.pem"], **variables):
            assert "has a certificate for another name (Hostname mismatch" in sentence


def test_a_key_with_a_passphrase(tmp_path, authority):
    url = f"https://{made.HOST}/mcp"
    files = ("--ca", authority["ca.pem"], "--cert", authority["client.pem"], "--key", authority["locked.key"])
    with secured(authority, wants_client=True) as variables:
        given = variables | {PASSPHRASE: made.PASSPHRASE}
        assert mcpspy("lock", "--url", url, *files, cwd=tmp_path, **given)[0] == 0
        for sentence in told(tmp_path, url, *files, **variables):
            assert f"is encrypted: put its passphrase into {PASSPHRASE}" in sentence
        for sentence in told(tmp_path, url, *files, **variables, MCPSPY_KEY_PASSPHRASE="hunter2"):
            assert f"the passphrase does not decrypt the key in {authority['locked.key']}" in sentence
            assert "hunter2" not in sentence


def test_the_passphrase_is_asked_for_on_a_terminal(tmp_path, authority):
    """It is not shown."""
    url = f"https://{made.HOST}/mcp"
    files = ("--ca", authority["ca.pem"], "--cert", authority["client.pem"], "--key", authority["locked.key"])
    with secured(authority, wants_client=True) as variables:
        pid, terminal = fork_terminal()
        if pid == 0:
            os.chdir(tmp_path)
            environ = environment(HOME=str(tmp_path), **variables)
            os.execve(sys.executable, [sys.executable, "-m", "mcpspy", "lock", "--url", url, *files], environ)
        shown = b""
        while not shown.endswith(b"locked.key: "):
            shown += limits.read(terminal, 1)
        os.write(terminal, made.PASSPHRASE.encode() + b"\n")
        while b"1 server" not in shown:
            shown += limits.read(terminal, 1)
        os.close(terminal)
        os.waitpid(pid, 0)
    assert b"passphrase of " in shown
    assert made.PASSPHRASE.encode() not in shown


@each(
    "words, sentence",
    [
        (("--cert", "{client.pem}"), "client.pem holds no private key in PEM form"),
        (("--cert", "{client.key}"), "client.key holds no certificate in PEM form"),
        (("--cert", "{client.pem}", "--key", "{other.key}"), "other.key does not belong to the certificate in "),
        (("--cert", "{client.pem}", "--key", "{ca.pem}"), "ca.pem holds no private key in PEM form"),
        (("--cert", "nowhere.pem"), "cannot read nowhere.pem: No such file or directory"),
        (("--key", "{client.key}"), "--key belongs to --cert"),
        (("--ca", "{client.key}"), "cannot read certificates from "),
        (("--unix", "socket"), "--unix connects without TLS: write the URL with http://"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, authority, words, sentence):
    filled = [re.sub(r"\{(.*)\}", lambda it: authority[it[1]], word) for word in words]
    for found in told(tmp_path, "https://127.0.0.1:9/mcp", *filled):
        assert sentence in found


def test_a_command_has_no_certificates(tmp_path):
    for option in ("--ca", "--cert", "--key", "--unix"):
        for command in (("lock",), ("verify",), ("replay", "x.jsonl")):
            code, _, err = mcpspy(*command, option, "x", "--", "server", cwd=tmp_path)
            assert (code, err) == (2, f"mcpspy: {option} belongs to --url: a command is not reached over HTTP\n")


def test_a_server_on_a_unix_socket(tmp_path):
    """Proxies are not used for it."""
    path = tmp_path / "server.sock"
    words = ("--url", "http://mcp.internal/mcp", "--unix", str(path))
    code, _, err = mcpspy("lock", *words, cwd=tmp_path)
    assert (code, err) == (
        2,
        f"mcpspy: http://mcp.internal/mcp cannot be reached at {path}: no such file or directory\n",
    )
    with serving_on(path):
        code, _, err = mcpspy("lock", *words, cwd=tmp_path, all_proxy="http://127.0.0.1:1")
        assert code == 0, err
        code, out, err = mcpspy("verify", *words, cwd=tmp_path)
        assert code == 0, out + err


def test_a_proxy_on_a_unix_socket(tmp_path):
    """Only the user may connect; a socket that is left is replaced, and one that is in use is not."""
    path, own = tmp_path / "server.sock", tmp_path / "own.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(own))
    words = ("http://mcp.internal/mcp", "--unix", str(path), "--listen", f"unix:{own}", "-o", "one.jsonl")
    with serving_on(path), proxying(*words, cwd=tmp_path) as (_, url):
        assert url == f"unix://{own}#/mcp"
        assert own.stat().st_mode & 0o777 == 0o600
        code, _, err = mcpspy("lock", "--url", "http://localhost/mcp", "--unix", str(own), cwd=tmp_path)
        assert code == 0, err
        code, _, err = mcpspy("proxy", "http://a/", "--listen", f"unix:{own}", cwd=tmp_path)
        assert (code, err.partition(": ")[2]) == (
            2,
            f"{own} is in use: end the process that listens there, or choose another path\n",
        )
    assert not own.exists()
    assert b'"result"' in recorded(tmp_path / "one.jsonl")[1][-1]


@each(
    "words, sentence",
    [
        (("--listen", "unix:{folder}"), "is in use"),
        (("--listen", "unix:{folder}/no/such"), "cannot listen on "),
        (("--listen", "unix:a", "--unix", "./a"), "./a is this proxy itself"),
        (("--unix", "a", "--route", "b=http://b/"), "--unix names the socket of one server"),
        (("--listen", "unix:a", "--from", "cursor"), ""),
    ],
)
def test_sockets_that_cannot_be_used(tmp_path, words, sentence):
    words = [word.format(folder=tmp_path) for word in words]
    code, _, err = mcpspy("proxy", "http://a/", *words, cwd=tmp_path)
    assert (code, err.count("\n")) == (2, 1)
    assert sentence in err


def test_the_url_of_a_websocket(tmp_path):
    """The handshake goes to the server as HTTP."""
    with serving() as url, proxying(url.replace("http:", "ws:"), "-o", "one.jsonl", cwd=tmp_path) as (_, own):
        assert own.startswith("ws://127.0.0.1:")
        assert post(own)[0] == 200
    assert Capture(str(tmp_path / "one.jsonl")).header.url == url


GRANT = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
ASK = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"


@contextmanager
def granting(tls):
    """Run a server that grants one WebSocket, and sends back what it gets."""
    listener = tls.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True)

    def serve():
        client, _ = listener.accept()
        with client:
            while client.recv(1) != b"\n" or client.recv(2) != b"\r\n":
                pass
            client.sendall(GRANT)
            while piece := client.recv(4096):
                client.sendall(piece)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    thread.join(limits.LIMIT)
    listener.close()


def test_a_websocket_behind_a_proxy(tmp_path, authority):
    """wss:// goes through a tunnel of the proxy."""
    text = b"\x81\x8f\0\0\0\0" + b'{"jsonrpc":"2"}'
    with granting(authority.tls()) as port, forwarding(port, login=PLAIN) as proxy:
        words = (f"wss://{made.HOST}/mcp", "--ca", authority["ca.pem"], "-o", "one.jsonl")
        variable = f"http://{LOGIN}@127.0.0.1:{proxy.port}"
        with proxying(*words, cwd=tmp_path, https_proxy=variable) as (_, own):
            there = urlsplit(own)
            assert there.scheme == "ws"
            with socket.create_connection((there.hostname, there.port), limits.LIMIT) as client:
                client.sendall(ASK)
                answer = b""
                while not answer.endswith(b"\r\n\r\n"):
                    answer += client.recv(4096)
                assert answer.startswith(b"HTTP/1.1 101 ")
                client.sendall(text)
                assert client.recv(4096) == text
    assert recorded(tmp_path / "one.jsonl")[1] == [b'{"jsonrpc":"2"}'] * 2


@pytest.mark.needs("curl", ".peers/mitm")
def test_mitm_goes_through_the_proxy_of_the_variables(tmp_path, authority):
    """The server requires a client certificate; the login for the proxy is not recorded."""
    options = ("--mode", "upstream", "--allow", made.HOST, "--ca", authority["ca.pem"], "--cert", authority["pair.pem"])
    message = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    tls = authority.tls(wants_client=True)
    with serving(tls) as url, forwarding(port_of(url), login=PLAIN) as proxy:
        variables = {"https_proxy": f"http://{LOGIN}@127.0.0.1:{proxy.port}"}
        with intercepting(tmp_path, *options, variables=variables) as mitm:
            words = ["curl", "-sS", "-x", mitm.url, "--cacert", str(mitm.authority), "-d", message]
            words += ["-H", "Content-Type: application/json", f"https://{made.HOST}/mcp"]
            done = limits.run(words, capture_output=True)
            assert b'"result"' in done.stdout, mitm.said()
        [path] = mitm.captures()
    assert recorded(path)[1][0] == message.encode()
    assert b"roxy-Auth" not in path.read_bytes()
    assert [b"Basic " + CODED in head for head in proxy.heads] == [True]


@pytest.mark.needs(".peers/mitm")
def test_what_mitm_cannot_use_is_one_sentence(tmp_path, authority):
    locked = ("--cert", authority["client.pem"], "--key", authority["locked.key"])
    upstream = ("--mode", "upstream")
    cases = [
        (upstream, {}, "--mode upstream needs a proxy, and the variables name none for a.test: set https_proxy"),
        (upstream, {"https_proxy": "http://p", "no_proxy": "*"}, "take the host out of no_proxy"),
        (upstream, {"https_proxy": "socks5://me:hunter2@p"}, "https_proxy is a SOCKS proxy"),
        (upstream, {"https_proxy": "http://:hunter2@p"}, "https_proxy has a password without a user"),
        (locked, {}, "has a passphrase, which 'mitm' cannot use: use 'mcpspy proxy'"),
    ]
    for options, variables, words in cases:
        mitm = Mitm(tmp_path, "--allow", "a.test", *options, variables={**variables, PASSPHRASE: made.PASSPHRASE})
        assert mitm.process.wait(limits.LIMIT) == 2
        mitm.process.stdout.close()
        assert words in mitm.said()
        assert "hunter2" not in mitm.said()
    with intercepting(tmp_path, "--allow", "a.test", variables={"https_proxy": "http://p"}) as mitm:
        mitm.says("https_proxy names a proxy, which servers are reached without", "--mode upstream")
