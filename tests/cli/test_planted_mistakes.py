"""`doctor` and planted mistakes: no problem before, the problem and its advice with the mistake, none when mended.

Each row has a client, a right entry, what is wrong in it, and what `doctor` says. The advice is carried out as it is
printed, by `follow`: members that it says to write are written, and the commands of mcpspy that it names are run. Where
the advice cannot be known in full (the value of a key), the row says what a person does.
"""

import json
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from mcpspy.clients.places import Machine, candidates
from mcpspy.clients.table import BY_ID, USER
from tests.each import each

SERVER = """#!/bin/sh
read line
printf '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}\\n'
read line
printf '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":'
printf '{"name":"planted","version":"1"}}}\\n'
while read line; do :; done
"""
CONTAINER = '#!/bin/sh\ncase " $* " in *" -i "*) ;; *) exit 1 ;; esac\n' + SERVER.removeprefix("#!/bin/sh\n")
NODE = '#!/bin/sh\n[ "$1" = --version ] && { echo v22.1.0; exit; }\n' + SERVER.removeprefix("#!/bin/sh\n")
BY_NODE = "#!/usr/bin/env node\n// a script\n"
FOLDER = "HOME/work"  # in which the tests run
MANAGER = '#!/bin/sh\ncase $1 in which) echo "HOME/real/$2" ;; exec) shift; exec "HOME/real/$@" ;; esac\n'
ASDF_SHIM = '#!/bin/sh\nexec asdf exec "notes" "$@"\n'
PYENV_SHIM = '#!/bin/sh\nexec "HOME/.pyenv/bin/pyenv" exec "${0##*/}" "$@"\n'
FILES = {
    "desktop/bin/server": SERVER,
    "desktop/bin/docker": CONTAINER,
    "desktop/bin/podman": CONTAINER,
    "desktop/bin/npx": SERVER,
    "desktop/bin/node": NODE,
    "desktop/bin/systemctl": "#!/bin/sh\necho 'LANG=C'\necho 'PATH=HOME/desktop/bin:/usr/bin:/bin'\n",
    ".nvm/versions/node/v22.1.0/bin/nvmnode": NODE,
    ".nvm/versions/node/v22.1.0/bin/tool": BY_NODE.replace("node", "nvmnode"),
    ".nvm/versions/node/v9.0.0/bin/tool": "#!/bin/sh\nexit 9\n",
    ".pyenv/shims/python3.99": PYENV_SHIM,
    ".pyenv/bin/pyenv": MANAGER,
    ".asdf/shims/notes": ASDF_SHIM,
    "shell/bin/asdf": MANAGER,
    ".volta/bin/volted": SERVER,
    "real/python3.99": SERVER,
    "real/notes": SERVER,
    "venv/bin/in-venv": SERVER,
    "work/server.sh": SERVER,
    "crlf": SERVER.replace("#!/bin/sh", "#!/bin/sh\r"),
}
SHELL = "shell/bin", ".nvm/versions/node/v22.1.0/bin", ".pyenv/shims", ".asdf/shims", ".volta/bin", "venv/bin"
"""What is on the PATH of the shell besides the desktop's."""


@pytest.fixture
def home(home, monkeypatch):
    """A home with programs; those of `desktop` are on the PATH of the desktop, the rest only on that of the shell."""
    for name, text in FILES.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("HOME", str(home)))
        path.chmod(0o755)
    folders = [*(str(home / folder) for folder in SHELL), str(home / "desktop/bin"), "/usr/bin", "/bin"]
    monkeypatch.setenv("PATH", ":".join(folders))
    monkeypatch.setenv("VIRTUAL_ENV", str(home / "venv"))
    monkeypatch.setenv("KEY", "k3y-v4lue")
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
    return home


