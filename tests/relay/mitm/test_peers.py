"""Real SDK clients and servers over HTTPS with `mcpspy mitm` between them, and an OAuth login.

SDK client, started by `mcpspy run` ── mcpspy mitm ── SDK server with a certificate that only `--ca` makes trusted
"""

import base64
import json
import os
from urllib.parse import quote

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Open
from tests.optional import require_peers
from tests.peers import prepare
from tests.peers.serving import each, run, running, serving
from tests.relay.http.test_web_peers import judge
from tests.relay.interception import intercepting, needs_mitmproxy

pytestmark = needs_mitmproxy


def output(command, environ):
    done = run(command, environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def direct(mitm, certificate):
    """Return the environment of a client that trusts the server's own certificate."""
    return mitm.environ | {"SSL_CERT_FILE": certificate[0]}


@pytest.mark.parametrize(
    ("client", "server", "transport"),
    each(
        [("python1", "python1", "http"), ("python2", "python2", "http"), ("python1", "python2", "sse")],
        [("python2", "python2", "http"), ("python1", "python2", "sse")],
    ),
)
def test_a_session_over_https_is_the_same(tmp_path, certificate, client, server, transport):
    """M-03, M-07: both eras; the output of the client shows that progress reports arrive one by one."""
    require_peers(client, server)
    options = ("--allow", "127.0.0.1", "--ca", certificate[0])
    with intercepting(tmp_path, *options) as mitm:
        with serving(server, transport, *certificate) as url:
            command = prepare.client(client, "--scenario", "full", f"--{transport}", url)
            bare = json.loads(output(command, direct(mitm, certificate)))
        with serving(server, transport, *certificate) as url:
            command = prepare.client(client, "--scenario", "full", f"--{transport}", url)
            through = json.loads(output(mitm.run(*command), mitm.environ))
        mitm.end()
    assert through == bare
    (capture,) = mitm.captures()
    assert Capture(str(capture)).header.url == url.rpartition("/")[0]
    judge(capture, transport)


def test_a_client_on_node_goes_through_a_reverse_mode(tmp_path, certificate):
    """M-07: Node before 22.21 does not support proxies, so its URL has to be changed."""
    require_peers("node", "python2")
    with serving("python2", "http", *certificate) as url:
        origin = url.rpartition("/")[0]
        with intercepting(tmp_path, "--mode", f"reverse:{origin}", "--ca", certificate[0]) as mitm:
            command = prepare.client("node", "--scenario", "features", "--http", f"{mitm.url}/mcp")
            output(command, mitm.environ)
    (capture,) = mitm.captures()
    judge(capture, "http")


@pytest.mark.parametrize(
    ("client", "everything"),
    each([("python1", False), ("python1", True), ("python2", True)], [("python1", False), ("python2", True)]),
)
def test_a_login_with_oauth_succeeds_and_no_secret_is_recorded(tmp_path, certificate, client, everything):
    """O-02, M-03: secrets in a form, a query, JSON and headers; all bytes are forwarded unchanged.

    The server requires tokens for its own URL, and its authorization server has another origin.
    """
    require_peers("python1", client)
    program = os.path.join(prepare.HERE, "python1", "login_{}.py")
    serve = [prepare.python("python1"), program.format("server"), "strict", *certificate]
    options = ("--allow", "127.0.0.1", "--ca", certificate[0]) + ("--all-http",) * everything
    with running(serve) as server, intercepting(tmp_path, *options) as mitm:
        origin = f"https://127.0.0.1:{server.stdout.readline().strip()}"
        login = mitm.run(prepare.python(client), program.format("client"), f"{origin}/mcp")
        document = json.loads(output(login, mitm.environ))
    assert document.get("said") == "for those who have logged in", document
    captures = {Capture(str(path)).header.url: path for path in mitm.captures()}
    (issuer,) = set(captures) - {origin}
    statuses = [head["status"] for head in heads(captures[origin]) if "status" in head]
    assert statuses[:2] == [401, 200]  # the challenge, then the metadata
    paths = [head["target"].partition("?")[0] for head in heads(captures[issuer]) if "target" in head]
    assert ("/token" in paths) is ("/authorize" in paths) is everything
    written = b"".join(path.read_bytes() for path in mitm.captures())
    assert "«redacted:".encode() in written
    assert len(document["secrets"]) == 5  # code, verifier, access and refresh token, secret of the client
    for secret in document["secrets"]:
        for form in (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode()):
            assert form.encode() not in written


def heads(path):
    return [record.head for record in Capture(str(path)).records() if isinstance(record, Open)]
