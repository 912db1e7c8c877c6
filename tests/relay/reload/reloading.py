"""A server that is edited while a client talks to it through `mcpspy wrap --reload`, and that client."""

import json
import sys
from pathlib import Path

from tests.relay.harness import LIMIT, Wrapped, end_group, until

SERVER = """\
import json, os, subprocess, sys
VERSION = 1
CAPABILITIES = {"tools": {"listChanged": True}, "logging": {}, "resources": {"subscribe": True}}
REFUSES = False
seen = []

def say(**message):
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)

for line in sys.stdin:
    seen.append(line.rstrip("\\n"))
    message = json.loads(line)
    method, params, id = message.get("method"), message.get("params") or {}, message.get("id")
    if "id" not in message or method is None:
        continue
    meta, about = params.get("_meta", {}), {"capabilities": CAPABILITIES}
    if method == "initialize" and REFUSES and VERSION > 1:
        say(id=id, error={"code": -32603, "message": "not today"})
    elif method == "initialize":
        info = {"name": "edited", "version": str(VERSION)}
        say(id=id, result=about | {"protocolVersion": params["protocolVersion"], "serverInfo": info})
    elif method == "server/discover":
        complete = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        say(id=id, result=about | complete | {"supportedVersions": ["2026-07-28"]})
    elif method == "subscriptions/listen":
        meta = {"io.modelcontextprotocol/subscriptionId": id}
        say(method="notifications/subscriptions/acknowledged", params=params | {"_meta": meta})
    elif method == "tools/list":
        tool = {"inputSchema": {"type": "object"}}
        say(id=id, result={"tools": [tool | {"name": name} for name in ("version", "hang")]})
    elif method == "tools/call":
        name = params["name"]
        if name == "hang":
            say(method="notifications/message", params={"level": "info", "data": "hanging"})
            continue
        if name == "crash":
            sys.exit("out of memory")
        if name == "ask":
            say(id=1, method="ping")
        if name == "wrong":
            say(id=id, result={"content": 5})
            continue
        if name == "child":
            ignores = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
            child = subprocess.Popen([sys.executable, "-c", ignores])
        text = {"seen": json.dumps(seen), "pid": str(os.getpid())}
        text["child"] = name == "child" and str(child.pid)
        say(id=id, result={"content": [{"type": "text", "text": text.get(name) or f"version {VERSION}"}]})
    else:
        say(id=id, result={})
"""
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {"listChanged": True}},
    "clientInfo": {"name": "test", "version": "1"},
}


class Reloading:
    """A client of `wrap --reload` with a server in one file, which `edit` changes; it ends with its `with` block."""

    def __init__(self, folder: Path, *options: str, source: str = SERVER, program: tuple[str, ...] = ("-m", "mcpspy")):
        self.file = folder / "server.py"
        self.file.write_text(source)
        self.path = folder.parent / f"{folder.name}.jsonl"
        command = (sys.executable, "-I", "-S", str(self.file))
        where = options if "--reload" in options else ("--reload", str(self.file), *options)
        options = ("-o", str(self.path), *where)
        self.wrap = Wrapped(self.path, command, options, program=program, start_new_session=True, cwd=folder)
        self.ids = 0
        self.came: list[dict] = []
        """All messages that the client received."""
        self.told: list[str] = []
        """The lines of stderr."""

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.wrap.returncode is None:
            end_group(self.wrap)
        for stream in (self.wrap.stdin, self.wrap.stdout, self.wrap.stderr):
            stream.close()

    def send(self, **message) -> None:
        self.wrap.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")

    def request(self, method: str, /, **params) -> int:
        """Send a request; return its id."""
        self.ids += 1
        self.send(id=self.ids, method=method, **({"params": params} if params else {}))
        return self.ids

    def await_message(self, **wanted) -> dict:
        """Wait for the next message to the client with these members, and return it."""
        while True:
            line = self.wrap.readline()
            assert line, f"the server's stream has ended; stderr: {self.wrap.stderr.read()}"
            self.came.append(json.loads(line))
            if all(self.came[-1].get(name) == value for name, value in wanted.items()):
                return self.came[-1]

    def ask(self, method: str, /, **params) -> dict:
        """Send a request, and return the response."""
        return self.await_message(id=self.request(method, **params))

    def call(self, name: str) -> str:
        """Call a tool, and return the text of its result, or the message of its error."""
        return text(self.ask("tools/call", name=name))

    def initialize(self) -> None:
        self.hear("watching")
        self.ask("initialize", **INITIALIZE)
        self.send(method="notifications/initialized")

    def hear(self, words: str) -> str:
        """Wait for the next line of stderr with these words, and return it."""
        while True:
            line = self.wrap.stderr.readline().decode()
            assert line, f"stderr has ended: {self.told}"
            self.told.append(line)
            if words in line:
                return line

    def edit(self, old: str, new: str) -> None:
        """Replace a text in the file of the server."""
        source = self.file.read_text()
        assert old in source
        self.file.write_text(source.replace(old, new))

    def reload(self, old: str = "VERSION = ", new: str = "VERSION = 1") -> None:
        """Edit the server, and wait until it runs again; without arguments, only its version changes."""
        self.edit(old, new)
        self.hear("ready")

    def finish(self) -> int:
        """Close the client's end of stdin, and return the exit status."""
        self.wrap.stdin.close()
        return self.wrap.wait(LIMIT)


def text(response: dict) -> str:
    if "error" in response:
        return response["error"]["message"]
    return response["result"]["content"][0]["text"]


def gone(pid: int) -> None:
    """Wait until a process has ended."""
    until(lambda: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text(), f"end of {pid}")
