"""The frozen outputs: a hash of each in `frozen.txt`, and the comparison of them with the outputs of the code.

Hashes are enough to find what differs. What the bytes were is found out by running the code of the commit that froze
them, in a work tree of its own.
"""

import difflib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from unittest.mock import patch

from tests.oracle import captures, commands, servers, viewers

ROOT = Path(__file__).parent.parent.parent
FROZEN = Path(__file__).parent / "frozen.txt"
NOW = 1_795_000_000.0
"""The time at which all outputs are made, in seconds since the epoch: 2026-11-18."""
DEPTH = 900
"""Calls that may be nested within a command, whoever runs it: some captures are nested almost as deeply."""
ENVIRONMENT = {"TZ": "UTC", "COLUMNS": "120", "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "PATH": os.defpath}
GROUPS = "golden clean faulty patched spoiled planted several alone mistakes completed servers".split()
"""The first word of each case."""
LONGEST = 600
"""Seconds that a program may take."""
_SHOWN = 60  # lines of a difference

Case = tuple[str, str]
"""A case, such as a capture, and the name of one of its outputs."""


def outputs(wanted: Callable[[str], bool] = lambda case: True) -> Iterator[tuple[Case, bytes]]:
    """Yield every output of the wanted cases, with `/oracle` for the temporary directory."""
    with _world() as folder:
        for case, make in _cases(folder):
            if wanted(case):
                for output, data in make():
                    yield (case, output), data.replace(os.fsencode(folder), b"/oracle")


def _cases(folder: Path) -> Iterator[tuple[str, Callable[[], Iterable[tuple[str, bytes]]]]]:
    """Yield each case with the function that yields its outputs. Paths are relative to the working directory."""
    for name, path in captures.write(folder).items():
        relative, live = str(path.relative_to(folder)), name.startswith(("golden", "clean", "faulty"))
        yield name, partial(commands.of_capture, relative)
        yield name, partial(viewers.of_capture, relative, live=live)
    yield "several", partial(commands.several, "golden")
    yield "alone", commands.alone
    yield "mistakes", partial(commands.mistakes, "golden/field-stdio.jsonl")
    yield "completed", commands.completed
    yield "servers", servers.sent


@contextmanager
def _world() -> Iterator[Path]:
    """Change to a temporary directory with a home, a fixed key and a fixed time, and nothing else of the machine."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as made, patch.dict(os.environ, ENVIRONMENT, clear=True):
        folder = Path(made).resolve()
        home = folder / "home"
        (home / ".mcpspy").mkdir(parents=True, mode=0o700)
        (home / ".mcpspy" / "key").write_bytes(bytes(range(32)))
        os.environ["HOME"] = str(home)
        time.tzset()
        os.chdir(folder)
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit + DEPTH - _left())
        try:
            with patch("time.time", lambda: NOW):
                yield folder
        finally:
            sys.setrecursionlimit(limit)
            os.chdir(before)


def _left() -> int:
    """Return how many calls may be nested from here. Calls of C functions count too, so a stack does not tell it."""
    try:
        return 1 + _left()
    except RecursionError:
        return 0


def hashed(data: bytes) -> str:
    """Return the hash of an output, as `frozen.txt` has it."""
    return blake2b(data, digest_size=5).hexdigest()


def read() -> dict[Case, str]:
    """Return the frozen hashes."""
    found: dict[Case, str] = {}
    case = ""
    for line in FROZEN.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            number, _, output = line.strip().partition(" ")
            found[case, output] = number
        else:
            case = line
    return found


def write(found: dict[Case, str]) -> None:
    """Freeze hashes."""
    lines = []
    for case, places in groupby(found, key=itemgetter(0)):
        lines += [case, *(f"  {found[at]} {at[1]}" for at in places)]
    FROZEN.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def differences(frozen: dict[Case, str], now: dict[Case, str]) -> list[str]:
    """Return what differs, a line for each output: `golden/field-sse: show --json`."""
    found = []
    for at in sorted(dict.fromkeys([*frozen, *now]), key=itemgetter(0)):
        if frozen.get(at) != now.get(at):
            what = " (new)" if at not in frozen else " (gone)" if at not in now else ""
            found.append(f"{': '.join(at)}{what}")
    return found


def compare(wanted: Callable[[str], bool]) -> tuple[dict[Case, str], list[str]]:
    """Return the hashes of some cases, and how they differ from the frozen ones."""
    now = {at: hashed(data) for at, data in outputs(wanted)}
    return now, differences({at: number for at, number in read().items() if wanted(at[0])}, now)


def save(folder: Path, wanted: Callable[[str], bool]) -> None:
    """Write outputs into files below a folder."""
    for (case, output), data in outputs(wanted):
        path = folder / case / output.replace("/", "_")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def explained(cases: Iterable[str]) -> Iterator[str]:
    """Yield the differences of some cases to the code that froze them, as lines of unified diffs."""
    git = ["git", "-C", str(ROOT)]
    commit = _run([*git, "log", "-1", "--format=%H", "--", str(FROZEN)]).strip()
    with tempfile.TemporaryDirectory() as made:
        tree, old, new = (Path(made) / name for name in ("tree", "old", "new"))
        _run([*git, "worktree", "add", "--quiet", "--detach", str(tree), commit])
        try:
            for root, folder in ((tree, old), (ROOT, new)):
                _run([sys.executable, "-m", "tests.oracle", "--save", str(folder), *cases], root)
        finally:
            _run([*git, "worktree", "remove", "--force", str(tree)])
        yield from _unified(old, new)


def _run(command: list[str], root: Path = ROOT) -> str:
    """Run a program with the code of a work tree; return its stdout."""
    environ = os.environ | {"PYTHONPATH": str(root)}
    return subprocess.run(
        command, check=True, cwd=root, env=environ, stdout=subprocess.PIPE, text=True, timeout=LONGEST
    ).stdout


def _unified(old: Path, new: Path) -> Iterator[str]:
    names = sorted({path.relative_to(side) for side in (old, new) for path in side.rglob("*") if path.is_file()})
    for name in names:
        before, after = (_lines(side / name) for side in (old, new))
        if before != after:
            found = list(difflib.unified_diff(before, after, f"frozen {name}", f"now {name}", n=1, lineterm=""))
            yield from found[:_SHOWN]
            if len(found) > _SHOWN:
                yield f"… {len(found) - _SHOWN} more lines"


def _lines(path: Path) -> list[str]:
    """Return the lines of an output, without what a terminal must not get; none of an output that is missing."""
    if not path.exists():
        return []
    return [
        line.decode(errors="backslashreplace").encode("unicode_escape").decode()
        for line in path.read_bytes().splitlines()
    ]
