"""`mcpspy run`: the client's environment, and its messages when the client cannot use the proxy."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from mcpspy.cli.mitm import heeds_proxies
from mcpspy.relay.mitm.authority import certificates
from tests.cli.test_ca import home
from tests.limits import LIMIT
from tests.relay.interception import certificate
from tests.relay.mitm.test_authority import ssl_file

__all__ = ["certificate", "home"]  # fixtures

SHOW = "import json, os, signal; print(json.dumps([dict(os.environ), signal.getsignal(signal.SIGPIPE) == 0]))"


@pytest.fixture
def place():
    """The address of a listening socket."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def run(home, *arguments, environ=None, path=os.environ["PATH"]):
    return subprocess.run(
        [sys.executable, "-m", "mcpspy", "run", *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        env={"HOME": str(home), "PATH": path} | (environ or {}),
    )


def test_the_client_gets_the_proxy_and_the_authority(home, place):
    """M-07."""
    old = {"NO_PROXY": "localhost,127.0.0.1", "HTTPS_PROXY": "http://elsewhere", "MINE": "1"}
    done = run(home, "--proxy", place, "--", sys.executable, "-c", SHOW, environ=old)
    environ, _ = json.loads(done.stdout)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        assert environ[name] == f"http://{place}"
    names = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
    (bundle,) = {environ[name] for name in names}
    assert os.path.dirname(bundle) == str(home / ".mcpspy" / "ca")
    assert certificates(str(home / ".mcpspy" / "ca" / "mitmproxy-ca-cert.pem"))[0] in certificates(bundle)
    assert (environ["NODE_USE_ENV_PROXY"], environ["MINE"]) == ("1", "1")
    assert not {"NO_PROXY", "no_proxy"} & set(environ)
    assert done.stderr == "mcpspy: NO_PROXY is not passed on: traffic to its hosts would bypass mcpspy\n"


def test_a_proxy_without_a_host_is_on_this_machine(home, place):
    port = place.rpartition(":")[2]
    done = run(home, "--proxy", f":{port}", "--", sys.executable, "-c", SHOW)
    assert json.loads(done.stdout)[0]["HTTPS_PROXY"] == f"http://127.0.0.1:{port}"


def test_a_proxy_may_be_named_by_its_url(home, place):
    done = run(home, "--proxy", f"http://{place}/", "--", sys.executable, "-c", SHOW)
    assert json.loads(done.stdout)[0]["HTTPS_PROXY"] == f"http://{place}"


def test_the_client_gets_nothing_that_only_our_own_start_put_there(home, place):
    """Python adds LC_CTYPE to its own environment if no locale is set (PEP 538)."""
    done = run(home, "--proxy", place, "--", "env", environ={"MCPSPY_CAPTURE_DIR": "/elsewhere"})
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert "LC_CTYPE" not in names
    assert {"HOME", "PATH", "MCPSPY_CAPTURE_DIR", "HTTPS_PROXY"} <= names


def test_certificates_that_are_not_taken_over_are_told_of(home, place, tmp_path):
    environ = {"SSL_CERT_FILE": "/no/such/file", "REQUESTS_CA_BUNDLE": str(tmp_path)}
    done = run(home, "--proxy", place, "--", sys.executable, "-c", SHOW, environ=environ)
    assert [line.split(" ")[1] for line in done.stderr.splitlines()] == ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"]
    assert "/no/such/file is not a file of certificates" in done.stderr
    bundle = json.loads(done.stdout)[0]["SSL_CERT_FILE"]
    assert set(certificates(bundle)) >= set(certificates(ssl_file())), "what this machine trusts stays trusted"


def test_it_becomes_the_client(home, place):
    """It keeps the arguments, the exit status and the death by a signal."""
    words = ["--", "-c", "--proxy"]
    script = "import sys; print(sys.argv[1:]); sys.exit(7)"
    done = run(home, "--proxy", place, "--", sys.executable, "-c", script, *words)
    assert (done.returncode, done.stdout) == (7, f"{words}\n")
    kill = "import os; os.kill(os.getpid(), 15)"
    assert run(home, "--proxy", place, "--", sys.executable, "-c", kill).returncode == -signal.SIGTERM


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--proxy", "{place}"), "run needs the client's command after '--'"),
        (("--proxy", "6279", "--", "true"), "--proxy takes HOST:PORT"),
        (("--proxy", "h:99999", "--", "true"), "--proxy takes HOST:PORT"),
        (("--proxy", "ä..b:1", "--", "true"), "nothing listens on ä..b:1"),
        (("--proxy", "{place}", "curl", "-sS"), "put '--' before the client's command: mcpspy run -- curl ..."),
        (("--no-such", "--", "true"), "there is no option '--no-such'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(home, place, arguments, sentence):
    done = run(home, *(word.format(place=place) for word in arguments))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert sentence in done.stderr


def test_without_a_proxy_it_does_not_start_the_client(home):
    """Otherwise the client would fail with its own message, or bypass mcpspy."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
        done = run(home, "--proxy", place, "--", "echo", "started")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"nothing listens on {place}: start 'mcpspy mitm" in done.stderr


def test_without_an_authority_it_does_not_start_the_client(tmp_path, place):
    done = run(tmp_path, "--proxy", place, "--", "echo", "started")
    assert (done.returncode, done.stdout) == (2, "")
    assert "start 'mcpspy mitm', which creates it" in done.stderr


def test_an_authority_that_is_damaged_does_not_start_the_client(home, place):
    (home / ".mcpspy" / "ca" / "mitmproxy-ca-cert.pem").write_text("nothing")
    done = run(home, "--proxy", place, "--", "echo", "started")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "cannot be used" in done.stderr


def test_a_file_of_certificates_that_no_client_could_read_is_named(home, place):
    (home / "mine.pem").write_text("-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n")
    environ = {"SSL_CERT_FILE": str(home / "mine.pem")}
    done = run(home, "--proxy", place, "--", "echo", "started", environ=environ)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"cannot read certificates from {home / 'mine.pem'}: number 1 in it is damaged" in done.stderr


@pytest.mark.parametrize(("command", "status", "why"), [("no-such-client", 127, "not found"), ("/", 126, "executed")])
def test_a_command_that_cannot_start_ends_as_in_a_shell(home, place, command, status, why):
    done = run(home, "--proxy", place, "--", command)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1)
    assert why in done.stderr


@pytest.mark.parametrize("client", ["node", "a-tool"])
@pytest.mark.parametrize(("version", "warned"), [("v20.20.2", True), ("v22.21.0", False), ("something else", False)])
def test_a_node_that_ignores_proxies_is_told_of(home, place, client, version, warned):
    """M-07: also if the client is a script that Node runs."""
    bin_ = home / "bin"
    bin_.mkdir()
    (bin_ / "node").write_text(f"#!/bin/sh\necho {version}\n")
    (bin_ / "a-tool").write_text("#!/usr/bin/env node\n")
    for name in ("node", "a-tool"):
        (bin_ / name).chmod(0o755)
    done = run(home, "--proxy", place, "--", client, path=f"{bin_}:{os.environ['PATH']}")
    assert done.stdout == f"{version}\n"
    assert ("Node 20.20 ignores HTTPS_PROXY" in done.stderr) is warned
    if warned:
        assert "'mcpspy proxy'" in done.stderr
        assert "reverse:https://HOST" in done.stderr


@pytest.mark.parametrize(
    ("version", "heeds"),
    [((18, 20), False), ((20, 20), False), ((22, 20), False), ((22, 21), True), ((23, 11), False), ((24, 0), True)],
)
def test_since_when_nodeheeds_proxies(version, heeds):
    """M-07: Node obeys NODE_USE_ENV_PROXY from 22.21 and 24 on."""
    assert heeds_proxies(*version) is heeds
