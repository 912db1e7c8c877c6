"""`mcpspy mitm`: accepted options, one line for each mistake, and that no other command imports mitmproxy."""

import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import pytest

from tests import limits
from tests.cli.conftest import refusal
from tests.each import each
from tests.limits import LIMIT
from tests.peers import prepare, warm
from tests.relay.interception import certificate, intercepting, needs_mitmproxy

__all__ = ["certificate"]  # a fixture

SECONDS = 2.5  # until it listens


def with_mitmproxy(home, *arguments):
    """Run mcpspy in the environment that has mitmproxy."""
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
    if warm.CAN:
        return warm.run(["-m", "mcpspy", *arguments], environ)
    command = [prepare.python("mitm"), "-m", "mcpspy", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, env=environ)


def refused(home, *arguments):
    """Return the only line of `mcpspy mitm` that refuses its arguments."""
    done = with_mitmproxy(home, "mitm", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.skipif(find_spec("mitmproxy") is not None, reason="mitmproxy is installed beside the tests")
def test_without_the_extra_it_names_the_command_that_installs_it(mcpspy):
    """M-02. Its help needs no extra."""
    for command in (("mitm", "--allow", "h"), ("ca", "export"), ("ca", "env")):
        assert f"{sys.executable} -m pip install 'mcpspy[mitm]'" in refusal(mcpspy(*command))
    assert mcpspy("mitm", "--help")[0] == 0


@needs_mitmproxy
def test_a_mistake_in_a_file_is_one_line_and_nothing_listens(tmp_path):
    """If damaged certificates were accepted, no server would be trusted."""
    gates, certificates = tmp_path / "gates.toml", tmp_path / "damaged.pem"
    gates.write_text("[[gate]]\nwhen = 'from:client'\nexit = 1\n")
    certificates.write_text("-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n")
    listen = ("--allow", "h", "--listen", "127.0.0.1:0")
    why = "exit kills the server, which only 'wrap' and 'mock' on stdio start; use close or status"
    assert refused(tmp_path, *listen, "--gate", str(gates)) == f"mcpspy: {gates}:3:1: {why}\n"
    why = f"cannot read certificates from {certificates}: number 1 in it is damaged"
    assert refused(tmp_path, *listen, "--ca", str(certificates)) == f"mcpspy: {why}\n"


@needs_mitmproxy
@each(
    "arguments, sentence",
    [
        ((), "give --allow HOST"),
        (("--allow", "h", "--listen", "6279"), "--listen takes HOST:PORT"),
        (("--allow", "h", "--listen", "h:99999"), "--listen takes HOST:PORT"),
        (("--allow", "h", "--listen", "192.0.2.1:0"), "cannot listen on 192.0.2.1:0"),
        (("--allow", "h", "--mode", "regulr"), "--mode 'regulr' cannot be used"),
        (("--allow", "h", "--mode", "dns"), "the modes are regular, upstream:URL"),
        (("--allow", "h", "--mode", "regular:x"), "mode takes no arguments"),
        (("--allow", "h", "--mode", "upstream:ftp://h"), "--mode 'upstream:ftp://h' cannot be used"),
        (("--mode", "reverse:https://h/mcp"), "reverse:URL (without a path)"),
        (("--allow", "h", "--mode", "upstream:"), "--mode 'upstream:' cannot be used"),
        (("--allow", "h", "--ca", "/no/such/file"), "cannot read certificates from /no/such/file"),
        (("--allow", "https://h/mcp"), "--allow takes one host"),
        (
            ("--mode", "reverse:https://h", "--allow", "other", "--allow", "h:8443"),
            "--mode reverse:https://h leads to h:443, which --allow other --allow h:8443 does not name",
        ),
        (
            ("--allow", "h", "--mode", "upstream:http://u:pw@h:1"),
            "«withheld»@h:1' cannot hold a password",
        ),
        (("--allow", "h", "--listen", "ä..b:0"), "cannot listen on ä..b:0"),
        (("--no-such",), "--no-such"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, arguments, sentence):
    """M-08."""
    assert sentence in refused(tmp_path, *arguments)


@needs_mitmproxy
def test_a_port_that_is_taken_is_named_with_its_holder(tmp_path):
    """M-08."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        said = refused(tmp_path, "--allow", "h", "--listen", place)
    assert f"{place} is in use" in said
    assert "--listen" in said


@needs_mitmproxy
@pytest.mark.skipif(sys.platform != "linux" or sys.version_info >= (3, 12), reason="there the mode exists")
def test_a_mode_that_this_platform_lacks_is_one_line(tmp_path):
    """M-08: mitmproxy 11 redirects local programs on macOS and Windows only."""
    assert "--mode local:curl cannot be used here" in refused(tmp_path, "--allow", "h", "--mode", "local:curl")


@needs_mitmproxy
@pytest.mark.parametrize(
    ("mode", "how", "url", "next_step"),
    [
        ("regular", signal.SIGINT, "http", "; start the client with 'mcpspy run --proxy {place} -- CLIENT'"),
        ("regular", signal.SIGTERM, "http", "; start the client with 'mcpspy run --proxy {place} -- CLIENT'"),
        ("socks5", signal.SIGINT, "socks5", "; the client has to trust it: 'mcpspy ca env' says how"),
        ("upstream:http://127.0.0.1:1", signal.SIGTERM, "http", "'mcpspy run --proxy {place} -- CLIENT'"),
        (
            "reverse:https://127.0.0.1:1",
            signal.SIGTERM,
            "http",
            "; in the client's URL put http://{place} in place of https://127.0.0.1:1",
        ),
    ],
)
def test_it_says_where_it_listens_and_ends_with_a_signal(tmp_path, mode, how, url, next_step):
    allow = () if mode.startswith("reverse") else ("--allow", "127.0.0.1")
    with intercepting(tmp_path, *allow, "--mode", mode) as mitm:
        assert mitm.url.startswith(f"{url}://127.0.0.1:")
        line = mitm.says("recording the MCP traffic of 127.0.0.1")
        assert line.endswith(next_step.format(place=mitm.place))
        mitm.process.send_signal(how)
        assert mitm.process.wait(LIMIT) == 0
    assert mitm.said().count("\n") == 1
    assert mitm.captures() == []


@needs_mitmproxy
def test_it_goes_on_where_nobody_reads_its_address(tmp_path):
    """The address goes to stderr instead. This is the cold start: nothing is imported before."""
    read, write = os.pipe()
    os.close(read)
    command = [prepare.python("mitm"), "-m", "mcpspy", "mitm", "--allow", "h", "--listen", ":0"]
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    with limits.Popen(command, stdout=write, stderr=subprocess.PIPE, text=True, env=environ) as mitm:
        os.close(write)
        try:
            assert "cannot write the output, which is http://127.0.0.1:" in mitm.stderr.readline()
            assert "recording the MCP traffic of h" in mitm.stderr.readline()
            mitm.send_signal(signal.SIGINT)
            assert mitm.wait(LIMIT) == 141
            assert mitm.stderr.read() == ""
        finally:
            mitm.kill()


@needs_mitmproxy
def test_others_on_the_network_are_warned_of(tmp_path):
    with intercepting(tmp_path, "--allow", "h", "--listen", "0.0.0.0:0") as mitm:
        assert mitm.url.startswith("http://127.0.0.1:")
        mitm.says("anyone who can reach this machine")


@pytest.mark.field
@needs_mitmproxy
def test_it_listens_soon(tmp_path):
    """Issue 10: the best of three starts counts, as other work may slow one down. A first start makes the keys."""
    with intercepting(tmp_path, "--allow", "h", cold=True):
        pass
    best = LIMIT
    for _ in range(3):
        before = time.monotonic()
        with intercepting(tmp_path, "--allow", "h", cold=True):
            best = min(best, time.monotonic() - before)
    assert best < SECONDS


@needs_mitmproxy
def test_the_authority_is_the_users_own_and_stays(tmp_path):
    """M-05."""
    with intercepting(tmp_path, "--allow", "h", own_authority=True) as mitm:
        pass
    folder = mitm.authority.parent
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "mitmproxy-ca.pem").stat().st_mode & 0o777 == 0o600
    made = mitm.authority.read_bytes()
    with intercepting(tmp_path, "--allow", "h", own_authority=True):
        assert mitm.authority.read_bytes() == made
    assert not (tmp_path / ".mitmproxy").exists()


@needs_mitmproxy
def test_several_that_make_the_authority_at_once_agree(tmp_path):
    """Otherwise each could leave half of its files: a certificate that does not belong to the key.

    A certificate that is missing, as after a kill between writing the two files, is made again.
    """
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda _: with_mitmproxy(tmp_path, "ca", "export"), range(3)))
    folder = tmp_path / ".mcpspy" / "ca"
    (made,) = {it.stdout for it in done}
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
        folder / "mitmproxy-ca-cert.pem", folder / "mitmproxy-ca.pem"
    )
    assert sorted(path.name for path in folder.iterdir()) == [
        "mitmproxy-ca-cert.pem",
        "mitmproxy-ca.pem",
        "mitmproxy-dhparam.pem",
    ]
    (folder / "mitmproxy-ca-cert.pem").unlink()
    assert with_mitmproxy(tmp_path, "ca", "export").stdout == made


@needs_mitmproxy
def test_an_authority_that_is_damaged_or_cannot_be_made_is_one_line(tmp_path):
    folder = tmp_path / ".mcpspy" / "ca"
    folder.mkdir(parents=True)
    for name in ("mitmproxy-ca.pem", "mitmproxy-ca-cert.pem"):
        (folder / name).write_text("nothing")
    assert "it holds none in PEM form; move it away" in refused(tmp_path, "--allow", "h")
    assert "cannot use the authority" in refused(folder / "mitmproxy-ca.pem", "--allow", "h")


def test_only_three_modules_import_mitmproxy():
    root = pathlib.Path(__file__).parents[2] / "mcpspy"
    sources = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.py")}
    found = {name for name, text in sources.items() if "import mitmproxy" in text or "from mitmproxy" in text}
    assert found == {os.path.join("relay", "mitm", name) for name in ("addon.py", "layers.py", "master.py")}


IMPORTS = """
import importlib, sys
from mcpspy.cli import main
wrap, capture = ["wrap", "-o", sys.argv[1], "--", "true"], sys.argv[1]
for words in (["ls"], ["mitm", "--help"], ["proxy", "--help"], wrap, ["show", capture]):
    sys.argv = ["mcpspy", *words]
    try:
        main()
    except SystemExit:
        pass
    assert not any(name.startswith("mitmproxy") for name in sys.modules), words
assert {"mcpspy.capture.writer", "mcpspy.timeline"} < {*sys.modules}
import mcpspy.cli.tui, mcpspy.tui.app
assert "textual.app" in sys.modules
assert not any(name.startswith("mitmproxy") for name in sys.modules), "tui"
"""


@needs_mitmproxy
def test_other_commands_do_not_import_mitmproxy_where_it_is_installed(tmp_path):
    """Issue 10."""
    command = [prepare.python("mitm"), "-c", IMPORTS, tmp_path / "capture.jsonl"]
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    done = limits.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=environ)
    assert done.returncode == 0, done.stderr


@needs_mitmproxy
def test_it_is_mitmproxy_that_is_missed_and_nothing_else(tmp_path):
    """If another module is missing, the message does not suggest installing anything."""
    script = "import sys; sys.modules['h2'] = None; sys.argv = ['mcpspy', 'mitm', '--allow', 'h']\n"
    command = [prepare.python("mitm"), "-c", script + "from mcpspy.cli import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert "h2" in done.stderr
    assert "pip install" not in done.stderr
