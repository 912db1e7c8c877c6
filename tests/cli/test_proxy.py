"""`mcpspy proxy`: accepted options, and one line for each mistake."""

import json
import signal
import socket
import subprocess
import sys

import pytest

from mcpspy.cli import main
from tests import ports
from tests.limits import LIMIT
from tests.peers import warm


def proxy(*arguments, cwd=".", env=None):
    return subprocess.CompletedProcess(arguments, *warm.finish("proxy", *arguments, cwd=cwd, environ=env))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "proxy needs the URL of a server: mcpspy proxy http://127.0.0.1:8000/mcp"),
        (("localhost:8000",), "is not a URL, such as"),
        (("http://u:p@h/",), "has a password"),
        (("--listen", "6278", "http://h/"), "--listen takes HOST:PORT"),
        (("--listen", "h:99999", "http://h/"), "--listen takes HOST:PORT"),
        (("--listen", "192.0.2.1:0", "http://h/"), "cannot listen on 192.0.2.1:0"),
        (("--route", "http://h/"), "--route takes NAME=URL"),
        (("--route", "a/b=http://h/"), "--route takes NAME=URL"),
        (("--route", "a=http://h/", "--route", "a=http://i/"), "two routes called 'a'"),
        (("-o", "x", "--route", "a=http://h/", "--route", "b=http://i/"), "-o names one file"),
        (("-o", "x", "--capture-dir", "y", "http://h/"), "give one of them"),
        (("--ca", "/no/such/file", "https://h/"), "cannot read certificates from /no/such/file"),
        (("--from", "cursr"), "did you mean 'cursor'?"),
        (("--from", "cursor"), "Cursor has no routes; 'mcpspy install cursor' makes them"),
        (("http://h/", "http://u:p@h/"), "unexpected argument http://«withheld»@h/; see"),
        (("--no-such", "http://h/"), "--no-such"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, arguments, sentence):
    done = proxy(*arguments, cwd=tmp_path, env={"HOME": str(tmp_path), "PATH": "/usr/bin"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert sentence in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("http://me:hunter2@h/",),
        ("me:hunter2@h",),
        ("http://me:hunter2@[zz/",),
        ("--route", "http://me:hunter2@h/"),
        ("--route", "a=http://me:hunter2@h/"),
        ("http://h/", "http://me:hunter2@h/"),
        ("--listen", "127.0.0.1:0", "--ca", "/no/such", "https://me:hunter2@h/"),
        ("http://h:x/?api_key=hunter2",),
    ],
)
def test_a_password_is_not_repeated(tmp_path, arguments):
    done = proxy(*arguments, cwd=tmp_path, env={"HOME": str(tmp_path), "PATH": "/usr/bin"})
    assert done.returncode == 2
    assert "«withheld»" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_not_evaded(tmp_path):
    """Issue 7: the proxy names the holder of the port and stops."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = proxy("--listen", f"127.0.0.1:{port}", "--capture-dir", str(tmp_path), "http://127.0.0.1:1/")
    assert done.returncode == 2
    assert f"127.0.0.1:{port} is in use by " in done.stderr
    assert "--listen" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("listen", ["127.0.0.1", "localhost", "0.0.0.0"])  # noqa: S104
@pytest.mark.parametrize("upstream", ["localhost", "127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]"])  # noqa: S104
def test_it_does_not_relay_to_itself(tmp_path, listen, upstream):
    """Issue 7: whatever name its address has."""
    if socket.getaddrinfo("localhost", 1)[0][0] != socket.AF_INET:
        pytest.skip("localhost is an IPv6 address first here")
    port = ports.free()
    done = proxy("--listen", f"{listen}:{port}", "--capture-dir", str(tmp_path), f"http://{upstream}:{port}/mcp")
    assert done.returncode == 2
    assert "is this proxy itself" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_it_does_not_relay_to_itself_by_the_name_of_the_machine(tmp_path):
    name = socket.gethostname()
    try:
        own = socket.gethostbyname(name)
    except OSError:
        pytest.skip("the machine's name has no address")
    port = ports.free(own)
    done = proxy("--listen", f"0.0.0.0:{port}", "--capture-dir", str(tmp_path), f"http://{name}:{port}/mcp")
    assert done.returncode == 2
    assert "is this proxy itself" in done.stderr


@pytest.mark.parametrize(
    ("listen", "warned", "url", "how"),
    [
        ("127.0.0.1:0", False, "127.0.0.1", signal.SIGINT),
        ("0.0.0.0:0", True, "127.0.0.1", signal.SIGTERM),
        ("[::1]:0", False, "[::1]", signal.SIGTERM),
    ],
)
def test_it_prints_the_url_for_the_client_and_ends_with_a_signal(tmp_path, listen, warned, url, how):
    """It warns if other machines can reach it (H-02)."""
    words = ("proxy", "--listen", listen, "--capture-dir", tmp_path, "http://127.0.0.1:1/a/mcp?b=%7e")
    with warm.start(*words) as process:
        line = process.stdout.readline()
        process.send_signal(how)
        out, err = process.communicate()
    assert line.startswith(f"http://{url}:")
    assert line.endswith("/a/mcp?b=%7e\n")
    assert (process.returncode, out) == (0, "")
    assert ("anyone who can reach this machine" in err) is warned
    (capture,) = tmp_path.iterdir()
    assert "-127.0.0.1-1-" in capture.name
    assert '"kind":"end"' in capture.read_text()


def test_a_route_that_leads_nowhere_or_that_nobody_names_is_left_out(tmp_path):
    """An invalid route does not stop the others, and its password is not shown."""
    home = {"HOME": str(tmp_path), "PATH": "/usr/bin"}
    config = tmp_path / "mcp.json"
    origins = {
        "bad": "https://me:hunter2@h",
        "worse": "https://h:99999",
        "gone": "https://gone",
        "good": "https://good",
    }
    config.write_text(" ".join(f"http://127.0.0.1:6278/{name}/mcp" for name in origins if name != "gone"))
    routes = {name: {"origin": origin, "paths": {"cursor": [str(config)]}} for name, origin in origins.items()}
    (tmp_path / ".mcpspy").mkdir()
    (tmp_path / ".mcpspy" / "routes.json").write_text(json.dumps(routes))
    with warm.start("proxy", "--from", "cursor", "--listen", "127.0.0.1:0", environ=home) as relay:
        line = relay.stdout.readline()
        relay.send_signal(signal.SIGTERM)
        out, err = relay.communicate()
    assert line.endswith("/good/\n")
    assert out == ""
    *left_out, elsewhere = err.splitlines()
    assert [line.split("'")[1] for line in left_out] == ["bad", "worse"]
    assert elsewhere == f"mcpspy: {config} names another port: run this command in its project to change it"
    assert "hunter2" not in err


def test_the_routes_that_install_made_are_served(tmp_path):
    """CF-03, CF-11: the client's file has the port of --listen; its URL reaches the server that it named before."""
    home = {"HOME": str(tmp_path), "PATH": "/usr/bin"}
    config = tmp_path / ".cursor" / "mcp.json"
    config.parent.mkdir()
    port = ports.free()
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        upstream.settimeout(LIMIT)
        before = f'{{"mcpServers": {{"remote": {{"url": "http://127.0.0.1:{upstream.getsockname()[1]}/mcp?a=b"}}}}}}'
        config.write_text(before)
        assert warm.finish("install", "cursor", "remote", "--yes", environ=home)[0] == 0
        assert '"http://127.0.0.1:6278/remote/mcp?a=b"' in config.read_text()
        with warm.start("proxy", "--from", "cursor", "--listen", f"127.0.0.1:{port}", environ=home) as relay:
            try:
                assert relay.stdout.readline() == f"http://127.0.0.1:{port}/remote/\n"
                assert f'"http://127.0.0.1:{port}/remote/mcp?a=b"' in config.read_text()
                with socket.create_connection(("127.0.0.1", port), LIMIT) as client:
                    client.sendall(f"GET /remote/mcp?a=b HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
                    there, _ = upstream.accept()
                    with there:
                        there.settimeout(LIMIT)
                        assert there.recv(100).startswith(b"GET /mcp?a=b HTTP/1.1\r\n")
            finally:
                relay.send_signal(signal.SIGTERM)
                moved, restart = relay.communicate()[1].splitlines()
    new, old = f"http://127.0.0.1:{port}/remote", "http://127.0.0.1:6278/remote"
    assert moved == f"mcpspy: {config}: remote now leads to {new}, before {old}"
    assert restart == "mcpspy: now restart the server in Cursor (Settings, MCP)"
    assert warm.finish("uninstall", "cursor", environ=home)[0] == 0
    assert config.read_text() == before


def test_a_clients_file_is_not_led_to_an_address_where_nobody_listens(tmp_path):
    """CF-11: only the port in the file is ever changed."""
    (tmp_path / ".mcpspy").mkdir()
    config = tmp_path / ".cursor" / "mcp.json"
    config.parent.mkdir()
    config.write_text(before := '{"mcpServers": {"r": {"url": "http://127.0.0.1:6278/r/mcp"}}}')
    routes = {"r": {"origin": "https://remote.example", "paths": {"cursor": [str(config)]}}}
    (tmp_path / ".mcpspy" / "routes.json").write_text(json.dumps(routes))
    home = {"HOME": str(tmp_path), "PATH": "/usr/bin"}
    done = proxy("--from", "cursor", "--listen", "127.0.0.2:0", cwd=tmp_path, env=home)
    assert (done.returncode, done.stdout) == (2, "")
    assert "point to 127.0.0.1: with --from use --listen 127.0.0.1:" in done.stderr
    assert config.read_text() == before


def test_one_proxy_serves_several_clients_and_doctor_sees_whom(tmp_path, monkeypatch, capsys):
    """One of them reads a file whose routes were made for another client."""
    for path, name in ((".cursor/mcp.json", "a"), ("work/.mcp.json", "b")):
        config = tmp_path / path
        config.parent.mkdir()
        config.write_text(f'{{"mcpServers": {{"{name}": {{"type": "http", "url": "http://localhost:1/mcp"}}}}}}')
    for name in ("MCPSPY_CAPTURE_DIR", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "work")
    for client in ("cursor", "claude-code"):
        monkeypatch.setattr(sys, "argv", ["mcpspy", "install", client, "--yes"])
        assert main() == 0
    for clients, served in ((["cursor"], "a"), (["vscode"], "b"), (["cursor", "vscode"], "ab")):
        words = [word for client in clients for word in ("--from", client)]
        with warm.start("proxy", "--listen", "127.0.0.1:0", *words) as relay:
            for _ in served:
                assert relay.stdout.readline()
            for server in "ab":
                monkeypatch.setattr(sys, "argv", ["mcpspy", "doctor", server])
                capsys.readouterr()
                assert main() == (server not in served)
                out = capsys.readouterr().out
                assert (f"serves the route '{server}'" in out) == (server in served), out
            relay.send_signal(signal.SIGTERM)
