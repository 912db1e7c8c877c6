"""The tests that a change is most likely to break, and how many of them fit into some seconds."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from environment import ensure
from nearest_tests import Sources, Tests, is_test, module_name, python_files

SECONDS = 7.0
"""The time that the tests of a change may take in sum, as far as it is known; at least one file is run."""
UNKNOWN = 1.0
"""Seconds for a test file that has not been run yet."""
NAMED = 12
"""Test files that are named of those left out."""
CACHE = ".pytest_cache/v/mcpspy/seconds"
"""The seconds that each test file took, which `tests/conftest.py` writes."""


def changed(root: Path, base: str) -> list[str]:
    """Return the paths that differ from a commit, with new files, in the order of their names."""
    git = ["git", "-C", str(root)]
    commands = [[*git, "diff", "--name-only", base], [*git, "ls-files", "--others", "--exclude-standard"]]
    found = [subprocess.run(it, check=False, capture_output=True, text=True, timeout=60) for it in commands]
    if found[0].returncode:
        sys.exit(f"git cannot compare with {base}: {found[0].stderr.strip()}")
    return sorted({path for run in found for path in run.stdout.splitlines()})


def nearest(paths: Iterable[str], sources: Sources, tests: Tests | None = None) -> list[str]:
    """Return the test files for changed files, nearest first.

    For a module of the package, these are the nearest of its unit and those that import it; for a test file, that file;
    for a helper of the tests, the files that import it; for any other file, the test files that name it.
    """
    tests = tests or Tests(sources)
    groups: list[list[str]] = [[], []]
    for path in paths:
        if is_test(path):
            groups[0] += [path] if path in sources else []
        elif path.endswith(".py") and path.startswith(("mcpspy/", "tests/")):
            near = tests.nearest(path) if path.startswith("mcpspy/") else [tests.importing(module_name(path))]
            for number, found in enumerate(near[:2]):
                groups[number] += found
        else:
            # A name without a suffix is a word like others: `scripts/test`.
            known_as = Path(path).stem if path.endswith(".py") else Path(path).name if "." in path else path
            name = re.compile(rf"(?<![\w-]){re.escape(known_as)}(?![\w-])".encode())
            groups[0] += [it for it, text in sources.items() if is_test(it) and name.search(text)]
    return list(dict.fromkeys([*groups[0], *groups[1]]))


def known_seconds(root: Path) -> dict[str, float]:
    """Return the seconds that test files took when they were last run."""
    try:
        found = json.loads((root / CACHE).read_text())
    except (OSError, ValueError):
        return {}
    return {path: float(seconds) for path, seconds in found.items()}


def fitting(files: list[str], seconds: dict[str, float], most: float = SECONDS) -> tuple[list[str], list[str]]:
    """Return the files that fit into `most` seconds, the nearest first, and the others."""
    chosen: list[str] = []
    for path in files:
        taken = seconds.get(path, UNKNOWN)
        if not chosen or taken <= most:
            chosen.append(path)
            most -= taken
    return chosen, [path for path in files if path not in chosen]


def run(root: Path, base: str = "HEAD") -> int:
    """Run the lint and the nearest tests of what differs from a commit. Return the exit status."""
    paths = changed(root, base)
    files = nearest(paths, python_files(root, "tests"))
    if not files:
        print(f"no test is near to what differs from {base}: {', '.join(paths) or 'nothing does'}")
        return 0
    chosen, rest = fitting(files, known_seconds(root))
    print(f"differs from {base}: {' '.join(paths)}\nthe nearest tests: {' '.join(chosen)}", flush=True)
    python = str(ensure())
    checked = [path for path in paths if path.endswith(".py") and (root / path).exists()]
    lint = subprocess.Popen([python, "-m", "ruff", "check", "--quiet", *checked], cwd=root) if checked else None
    workers = ["-n", str(min(os.cpu_count() or 1, len(chosen)))] if len(chosen) > 1 else []
    status = subprocess.run([python, "-m", "pytest", "-q", *workers, *chosen], cwd=root, check=False).returncode
    if rest:
        print(
            f"left out for time ({len(rest)}); to run them too: scripts/test {' '.join(rest[:NAMED])}"
            f"{' …' * (len(rest) > NAMED)}"
        )
    print("not run: mypy, ruff format, scripts/oracle (all outputs), and whether scripts/write-rules changes a page")
    linted = lint.wait() if lint else 0
    if linted:
        print("failed: ruff check, above the tests")
    return status or linted
