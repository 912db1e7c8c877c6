"""Real proxies (squid, tinyproxy) and a real web server with client certificates (nginx): each command through them.

They lead to the name of this machine, which is no loopback name, so commands use the proxy for it.
"""

import json
import shutil
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpspy.network.access import PASSPHRASE
from tests import limits
from tests.contract.verify.web import serving
from tests.network import authority as made
from tests.network.authority import TestAuthority
from tests.network.test_commands import mcpspy, port_of, post, proxying, recorded
from tests.ports import free
from tests.relay.harness import until
from tests.telemetry.collector import Collector

pytestmark = [pytest.mark.field, pytest.mark.needs("openssl", "nginx")]
LOGIN = "bob:p-ss.w0rd"
CODED = "b%6Fb:p%2Dss.w0rd"
HOST = socket.gethostname()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    try:
        assert socket.gethostbyname(HOST).startswith("127.")
    except (OSError, AssertionError):
        pytest.skip("the name of this machine does not lead to it")
    return TestAuthority(tmp_path_factory.mktemp("field"), HOST)


@contextmanager
def running(port, *command, cwd):
    """Run a server until the block ends; wait until it listens."""

    def listens():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    with (cwd / "log").open("wb") as log, limits.Popen(command, cwd=cwd, stdout=log, stderr=log) as process:
        try:
            until(listens, " ".join(command))
            yield
        finally:
            process.terminate()
            process.wait()


@contextmanager
def squid(_, login, allowed):
    """Run squid; `allowed` are the ports for CONNECT. It becomes another user, who must be able to read its files."""
    port = free()
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    helper = "/usr/lib/squid/basic_ncsa_auth"
    hashed = limits.run(["openssl", "passwd", "-apr1", LOGIN[4:]], capture_output=True, text=True).stdout
    (folder / "users").write_text(f"bob:{hashed}")
    rules = f"""
        auth_param basic program {helper} {folder}/users
        acl known proxy_auth REQUIRED
        http_access deny !known
    """
    (folder / "squid.conf").write_text(f"""
        http_port 127.0.0.1:{port}
        pid_filename {folder}/pid
        access_log none
        cache_log /dev/null
        cache deny all
        acl tunnels method CONNECT
        acl open port {" ".join(map(str, allowed))}
        {rules if login else ""}
        http_access deny tunnels !open
        http_access allow all
    """)
    try:
        with running(port, "squid", "-N", "-f", str(folder / "squid.conf"), cwd=folder):
            yield port
    finally:
        shutil.rmtree(folder)


@contextmanager
def tinyproxy(folder, login, allowed):
    port = free()
    lines = [f"Port {port}", "Listen 127.0.0.1", "Timeout 60", "DisableViaHeader Yes"]
    lines += [f"ConnectPort {it}" for it in allowed]
    if login:
        user, password = LOGIN.split(":")
        lines.append(f"BasicAuth {user} {password}")
    (folder / "tiny.conf").write_text("\n".join(lines) + "\n")
    with running(port, "tinyproxy", "-d", "-c", str(folder / "tiny.conf"), cwd=folder):
        yield port


@contextmanager
def nginx(folder, authority, backend, wants_client="on"):
    """Run nginx with TLS and client certificates before a server; the value is its port."""
    port = free()
    (folder / "nginx.conf").write_text(f"""
        daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
        events {{}}
        http {{
            access_log off;
            client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
            fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
            server {{
                listen 127.0.0.1:{port} ssl;
                ssl_certificate {authority["server.pem"]}; ssl_certificate_key {authority["server.key"]};
                ssl_client_certificate {authority["ca.pem"]}; ssl_verify_client {wants_client};
                location / {{ proxy_pass http://127.0.0.1:{backend}; proxy_buffering off; proxy_http_version 1.1; }}
            }}
        }}
    """)
    with running(port, "nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), cwd=folder):
        yield port


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.needs(name)) for name in ("squid", "tinyproxy")])
def forward(request, tmp_path):
    folder = tmp_path / request.param
    folder.mkdir()
    kinds = {"squid": squid, "tinyproxy": tinyproxy}
    return lambda login, *allowed: kinds[request.param](folder, login, allowed)


