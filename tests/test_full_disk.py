"""A-21: a full disk, for every file that mcpspy writes: no draft or empty file stays, and the old file is intact."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from mcpspy.capture.live import LiveViewer
from mcpspy.capture.reader import Capture
from mcpspy.capture.user_key import user_key
from mcpspy.clients import routes
from mcpspy.clients.apply import load, replace, write_private
from mcpspy.clients.routes import Route
from mcpspy.errors import McpspyError
from mcpspy.exporters.single_message import save
from mcpspy.relay.mitm.authority import Authority, write_bundle
from mcpspy.replay.script import accept
from mcpspy.telemetry import followed
from tests import limits
from tests.importers.files import entry, har
from tests.relay.interception import certificate
from tests.relay.stdio.test_recording import small_disk
from tests.transcript import capture

__all__ = ["certificate"]  # a fixture

SESSION = "= 2025-06-18\n" + "\n".join(f"> {n} ping\n< {n} = {{}}" for n in range(10, 60))
OLD = '{"mcpServers":{"a":{"command":"node","args":["a.js"]},"b":{"url":"https://b.example/mcp"}}}\n'
GATE = {"name": "g", "action": "drop", "when": {}}
SERVER = """
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        answer = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        answer["instructions"] = str(os.getpid())
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer}), flush=True)
"""


class Place(NamedTuple):
    """The files of a test: `full` is a directory on the full disk, `beside` one on another disk."""

    full: Path
    beside: Path
    pem: str
    """A key with its certificate."""

    @property
    def capture(self):
        return str(self.beside / "session.jsonl")


def old(name, text=OLD):
    """Return a function that writes an old file to the disk while it has room."""

    def prepare(place):
        path = place.full / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return prepare


def in_braces(text):
    return text.replace("{", "{{").replace("}", "}}")


def with_settings(place):
    capture(place.full / "c.jsonl", "= 2025-06-18\n> 2 tools/list\n< 2 = {}")
    (place.full / "c.replay.toml").write_text("# mine\n")


def nothing(_):
    pass


def mcpspy(*words, stdin=""):
    """Return a function that runs a command, in which `{full}` and `{beside}` are the directories."""

    def act(place):
        command = [word.format(full=place.full, beside=place.beside, capture=place.capture) for word in words]
        done = limits.run(
            [sys.executable, "-m", "mcpspy", *command],
            cwd=place.full,
            env=dict(os.environ),
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if done.returncode or words[0] in ("mock", "wrap"):
            raise McpspyError(done.stderr)

    return act


def with_config(place):
    config = load(str(place.full / "mcp.json"))
    replace(config, config.raw * 20)


def with_gates(place):
    path = str(place.full / "live.jsonl")
    LiveViewer(path, Capture(path).header.id).set_gates([GATE])


def with_old_authority(place):
    authority = Authority(str(place.full))
    Path(authority.key).write_text(place.pem)
    for path in (authority.certificate, place.full / "mitmproxy-dhparam.pem"):
        Path(path).write_text("old")


def with_authority(place):
    authority = Authority(str(place.full))
    with TemporaryDirectory(dir=place.full) as draft:
        for name in ("mitmproxy-ca.pem", "mitmproxy-dhparam.pem"):
            os.link(authority.key, os.path.join(draft, name))
        try:
            authority.adopt(draft)
        except OSError as error:
            raise McpspyError(error.strerror) from error


def with_key(place):
    """Without a file, the key of this process is a temporary one, and there is no message."""
    if not (place.full / ".mcpspy" / "key").exists():
        user_key()
        raise McpspyError("No space left on device")


CASES = {
    "wrap": (nothing, mcpspy("wrap", "-o", "{full}/w.jsonl", "--", sys.executable, "-c", "")),
    "install": (old(".cursor/mcp.json"), mcpspy("install", "cursor", "--yes")),
    "a configuration": (old("mcp.json"), with_config),
    "routes": (old(".mcpspy/routes.json", "{}"), lambda _: routes.save({"a": Route("https://a", {"c": ("/",)})})),
    "what is remembered": (old("memory"), lambda place: write_private(str(place.full / "memory"), b"new")),
    "key": (nothing, with_key),
    "gates of a viewer": (lambda place: capture(place.full / "live.jsonl", SESSION), with_gates),
    "lock": (old("m.lock", '{"format":1,"servers":{}}'), mcpspy("lock", "{capture}", "-o", "m.lock", "--update")),
    "share": (old("p.html"), mcpspy("share", "{capture}", "-o", "p.html", "--force", "--yes")),
    "scrub": (old("s.jsonl"), mcpspy("scrub", "{capture}", "-o", "s.jsonl", "--force", "--yes")),
    "export": (old("e.har"), mcpspy("export", "{capture}", "--format", "mermaid", "-o", "e.har", "--force")),
    "export of tables": (nothing, mcpspy("export", "{capture}", "--format", "parquet", "-o", "{full}/lake")),
    "import": (nothing, mcpspy("import", "{beside}/a.har", "--capture-dir", "{full}/captures")),
    "one message": (nothing, lambda place: save([b"x" * 100], "message.json")),
    "sql": (old("q.csv"), mcpspy("sql", "SELECT * FROM messages", "{capture}", "-o", "q.csv", "--force")),
    "checkpoint": (
        old("otel.json", "{}"),
        lambda place: followed.save(str(place.full / "otel.json"), followed.Checkpoint(1, {(1, 2)}, set(), 3, 4)),
    ),
    "settings of replay": (
        with_settings,
        mcpspy("replay", "c.jsonl", "--learn", "2", "--update", "--", sys.executable, "-c", in_braces(SERVER)),
    ),
    "a replayed session": (
        lambda place: capture(place.full / "c.jsonl", "= 2025-06-18"),
        lambda place: accept(place.capture, str(place.full / "c.jsonl")),
    ),
    "authority": (with_old_authority, with_authority),
    "bundle": (nothing, lambda place: write_bundle(str(place.full / "bundle.pem"), [])),
    "mock --record-missing": (
        lambda place: capture(place.full / "c.jsonl", "= 2025-06-18"),
        mcpspy(
            "mock", "c.jsonl", "--record-missing", "--", sys.executable, "-c", in_braces(SERVER),
            stdin='{"jsonrpc":"2.0","id":1,"method":"x/y"}\n',
        ),
    ),
}  # fmt: skip


def certificate_text(paths):
    return "".join(Path(path).read_text() for path in reversed(paths))


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", CASES)
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, certificate, name):
    """A-21."""
    prepare, act = CASES[name]
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "a.har").write_bytes(har(entry(), entry()))
    capture(beside / "session.jsonl", SESSION)
    with small_disk(tmp_path / "disk", "size=256k") as disk:
        for variable, folder in (("HOME", disk), ("XDG_CACHE_HOME", disk / "cache"), ("MCPSPY_CAPTURE_DIR", disk)):
            monkeypatch.setenv(variable, str(folder))
        monkeypatch.chdir(disk)
        place = Place(disk, beside, certificate_text(certificate))
        prepare(place)
        with (disk / "ballast").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"b" * 4096)
        before = contents(disk)
        with pytest.raises(McpspyError) as error:
            act(place)
        assert str(error.value).count("No space left on device") == 1, str(error.value)
        assert contents(disk) == before
        monkeypatch.chdir(tmp_path)
