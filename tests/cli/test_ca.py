"""`mcpspy ca` prints exactly what a client needs to trust `mitm`."""

import os
import shlex
import subprocess
import sys

import pytest

from mcpspy.cli.mitm import quote_for_powershell
from tests.cli.test_mitm import with_mitmproxy
from tests.limits import LIMIT
from tests.peers import warm
from tests.relay.interception import certificate, needs_mitmproxy
from tests.relay.mitm.test_authority import made

__all__ = ["certificate"]  # a fixture


def mcpspy(home, *words, **variables):
    """Run a command with a separate home."""
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]} | variables
    return subprocess.CompletedProcess(words, *warm.finish(*words, environ=environ))


@pytest.fixture
def home(tmp_path, certificate):
    """A home with a certificate authority."""
    made(tmp_path / ".mcpspy" / "ca", certificate)
    return tmp_path


def test_the_certificate_goes_to_stdout_or_into_a_file(home, certificate):
    with open(certificate[0]) as file:
        expected = file.read()
    assert mcpspy(home, "ca", "export").stdout == expected
    done = mcpspy(home, "ca", "export", str(home / "out.pem"))
    assert (done.returncode, done.stdout, (home / "out.pem").read_text()) == (0, "", expected)
    assert "PRIVATE" not in expected
    done = mcpspy(home, "ca", "export", str(home / "no" / "such"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_a_shell_can_take_the_environment(home):
    """M-05: for Python, Node and curl."""
    said = mcpspy(home, "ca", "env")
    printed = said.stdout
    assert all(line.startswith("export ") for line in printed.splitlines()), "a zsh at a terminal takes no comments"
    shell = f"eval {shlex.quote(printed)}; env"
    clean = {"PATH": os.environ["PATH"]}
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True, timeout=LIMIT, env=clean)
    assert os.path.dirname(bundle(done.stdout)) == str(home / ".mcpspy" / "ca")
    assert "Electron" in said.stderr


def bundle(environment):
    """Return the one file that all variables name. It exists."""
    environ = dict(line.split("=", 1) for line in environment.splitlines() if "=" in line)
    names = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
    (path,) = {environ[name] for name in names}
    assert os.path.exists(path)
    return path


@pytest.mark.needs("fish")
def test_fish_can_take_the_environment(tmp_path, certificate):
    """docs/recipes/tls.md, with a path that has to be quoted."""
    home = tmp_path / "it's a home"
    home.mkdir()
    made(home / ".mcpspy" / "ca", certificate)
    script = f"{shlex.join([sys.executable, '-m', 'mcpspy', 'ca', 'env'])} 2>/dev/null | source; env"
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
    command = ["fish", "--no-config", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT, env=environ)
    assert os.path.dirname(bundle(done.stdout)) == str(home / ".mcpspy" / "ca")


@pytest.mark.parametrize("command", ["export", "env", "status"])
@pytest.mark.parametrize("damage", [b"garbage\n", b"\xff\xfe\0"])
def test_an_authority_that_is_damaged_is_one_line(home, command, damage):
    (home / ".mcpspy" / "ca" / "mitmproxy-ca-cert.pem").write_bytes(damage)
    done = mcpspy(home, "ca", command)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "cannot be used" in done.stderr


def test_its_status_names_the_variables_of_this_shell(home):
    trusted = str(home / ".mcpspy" / "ca" / "mitmproxy-ca-cert.pem")
    done = mcpspy(home, "ca", "status", SSL_CERT_FILE="/no/such", CURL_CA_BUNDLE=trusted)
    assert "this shell   has CURL_CA_BUNDLE\n" in done.stdout


def test_its_status_tells_where_until_when_and_who_trusts_it(home, monkeypatch):
    done = mcpspy(home, "ca", "status")
    assert done.returncode == 0
    assert str(home / ".mcpspy" / "ca" / "mitmproxy-ca-cert.pem") in done.stdout
    assert "valid until" in done.stdout
    assert "does not trust it" in done.stdout


def test_a_key_that_others_can_read_is_a_problem(home):
    os.chmod(home / ".mcpspy" / "ca" / "mitmproxy-ca.pem", 0o644)
    done = mcpspy(home, "ca", "status")
    assert done.returncode == 1
    assert "others can reach" in done.stdout
    assert "chmod go=" in done.stdout


def test_before_there_is_one_the_status_says_what_makes_it(tmp_path):
    done = mcpspy(tmp_path, "ca", "status")
    assert done.returncode == 1
    assert "'mcpspy mitm' or 'mcpspy ca export' creates it" in done.stdout
    assert list(tmp_path.iterdir()) == []


@needs_mitmproxy
def test_asking_for_it_makes_it(tmp_path):
    done = with_mitmproxy(tmp_path, "ca", "export")
    assert done.stdout.startswith("-----BEGIN CERTIFICATE-----")
    assert mcpspy(tmp_path, "ca", "export").stdout == done.stdout
    assert mcpspy(tmp_path, "ca", "status").returncode == 0


def test_a_path_with_a_quote_can_be_taken_by_powershell():
    assert quote_for_powershell(r"C:\Users\O'Brien") == r"'C:\Users\O''Brien'"


def test_a_word_that_is_no_command_is_one_line(tmp_path):
    done = mcpspy(tmp_path, "ca", "exprt")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