@pytest.mark.parametrize("login", [False, True], ids=["open", "login"])
def test_each_command_reaches_servers_through_a_real_proxy(tmp_path, authority, forward, login):
    """Plain HTTP, and TLS with a client certificate."""
    folder = tmp_path / "nginx"
    folder.mkdir()
    files = ("--ca", authority["ca.pem"], "--cert", authority["client.pem"], "--key", authority["locked.key"])
    with serving() as url, nginx(folder, authority, port_of(url)) as secure, forward(login, secure) as port:
        variables = {"all_proxy": f"http://{CODED + '@' if login else ''}127.0.0.1:{port}", PASSPHRASE: made.PASSPHRASE}
        for there, options in ((f"http://{HOST}:{port_of(url)}/mcp", ()), (f"https://{HOST}:{secure}/mcp", files)):
            code, _, err = mcpspy("lock", "--url", there, *options, "--update", cwd=tmp_path, **variables)
            assert code == 0, err
            code, out, err = mcpspy("verify", "--url", there, *options, cwd=tmp_path, **variables)
            assert code == 0, out + err
            name = f"{len(options)}.jsonl"
            with proxying(there, *options, "-o", name, cwd=tmp_path, **variables) as (_, own):
                assert post(own)[0] == 200
            code, out, err = mcpspy("replay", name, "--url", there, *options, "--shape", cwd=tmp_path, **variables)
            assert code == 0, out + err
        assert recorded(tmp_path / "0.jsonl")[1] == recorded(tmp_path / "6.jsonl")[1]
        with Collector() as collector:
            there = collector.url.replace("127.0.0.1", HOST)
            code, out, err = mcpspy("otel", "0.jsonl", "--endpoint", there, cwd=tmp_path, **variables)
            assert (code, out[:12]) == (0, "sent 1 span "), err
            assert len(collector.spans) == 1


def test_each_refusal_of_a_real_proxy_is_one_sentence(tmp_path, authority, forward):
    with serving(authority.tls()) as url, serving() as plain, forward(True, port_of(url)) as port:
        ca = ("--ca", authority["ca.pem"])
        for there in (f"https://{HOST}:{port_of(url)}/mcp", f"http://{HOST}:{port_of(plain)}/mcp"):
            for login, words in (("", "it requires a user and a password (407)"), ("bob:x@", "it does not accept the")):
                variables = {"all_proxy": f"http://{login}127.0.0.1:{port}"}
                code, _, err = mcpspy("lock", "--url", there, *ca, cwd=tmp_path, **variables)
                assert (code, err.count("\n")) == (2, 1)
                assert words in err or err.endswith("HTTP 401 Unauthorized\n")  # tinyproxy; the server may send it too
        variables = {"all_proxy": f"http://{CODED}@127.0.0.1:{port}"}
        code, _, err = mcpspy("lock", "--url", f"https://{HOST}:9/mcp", cwd=tmp_path, **variables)
        assert code == 2
        assert "it refuses the connection (403 " in err
        code, _, err = mcpspy("otel", "--endpoint", f"http://{HOST}:9", cwd=tmp_path, all_proxy="http://127.0.0.1:1")
        assert code == 2


def test_nginx_refuses_a_client_after_the_handshake(tmp_path, authority):
    """It answers with a page."""
    with serving() as url, nginx(tmp_path, authority, port_of(url)) as port:
        there = f"https://{HOST}:{port}/mcp"
        other = ("--cert", authority["other.pem"], "--key", authority["other.key"])
        cases = (((), "requires a client certificate: give --cert FILE and --key FILE"), (other, "does not accept the"))
        for options, words in cases:
            with proxying(there, "--ca", authority["ca.pem"], *options, cwd=tmp_path) as (process, own):
                status, page = post(own)
                assert (status, b"SSL certificate" in page) == (400, True)
                line = process.stderr.readline()
                assert f"https://{HOST}:{port} {words}" in line
            code, _, err = mcpspy("lock", "--url", there, "--ca", authority["ca.pem"], *options, cwd=tmp_path)
            assert code == 2
            assert words in err


@pytest.mark.needs("curl", ".peers/mitm")
@pytest.mark.parametrize("login", [False, True], ids=["open", "login"])
def test_mitm_goes_through_a_real_proxy(tmp_path, authority, forward, login):
    """The login for it is not recorded."""
    from tests.relay.interception import intercepting  # its parent process starts with the import

    folder = tmp_path / "nginx"
    folder.mkdir()
    home = tmp_path / "home"
    home.mkdir()
    with serving() as url, nginx(folder, authority, port_of(url)) as secure, forward(login, secure) as port:
        options = ("--mode", "upstream", "--allow", HOST, "--all-http", "--ca", authority["ca.pem"])
        options += ("--cert", authority["client.pem"], "--key", authority["client.key"])
        variables = {"https_proxy": f"http://{CODED + '@' if login else ''}127.0.0.1:{port}"}
        with intercepting(home, *options, variables=variables) as mitm:
            for there in (f"https://{HOST}:{secure}/mcp", f"http://{HOST}:{port_of(url)}/mcp"):
                message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
                words = ["curl", "-sS", "-x", mitm.url, "--cacert", str(mitm.authority), "-d", message, there]
                done = limits.run([*words, "-H", "Content-Type: application/json"], capture_output=True)
                assert b'"result"' in done.stdout, (done.stderr, mitm.said())
            captures = mitm.captures()
        assert len(captures) == 2
        for path in captures:
            assert b"roxy-Auth" not in path.read_bytes()
