"""`mcpspy mitm`: accepted options, one line for each mistake, and that no other command imports mitmproxy."""

import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import time

import pytest

from tests import limits
from tests.limits import LIMIT
from tests.peers import prepare, warm
from tests.relay.interception import certificate, intercepting, needs_mitmproxy

__all__ = ["certificate"]  # a fixture

SECONDS = 2.5  # until it listens


def mcpspy(home, *arguments, python=sys.executable):
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
    command = [python, "-m", "mcpspy", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, env=environ)


def mitm(home, *arguments):
    """Run `mcpspy mitm` in the environment that has mitmproxy."""
    if not warm.CAN:
        return mcpspy(home, "mitm", *arguments, python=prepare.python("mitm"))
    return warm.run(["-m", "mcpspy", "mitm", *arguments], {"HOME": str(home), "PATH": os.environ["PATH"]})


@pytest.mark.skipif(
    limits.run([sys.executable, "-c", "import mitmproxy"], capture_output=True, check=False).returncode == 0,
    reason="mitmproxy is installed beside the tests",
)
@pytest.mark.parametrize("command", [("mitm", "--allow", "h"), ("ca", "export"), ("ca", "env")], ids=" ".join)
def test_without_the_extra_it_names_the_command_that_installs_it(tmp_path, command):
    """M-02."""
    done = mcpspy(tmp_path, *command)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert f"{sys.executable} -m pip install 'mcpspy[mitm]'" in done.stderr


@needs_mitmproxy
def test_a_mistake_in_a_gate_file_is_one_line_and_nothing_listens(tmp_path):
    gates = tmp_path / "gates.toml"
    gates.write_text("[[gate]]\nwhen = 'from:client'\nexit = 1\n")
    done = mitm(tmp_path, "--allow", "h", "--listen", "127.0.0.1:0", "--gate", str(gates))
    assert (done.returncode, done.stdout) == (2, "")
    why = "exit kills the server, which only 'wrap' and 'mock' on stdio start; use close or status"
    assert done.stderr == f"mcpspy: {gates}:3:1: {why}\n"


def test_help_needs_no_extra(tmp_path):
    done = mcpspy(tmp_path, "mitm", "--help")
    assert done.returncode == 0
    assert "--allow HOST" in done.stdout


