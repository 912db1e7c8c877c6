"""What commands print and write: for each capture, for several captures, and without any."""

import contextlib
import gzip
import io
import os
import re
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from mcpspy import cli
from mcpspy.cli.commands import COMMANDS
from mcpspy.cli.complete import answer
from mcpspy.rules import RULES

OUT = "out"
"""A file that a command writes, relative to the working directory; it belongs to the output."""
READERS = {
    "why": "why {}",
    "why-json": "why {} --json",
    "show": "show {}",
    "show-json": "show {} --json",
    "show-filter": "show {} --filter (method:tools/*␠or␠status:error)␠latency:<1s␠not␠a",
    "show-long": "show {} --long",
    "check": "check {}",
    "check-json": "check {} --format json",
    "check-junit": "check {} --format junit",
    "check-sarif": "check {} --format sarif",
    "check-github": "check {} --format github",
    "check-as": "check {} --as 2026-07-28 --client all",
    "stats": "stats {}",
    "stats-json": "stats {} --json",
    "har": "export {} --format har",
    "mermaid": "export {} --format mermaid",
    "perfetto": "export {} --format perfetto",
    "csv": "export {} --format csv",
    "otlp": "export {} --format otlp",
    "scrub-check": "scrub --check {}",
    "scrub-json": "scrub --check {} --format json",
    "scrub": f"scrub {{}} --yes --force -o {OUT}",
    "share": f"share {{}} --yes --force -o {OUT}",
    "lock": f"lock {{}} -o {OUT}",
}
"""By the name of an output: the command, with `{}` for the path of the capture, and `␠` for a blank in an argument."""
SEVERAL = [
    "why {}", "why {} --json", "why {} --filter method:tools/*",
    "ls {}", "ls {} --json", "ls {} --runs", "ls {} --runs --json", "stats {}", "stats {} --json", "check {}",
    "check {} --format json", "check {} --fail-on never", "check {} --ignore schema/*", f"lock {{}} -o {OUT}",
    "prune {} --keep 1MB --dry-run", "prune {} --older 1d --dry-run",
]  # fmt: skip
"""Commands for a directory of captures."""
PAIRS = [
    ("features-node-2025-11-25", "features-python1-2025-11-25"),
    ("features-python2-2025-03-26", "features-python2-2026-07-28"),
    ("http-python1-2025-11-25", "http-python2-2026-07-28"),
    ("field-stdio", "field-stdio"),
]
"""Golden captures that `diff` compares."""
ALONE = [
    "--help", "--version", *[f"{name} --help" for name in COMMANDS],
    *[f"schema {it} --help" for it in ("show", "diff")], "rules", *[f"rules {name}" for name in RULES],
    "rules paging/unknown", "schema list", "schema show 2025-06-18", "schema show 2026-07-28 Tool",
    "schema diff 2025-06-18 2025-11-25", "schema diff 2025-11-25 2026-07-28", "completion bash", "completion zsh",
    "completion fish",
]  # fmt: skip
"""Commands that read no capture."""
LINES = [
    "", "sh", "-", "show ", "show -", "show --f", "check --format ", "check --as ", "rules pag", "export --format h",
    "show x --filter sta", "show x --filter status:", "diff a ", "wrap --", "wrap -- n", "schema diff 2025",
]  # fmt: skip
"""Command lines that a shell completes."""
MISTAKES = [
    "shwo", "--hlep", "-x", "show", "show nothing.jsonl", "show golden --josn", "show {} --filter",
    "show {} --filter (", "show {} --filter nope:x", "show {} --gate nothing.toml", "show {} {}", "check",
    "why nothing", "why {} --filter (",
    "check nothing", "check {} --as 2020", "check {} --format jsn", "check {} --fail-on bad",
    "check {} --ignore no/rule", "check {} --client nobody", "check {} --lock nothing.json",
    "check {} --waivers nothing.toml", "check {} --expect nothing.toml", "check {} --max-duration soon",
    "check --follow", "stats nothing", "ls nothing", "ls {}", "export {}", "export {} --format docx",
    "export {} --format har --filter (", "export golden --format har", "scrub {}", "scrub {} --replace (",
    "scrub {} --keep x -o out2", "share nothing", "share {} --replace (", "lock", "lock nothing", "lock {} -- true",
    "diff {}", "diff {} nothing", "diff {} {} --ignore x", "diff {} {} --format xml", "import", "import nothing",
    "import {}", "mock", "mock nothing", "mock {} --pace never", "mock {} --listen here", "replay", "replay {}",
    "replay nothing -- true", "replay {} --learn x -- true", "replay {} --url nowhere", "verify",
    "verify --timeout x -- true", "rules nothing", "rules a b", "schema", "schema show", "schema show 2020",
    "schema show 2025-06-18 Toool", "schema diff 2025-06-18", "completion", "completion cmd", "prune --older x",
    "prune --keep x", "otel", "otel nothing", "sql", "sql SELEC {}", "proxy", "proxy --url x",
    "run", "wrap", "wrap --", "wrap --gate nothing.toml -- true", "wrap --nope -- true", "install nobody",
    "uninstall nobody", "status nobody", "doctor nobody", "demo x", "tui nothing", "mcp nothing", "ca nothing",
]  # fmt: skip
"""Commands that end with an error."""
_EMBEDDED = re.compile(rb'(<script type="application/gzip;base64"[^>]*>)([A-Za-z0-9+/=]*)(</script>)')