def written(client, entry):
    """Return a configuration of a client with one server called `s`."""
    if client == "codex":
        lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items() if not isinstance(value, dict)]
        tables = [(key, value) for key, value in entry.items() if isinstance(value, dict)]
        for key, value in tables:
            lines += [f"[mcp_servers.s.{key}]", *(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items())]
        return "\n".join(["[mcp_servers.s]", *lines, ""])
    if client == "continue":
        return (
            "mcpServers:\n  - "
            + "\n    ".join(f"{k}: {json.dumps(v)}" for k, v in {"name": "s", **entry}.items())
            + "\n"
        )
    root = BY_ID[client].places[0].root[0]
    return json.dumps({root: {"s": entry}}, indent=2)


class Peer(BaseHTTPRequestHandler):
    """Servers over HTTP: each path is another one. `seen` has every request."""

    seen: ClassVar = []

    def do_GET(self):
        self.seen.append((self.command, self.path))
        if self.path == "/sse":
            self.reply(200, "text/event-stream", b"event: endpoint\ndata: /messages\n\n")
        else:
            self.reply(405 if self.path == "/mcp" else 404, "text/plain", b"")

    def do_POST(self):
        self.seen.append((self.command, self.path))
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        login = self.headers["Authorization"] or ""
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "web", "version": "1"}}
        answer = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
        if self.path == "/sse":
            self.reply(405, "text/plain", b"")
        elif self.path == "/old":
            self.reply(301, "text/plain", b"", Location="/mcp")
        elif self.path == "/page":
            self.reply(200, "text/html", b"<html><title>Welcome</title></html>")
        elif self.path == "/gateway":
            self.reply(502, "text/html", b"<title>Bad Gateway</title>" + login.encode())
        elif self.path == "/login" and login != "Bearer k3y-v4lue":
            self.reply(401, "application/json", json.dumps({"refused": login}).encode())
        elif self.path in ("/mcp", "/login"):
            self.reply(200, "application/json", answer)
        else:
            self.reply(404, "text/plain", b"")

    def reply(self, status, kind, body, **headers):
        self.send_response(status)
        for name, value in ({"Content-Type": kind, "Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def web():
    Peer.seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Peer) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def follow(advice, entry, doctor):
    """Do what an advice says; return the entry after that."""
    entry = json.loads(json.dumps(entry))
    if command := re.search(r"mcpspy (uninstall \S+ \S+)", advice):
        assert doctor.mcpspy(*command[1].split())[0] == 0
        return None
    if renamed := re.fullmatch(r"rename its (\w+) to (\w+)", advice):
        return {renamed[2] if key == renamed[1] else key: value for key, value in entry.items()}
    decoder = json.JSONDecoder()
    found = False
    for member in re.finditer(r'"(\w+)": (?=["\[])', advice):
        value, end = decoder.raw_decode(advice, member.end())
        into = re.match(r' into its "(\w+)"', advice[end:])
        (entry.setdefault(into[1], {}) if into else entry)[member[1]] = value
        found = True
    if "mcp-remote" in advice:
        entry.pop("url")
    assert found, f"nothing to do in: {advice}"
    return entry


def in_text(old):
    """Return a way to follow an advice that gives another text for `old`."""

    def mend(advice, entry, doctor):
        new = re.search(r"write (?:that URL: )?(.+)", advice)[1]
        text = json.dumps(entry)
        new = new if new.startswith('"') else json.dumps(new)
        exact = json.dumps(doctor.filled(old))
        return json.loads(text.replace(exact, new) if exact in text else text.replace(old, new.strip('"')))

    return mend


def by_hand(**members):
    """Return a way to mend by a person: these members replace those of the entry; None removes one."""

    def mend(_, entry, __):
        return {key: value for key, value in (entry | members).items() if value is not None}

    return mend


STDIO = {"command": "server"}
WEB = {"url": "WEB/mcp"}
ROWS = [
    ("claude-desktop", STDIO, {"command": "tool"}, "tool is not on the PATH with which Claude Desktop starts", follow),
    (
        "claude-desktop", STDIO, {"command": "HOME/.nvm/versions/node/v22.1.0/bin/tool"},
        "begins with '#!/usr/bin/env nvmnode', but nvmnode is not on the PATH", follow,
    ),
    ("claude-desktop", STDIO, {"command": "python3.99"}, "python3.99 is not on the PATH with which", follow),
    ("claude-desktop", STDIO, {"command": "notes"}, "notes is not on the PATH with which Claude Desktop", follow),
    ("claude-desktop", STDIO, {"command": "volted"}, "volted is not on the PATH with which Claude Desktop", follow),
    ("cursor", STDIO, {"command": "in-venv"}, "in-venv is not on the PATH with which Cursor starts", follow),
    ("zed", STDIO, {"command": "in-venv", "args": []}, "in-venv is not on the PATH with which Zed starts", follow),
    (
        "cursor", {"command": "docker", "args": ["run", "-i", "--rm", "img"]}, {"args": ["run", "--rm", "img"]},
        "docker run without -i closes the stdin of the container", follow,
    ),
    (
        "vscode", {"command": "docker", "args": ["run", "-i", "img"]}, {"args": ["run", "-e", "-t", "-it", "im", "-d"]},
        "docker run -t needs a terminal", follow,
    ),
    (
        "codex", {"command": "podman", "args": ["run", "-i", "img"]}, {"args": ["run", "--detach", "-i", "img"]},
        "podman run -d leaves the container at once", follow,
    ),
    (
        "claude-desktop", STDIO, {"env": {"API_KEY": "${KEY}"}}, "API_KEY: Claude Desktop does not replace ${KEY}",
        by_hand(env={"API_KEY": "the value"}),
    ),
    ("cursor", STDIO, {"env": {"API_KEY": "${KEY}"}}, "Cursor does not replace ${KEY}, so", in_text("${KEY}")),
    ("claude-code", STDIO, {"args": ["--key=${env:KEY}"]}, "does not replace ${env:KEY}", in_text("${env:KEY}")),
    (
        "opencode", {"type": "local", "command": ["server"]}, {"environment": {"A": "${KEY}"}},
        "A: OpenCode does not replace ${KEY}", in_text("${KEY}"),
    ),
    ("gemini-cli", STDIO, {"env": {"API_KEY": "YOUR_API_KEY"}}, "API_KEY is the placeholder YOUR_API_KEY",
     by_hand(env={"API_KEY": "mine"})),
    ("cline", STDIO, {"args": ["--token", "<token>"]}, "--token is the placeholder <token>",
     by_hand(args=["--token", "mine"])),
    ("vscode", STDIO, {"args": ["${workspaceFolder}/x"]}, "VS Code does not replace ${workspaceFolder} in this file",
     by_hand(args=["/x"])),
    ("vscode", {"command": "node", "dev": {"debug": {"type": "node"}}}, {"command": "npx"},
     "starts the debugger of dev.debug only if node is the command, not npx", by_hand(dev=None)),
    ("vscode", {"command": "node", "dev": {"debug": {"type": "node"}}},
     {"command": "mcpspy", "args": ["wrap", "--name", "s", "--", "node"]},
     "only if node is the command, which is mcpspy now", follow),
    ("claude-code", STDIO, {"env": {"PORT": 8080}}, "PORT is not a string, and Claude Code starts no server", follow),
    ("cursor", STDIO, {"args": ["-y pkg"]}, 'argument 1 is "-y pkg", one word with a blank',
     by_hand(args=["-y", "pkg"])),
    ("windsurf", STDIO, {"args": ["'/a b'"]}, "argument 1 has quotes of a shell: '/a b'", in_text("'/a b'")),
    ("cursor", {"command": "sh", "args": [f"{FOLDER}/server.sh"]}, {"args": ["server.sh"]},
     f"argument 1, server.sh, is a file in {FOLDER}, but the server is started in /", in_text("server.sh")),
    ("qwen", STDIO, {"command": "HOME/crlf"}, "begins with '#!/bin/sh' and a carriage return",
     by_hand(command="server")),
    ("claude-code", WEB | {"type": "http"}, {"type": None}, "skips an entry that has a URL and no type", follow),
    ("copilot", WEB | {"type": "http"}, {"type": "streamable"}, "its type is 'streamable', and", follow),
    ("claude-desktop", STDIO, {"command": None, "url": "WEB/mcp"}, "starts only stdio servers from this", follow),
    ("qwen", {"httpUrl": "WEB/mcp"}, {"httpUrl": None, "url": "WEB/mcp"}, "it has no event stream here (HTTP", follow),
    ("cline", WEB | {"type": "streamableHttp"}, {"type": None}, "it has no event stream here (HTTP", follow),
    ("claude-code", {"url": "WEB/sse", "type": "sse"}, {"type": "http"}, "it accepts no POST (HTTP 405", follow),
    ("cursor", {"url": "WEB/login", "headers": {"Authorization": "Bearer k3y-v4lue"}},
     {"headers": {"Authorization": "Bearer ${KEY}"}}, "does not replace ${KEY}", in_text("${KEY}")),
    ("zed", {"url": "WEB/login", "headers": {"Authorization": "Bearer k3y-v4lue"}},
     {"headers": {"Authorization": "Bearer 0therv4lue"}}, "it does not accept the header Authorization (HTTP 401",
     by_hand(headers={"Authorization": "Bearer k3y-v4lue"})),
    ("cursor", {"url": "WEB/login", "headers": {"Authorization": "Bearer k3y-v4lue"}}, {"headers": None},
     "it requires credentials, and names no place", by_hand(headers={"Authorization": "Bearer k3y-v4lue"})),
    ("cursor", {"url": "WEB/login", "headers": {"Authorization": "Bearer k3y-v4lue"}},
     {"headers": {"Authorization": "Bearer Bearer k3y-v4lue"}}, "the header Authorization has Bearer twice",
     by_hand(headers={"Authorization": "Bearer k3y-v4lue"})),
    ("vscode", WEB, {"url": "WEB/old"}, "it redirects to WEB/mcp (HTTP 301", in_text("WEB/old")),
    ("codex", WEB, {"url": "WEB/page"}, "it answered with a web page: Welcome", by_hand(url="WEB/mcp")),
    ("codex", WEB, {"url": "WEB/gone"}, "there is nothing at this path (HTTP 404", by_hand(url="WEB/mcp")),
    ("zed", WEB, {"url": "http://127.0.0.1:CLOSED/mcp"}, "nothing listens on 127.0.0.1:CLOSED", by_hand(url="WEB/mcp")),
    ("cursor", WEB, {"url": "WEB /mcp"}, "its URL is not valid: WEB /mcp", by_hand(url="WEB/mcp")),
]  # fmt: skip


@pytest.fixture
def doctor(home, web, mcpspy):
    """Write the configuration of a client, run `doctor`, and return its output and its advice for each problem."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = str(closed.getsockname()[1])
    names = {"HOME": str(home), "WEB": web, "CLOSED": port}

    def filled(text):
        return re.sub("HOME|WEB|CLOSED", lambda match: names[match[0]], text)

    def doctor(client, entry):
        machine = Machine(str(home), "linux", {}, str(home / "work"))
        place = next(place for place in BY_ID[client].places if place.scope == USER)
        path = home / candidates(place, machine)[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry is not None:
            path.write_text(filled(entry if isinstance(entry, str) else written(client, entry)))
        status, out, err = mcpspy("doctor", client)
        assert err == ""
        assert status == ("  problem  " in out), out
        return out, re.findall(r"problem {2}(.*)\n(?: {13,}(?!fix:).*\n)* {13}fix: (.*)", out)

    doctor.filled, doctor.mcpspy = filled, mcpspy
    return doctor


@each("client, right, wrong, problem, mend", ROWS)
def test_a_planted_mistake_is_found_and_its_advice_mends_it(doctor, client, right, wrong, problem, mend):
    """U-03, V-03."""
    plant = {key: value for key, value in (right | wrong).items() if value is not None}
    plant, right = (json.loads(doctor.filled(json.dumps(it))) for it in (plant, right))
    before, _ = doctor(client, right)
    assert "no problems found" in before
    out, problems = doctor(client, plant)
    fixes = [fix for text, fix in problems if doctor.filled(problem) in text]
    assert fixes, out
    after, _ = doctor(client, mend(fixes[0], plant, doctor))
    assert "no problems found" in after
    assert "k3y-v4lue" not in before + out + after
    assert "0therv4lue" not in out