@needs_mitmproxy
@pytest.mark.parametrize(
    ("arguments", "sentence"),
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
            "«withheld»@h:1' cannot be used: a URL in it must not",
        ),
        (("--allow", "h", "--listen", "ä..b:0"), "cannot listen on ä..b:0"),
        (("--no-such",), "--no-such"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, arguments, sentence):
    """M-08."""
    done = mitm(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1, done.stderr
    assert sentence in done.stderr


@needs_mitmproxy
def test_a_file_of_damaged_certificates_is_one_line(tmp_path):
    """Otherwise the file would be accepted, and no server would be trusted."""
    path = tmp_path / "damaged.pem"
    path.write_text("-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n")
    options = ("--allow", "h", "--listen", ":0", "--ca", str(path))
    done = mitm(tmp_path, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"mcpspy: cannot read certificates from {path}: number 1 in it is damaged\n"


@needs_mitmproxy
def test_a_port_that_is_taken_is_named_with_its_holder(tmp_path):
    """M-08."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        done = mitm(tmp_path, "--allow", "h", "--listen", place)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1, done.stderr
    assert f"{place} is in use" in done.stderr
    assert "--listen" in done.stderr


@needs_mitmproxy
@pytest.mark.skipif(sys.platform != "linux" or sys.version_info >= (3, 12), reason="there the mode exists")
def test_a_mode_that_this_platform_lacks_is_one_line(tmp_path):
    """M-08: mitmproxy 11 redirects local programs on macOS and Windows only."""
    done = mitm(tmp_path, "--allow", "h", "--mode", "local:curl")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1, done.stderr
    assert "--mode local:curl cannot be used here" in done.stderr


@needs_mitmproxy
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("mode", "url", "next_step"),
    [
        ("regular", "http://127.0.0.1:", "; start the client with 'mcpspy run --proxy {place} -- CLIENT'"),
        ("socks5", "socks5://127.0.0.1:", "; the client has to trust it: 'mcpspy ca env' says how"),
        ("upstream:http://127.0.0.1:1", "http://127.0.0.1:", "'mcpspy run --proxy {place} -- CLIENT'"),
        (
            "reverse:https://127.0.0.1:1",
            "http://127.0.0.1:",
            "; in the client's URL put http://{place} in place of https://127.0.0.1:1",
        ),
    ],
)
def test_it_says_where_it_listens_and_ends_with_a_signal(tmp_path, how, mode, url, next_step):
    allow = () if mode.startswith("reverse") else ("--allow", "127.0.0.1")
    with intercepting(tmp_path, *allow, "--mode", mode, cold=(mode, how) == ("regular", signal.SIGTERM)) as mitm:
        assert mitm.url.startswith(url)
        line = mitm.says("recording the MCP traffic of 127.0.0.1")
        assert line.endswith(next_step.format(place=mitm.place))
        mitm.process.send_signal(how)
        assert mitm.process.wait(LIMIT) == 0
    assert mitm.said().count("\n") == 1
    assert mitm.captures() == []


@needs_mitmproxy
def test_it_goes_on_where_nobody_reads_its_address(tmp_path):
    """The address goes to stderr instead."""
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
    with intercepting(tmp_path, "--allow", "h") as mitm:
        pass
    folder = mitm.authority.parent
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "mitmproxy-ca.pem").stat().st_mode & 0o777 == 0o600
    made = mitm.authority.read_bytes()
    with intercepting(tmp_path, "--allow", "h"):
        assert mitm.authority.read_bytes() == made
    assert not (tmp_path / ".mitmproxy").exists()


@needs_mitmproxy
def test_several_that_make_the_authority_at_once_agree(tmp_path):
    """Otherwise each could leave half of its files: a certificate that does not belong to the key."""
    command = [prepare.python("mitm"), "-m", "mcpspy", "ca", "export"]
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    both = [limits.Popen(command, stdout=subprocess.PIPE, env=environ) for _ in range(3)]
    said = {each.communicate(timeout=LIMIT)[0] for each in both}
    folder = tmp_path / ".mcpspy" / "ca"
    assert len(said) == 1
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
        folder / "mitmproxy-ca-cert.pem", folder / "mitmproxy-ca.pem"
    )
    assert sorted(path.name for path in folder.iterdir()) == [
        "mitmproxy-ca-cert.pem",
        "mitmproxy-ca.pem",
        "mitmproxy-dhparam.pem",
    ]


@needs_mitmproxy
def test_an_authority_whose_certificate_is_missing_gets_it_back(tmp_path):
    """This is the state after a kill between writing the two files."""
    made = mcpspy(tmp_path, "ca", "export", python=prepare.python("mitm")).stdout
    (tmp_path / ".mcpspy" / "ca" / "mitmproxy-ca-cert.pem").unlink()
    assert mcpspy(tmp_path, "ca", "export", python=prepare.python("mitm")).stdout == made


@needs_mitmproxy
def test_an_authority_that_is_damaged_or_cannot_be_made_is_one_line(tmp_path):
    folder = tmp_path / ".mcpspy" / "ca"
    folder.mkdir(parents=True)
    for name in ("mitmproxy-ca.pem", "mitmproxy-ca-cert.pem"):
        (folder / name).write_text("nothing")
    for home, words in (
        (tmp_path, "it holds none in PEM form; move it away"),
        (folder / "mitmproxy-ca.pem", "cannot use the authority"),
    ):
        done = mitm(home, "--allow", "h")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1, done.stderr
        assert words in done.stderr


def test_only_three_modules_import_mitmproxy():
    root = pathlib.Path(__file__).parents[2] / "mcpspy"
    sources = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.py")}
    found = {name for name, text in sources.items() if "import mitmproxy" in text or "from mitmproxy" in text}
    assert found == {os.path.join("relay", "mitm", name) for name in ("addon.py", "layers.py", "master.py")}


@needs_mitmproxy
@pytest.mark.parametrize(
    ("words", "used"),
    [
        (("wrap", "--", "true"), "mcpspy.capture.writer"),
        (("show", "{capture}"), "mcpspy.timeline"),
        (("ls",), "mcpspy.cli"),
        (("mitm", "--help"), "mcpspy.cli"),
        (("proxy", "--help"), "mcpspy.cli"),
    ],
    ids=str,
)
def test_other_commands_do_not_import_mitmproxy_where_it_is_installed(tmp_path, words, used):
    """Issue 10."""
    capture = tmp_path / "capture.jsonl"
    mcpspy(tmp_path, "wrap", "-o", str(capture), "--", "true")
    argv = ["mcpspy", *(word.format(capture=capture) for word in words)]
    found = imported(tmp_path, f"import sys; sys.argv = {argv!r}; from mcpspy.cli import main; main()")
    assert used in found
    assert not {name for name in found if name.startswith("mitmproxy")}


@needs_mitmproxy
def test_the_tui_does_not_import_mitmproxy_where_it_is_installed(tmp_path):
    """Issue 10."""
    found = imported(tmp_path, "import mcpspy.cli.tui, mcpspy.tui.app")
    assert "textual.app" in found
    assert not {name for name in found if name.startswith("mitmproxy")}


def imported(home, script):
    """Return every module that a program imports in the environment that has mitmproxy."""
    done = subprocess.run(
        [prepare.python("mitm"), "-X", "importtime", "-c", script],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        stdin=subprocess.DEVNULL,
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


@needs_mitmproxy
def test_it_is_mitmproxy_that_is_missed_and_nothing_else(tmp_path):
    """If another module is missing, the message does not suggest installing anything."""
    script = "import sys; sys.modules['h2'] = None; sys.argv = ['mcpspy', 'mitm', '--allow', 'h']\n"
    command = [prepare.python("mitm"), "-c", script + "from mcpspy.cli import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert "h2" in done.stderr
    assert "pip install" not in done.stderr
