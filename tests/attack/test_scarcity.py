"""A full disk, and few file descriptors: traffic passes, or one message says what is missing; nothing half-written."""

import asyncio
import json
import os
import sys

import pytest

from tests import limits
from tests.attack.test_patches import HAR
from tests.limits import LIMIT
from tests.peers.serving import each
from tests.relay.http.test_forward import GET, LAST, OK
from tests.relay.http.test_hostile import lives_on
from tests.relay.stage import Peer, scripted, stage
from tests.relay.stdio.test_recording import LINES, fill, small_disk
from tests.test_hostile import run
from tests.timelines import CAPTURES

SOURCE = str(CAPTURES / "features-python2-2026-07-28.jsonl")
WEB = str(CAPTURES / "http-python2-2026-07-28.jsonl")
FEW = [7, 8, 9, 10, 11, 12, 13, 14, 16, 20]
MCPSPY = [sys.executable, "-m", "mcpspy"]
CURSOR = {"mcpServers": {"a": {"command": "python", "args": ["a.py"]}}}
WRITERS = {
    "share": ["share", SOURCE, "-o", "{disk}/page.html", "--yes"],
    "scrub": ["scrub", SOURCE, "-o", "{disk}/scrubbed.jsonl", "--yes"],
    "export har": ["export", WEB, "--format", "har", "-o", "{disk}/export.har"],
    **{
        f"export {form}": ["export", SOURCE, "--format", form, "-o", "{disk}/export." + form]
        for form in ("mermaid", "perfetto", "csv", "otlp", "parquet")
    },
    "import": ["import", "{home}/some.har", "--capture-dir", "{disk}"],
    "lock": ["lock", SOURCE, "-o", "{disk}/new.lock.json"],
    "lock --update": ["lock", SOURCE, "-o", "{disk}/old.lock.json", "--update"],
    "check": ["check", str(CAPTURES), "--output", "{disk}/report.json", "--format", "json"],
    "sql": ["sql", "FROM messages", SOURCE, "--format", "csv", "-o", "{disk}/table.csv"],
    "install": ["install", "cursor", "--yes"],
    "replay": ["replay", SOURCE, "-o", "{disk}/replayed.jsonl", "--", "cat"],
}
WHOLE = [name for name in WRITERS if name not in ("import", "install", "replay", "export mermaid", "export parquet")]
"""The commands that write more than a page, into one file that is not a capture: a capture shows its own gap."""

DISKS = [*((name, 0) for name in WRITERS), *((name, 4096) for name in WHOLE)]


def limited(number, *command):
    """Return a command with a limit on file descriptors."""
    return ["sh", "-c", f'ulimit -n {number}; exec "$@"', "sh", *command]


def files(folder):
    """Return the content of every file below a directory. An empty file is no capture, so it misleads nobody."""
    found = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {path: content for path, content in found.items() if content}


@pytest.mark.parametrize(("name", "room"), each(DISKS, usual=[("install", 0), ("import", 0), ("check", 4096)]))
def test_a_command_on_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, monkeypatch, name, room):
    """A-21: an existing file keeps its content, and nothing looks finished that is not."""
    with small_disk(tmp_path / "disk", "size=256k") as disk:
        (disk / ".cursor").mkdir()
        (disk / ".cursor" / "mcp.json").write_text(json.dumps(CURSOR))
        (disk / "old.lock.json").write_text('{"format": 1, "servers": {}}\n')
        (tmp_path / "some.har").write_bytes(HAR)
        monkeypatch.setenv("HOME", str(disk))
        monkeypatch.chdir(disk)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        ballast = fill(disk)
        os.truncate(ballast, ballast.stat().st_size - room)
        before = files(disk)
        status, err = run([word.format(disk=disk, home=tmp_path) for word in WRITERS[name]])
        assert status in (1, 2), err
        assert err.count("No space left on device") == 1
        assert "bug of mcpspy" not in err
        assert files(disk) == before


@pytest.mark.parametrize("where", ["-o", "--capture-dir"])
def test_wrap_on_a_disk_that_was_full_before_passes_everything(tmp_path, where):
    """S-01, S-16."""
    with small_disk(tmp_path / "disk", "size=64k") as disk:
        fill(disk)
        before = files(disk)
        sent = b"\n".join(LINES) + b"\n"
        output = disk / "c.jsonl" if where == "-o" else disk
        command = [*MCPSPY, "wrap", where, str(output), "--", "cat"]
        done = limits.run(command, input=sent, capture_output=True, check=False, env=os.environ | {"HOME": str(disk)})
        assert (done.stdout, done.returncode) == (sent, 0)
        assert done.stderr.count(b"\n") == 1
        assert b"No space left on device" in done.stderr
        assert files(disk) == before


@scripted
async def test_a_proxy_on_a_full_disk_passes_everything(tmp_path):
    """S-01."""
    with small_disk(tmp_path / "disk", "size=64k") as disk:
        fill(disk)
        async with stage(disk) as there:
            for _ in range(3):
                await lives_on(there)
        assert there.stderr.count(b"\n") == 1
        assert b"No space left on device" in there.stderr


@pytest.mark.parametrize("number", each(FEW, usual=[11]))
def test_wrap_with_few_descriptors_passes_everything_or_says_why(tmp_path, number):
    """S-05, S-14."""
    sent = b"\n".join(LINES) + b"\n"
    options = ["-o", str(tmp_path / "c.jsonl"), *["--check"] * (number % 2)]
    command = limited(number, *MCPSPY, "wrap", *options, "--", "cat")
    done = limits.run(command, input=sent, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr
    if done.returncode:
        assert (done.stdout, done.returncode, done.stderr.count(b"\n")) == (b"", 126, 1)
    else:
        assert done.stdout == sent
        own = [line for line in done.stderr.splitlines() if b"[framing/not-json]" not in line]  # of `--check`
        assert len(own) <= 1


@pytest.mark.parametrize("number", each(FEW, usual=[11]))
@scripted
async def test_a_proxy_with_few_descriptors_answers_or_says_why(tmp_path, number):
    """S-14. Clients that it cannot serve are refused; it serves the next one."""

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(LAST)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    words = ["proxy", "--listen", "127.0.0.1:0", "-o", str(tmp_path / "c.jsonl"), url]
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*limited(number, *MCPSPY, *words), **pipes)
    try:
        place = (await process.stdout.readline()).decode().rpartition(":")[2].partition("/")[0]
        answers = []
        for _ in range(3 if place else 0):
            client = Peer(*await asyncio.open_connection("127.0.0.1", int(place)))
            await client.send(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            answers.append(await asyncio.wait_for(client.rest(), LIMIT / 4))
            client.close()
        if place:
            process.terminate()
        stderr = await process.stderr.read()
        assert await process.wait() == (0 if place else 2), stderr
        assert b"Traceback" not in stderr
        assert answers or stderr.count(b"\n") == 1, stderr
        for answer in answers:
            assert answer.endswith(OK[-2:]) or b"HTTP/1.1 502 " in answer, (answer, stderr)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        server.close()
