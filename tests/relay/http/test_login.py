"""A real OAuth login through the proxy: the SDK's client, its server, and its authorization server (case 13).

O-01, O-02, as far as a local authorization server can show; the tests of mitm have the same login.
"""

import json
import signal
import sys
from pathlib import Path

from mcpspy.report.checked import check
from tests.optional import require_peers
from tests.peers import prepare
from tests.peers.serving import LIMIT, run, running

HERE = Path(prepare.HERE) / "python1"
SAID = "for those who have logged in"


def login(tmp_path, kind, *options):
    """Run a login; return the report of the client, the stderr of the proxy, and the path of the capture."""
    require_peers("python1")
    python, capture = prepare.python("python1"), tmp_path / "capture.jsonl"
    with running([python, str(HERE / "login_server.py"), kind]) as server:
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/mcp"
        proxy = [sys.executable, "-m", "mcpspy", "proxy", "--listen", "127.0.0.1:0", *options, "-o", str(capture), url]
        with running(proxy, stderr=tmp_path / "stderr") as process:
            ours = process.stdout.readline().strip()
            done = run([python, HERE / "login_client.py", ours])
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT) == 0
    told = (tmp_path / "stderr").read_text()
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), told.replace(url.removesuffix("/mcp"), "UPSTREAM"), capture


def hidden(secrets, capture):
    """Return whether a capture has none of the secrets."""
    raw = capture.read_bytes()
    return not [secret for secret in secrets if secret.encode() in raw]


def test_without_help_the_client_refuses_and_the_user_learns_why(tmp_path):
    """O-01: the proxy writes one line to stderr, and `check` has a finding; both name what helps."""
    found, told, capture = login(tmp_path, "named")
    assert "does not match expected" in found["error"]
    assert told.count("\n") == 1
    assert "a login at UPSTREAM will fail: its metadata names UPSTREAM, and" in told
    assert "--rewrite-oauth" in told
    assert "mcpspy mitm" in told
    (finding,) = (it for it in check(str(capture)).findings if it.rule == "http/oauth-origin")
    assert "login will fail" in finding.message


def test_with_the_metadata_rewritten_the_client_logs_in(tmp_path):
    """O-01, O-02: the authorization server ignores `resource`; the token is not in the capture."""
    found, told, capture = login(tmp_path, "named", "--rewrite-oauth")
    assert found.get("said") == SAID, found
    assert told == ""
    assert len(found["secrets"]) == 5
    assert hidden(found["secrets"], capture)
    assert "http/oauth-origin" not in {finding.rule for finding in check(str(capture)).findings}


def test_a_server_that_looks_at_the_audience_refuses_the_token_and_the_user_learns_why(tmp_path):
    """O-01: the limit of rewriting."""
    found, told, capture = login(tmp_path, "strict", "--rewrite-oauth")
    assert "401" in found["error"]
    assert told.count("\n") == 1
    assert "UPSTREAM refuses a client's token" in told
    assert "mcpspy mitm" in told
    assert hidden(found["secrets"], capture)


def test_a_login_that_goes_through_the_proxy_as_a_whole_leaves_no_secret_on_the_disk(tmp_path):
    """O-02: code, verifier, client secret, access and refresh token, in a query, forms, JSON and headers."""
    found, told, capture = login(tmp_path, "hidden")
    assert found.get("said") == SAID, found
    assert told == ""
    assert len(found["secrets"]) == 5
    raw = capture.read_text()
    for passed in ("/authorize?", "POST", "/token", "/register", "code_verifier", "refresh_token", "client_secret"):
        assert passed in raw
    assert hidden(found["secrets"], capture)