def run(command: str, path: str = "") -> bytes:
    """Run a command in this process. Return its exit status, stdout, stderr, and the file that it wrote."""
    words = [word.replace("{}", path).replace("␠", " ") for word in command.split()]
    with contextlib.suppress(FileNotFoundError):
        os.unlink(OUT)
    with _streams() as (out, err):
        sys.argv = ["mcpspy", *words]
        try:
            status: object = cli.main()
        except SystemExit as done:
            status = done.code
    parts = [b"exit %d\n" % status, out.read()]
    if said := err.read():
        parts += [b"--- stderr\n", said]
    with contextlib.suppress(FileNotFoundError):
        parts += [b"--- written\n", _unpacked(Path(OUT).read_bytes())]
    out.close()
    err.close()
    return b"".join(parts)


@contextmanager
def _streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Redirect stdout and stderr, also for what is written to the descriptors, to two files; stdin is empty."""
    files = TemporaryFile(), TemporaryFile()  # noqa: SIM115 (the caller reads and closes them)
    before = sys.argv, sys.stdin, sys.stdout, sys.stderr
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    kept = [os.dup(fd) for fd in (1, 2)]
    for fd, file in enumerate(files, 1):
        os.dup2(file.fileno(), fd)
    sys.stdin = io.StringIO()
    sys.stdout, sys.stderr = (open(fd, "w", encoding="utf-8", closefd=False) for fd in (1, 2))  # noqa: SIM115 (kept)
    try:
        yield files
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.argv, sys.stdin, sys.stdout, sys.stderr = before
        for fd, copy in enumerate(kept, 1):
            os.dup2(copy, fd)
            os.close(copy)
        for file in files:
            file.seek(0)


def _unpacked(page: bytes) -> bytes:
    """Return a shared page with what it embeds in clear, because compressors differ; another file as it is."""
    return _EMBEDDED.sub(lambda it: it[1] + gzip.decompress(b64decode(it[2])) + it[3], page)


def of_capture(path: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each output for one capture."""
    for name, command in READERS.items():
        found = run(command, path)
        yield name, found if name != "share" else _without_frame(found)


def _without_frame(found: bytes) -> bytes:
    """Leave out what is the same in every page: only the embedded parts, and what the command prints."""
    head, _, page = found.partition(b"--- written\n")
    return head + b"\n".join(
        it[0] for it in re.finditer(rb'<script type="application/gzip.*?</script>', page, re.DOTALL)
    )


def several(folder: str) -> Iterator[tuple[str, bytes]]:
    """Yield the outputs for several captures, with the golden ones in `folder`."""
    for command in SEVERAL:
        yield command, run(command, folder)
    for a, b in PAIRS:
        for form in ("text", "json"):
            yield f"diff {a} {b} {form}", run(f"diff {folder}/{a}.jsonl {folder}/{b}.jsonl --format {form}")
    yield "share", run(READERS["share"], f"{folder}/field-stdio.jsonl")


def alone() -> Iterator[tuple[str, bytes]]:
    """Yield the outputs of commands that read no capture."""
    for command in ALONE:
        yield command, run(command)


def mistakes(path: str) -> Iterator[tuple[str, bytes]]:
    """Yield what commands with a mistake print; `path` is a capture."""
    for command in MISTAKES:
        yield command, run(command, path)


def completed() -> Iterator[tuple[str, bytes]]:
    """Yield the words that shells offer at the end of a line."""
    for line in LINES:
        found = answer(line.split(" "))
        yield repr(line), repr((found.kind, list(found.words.items()))).encode()
