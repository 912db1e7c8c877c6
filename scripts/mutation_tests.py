"""Which test files can kill a mutant, nearest first, and whether they do."""

import ast
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from mutation import Mutant, Result
from mutation_copy import Copy

EVERY_OUTPUT = "tests/oracle/"
"""The tests that compare every output; they are the last that a mutant has to survive."""
BATCH = 8
"""Test files that are run together."""
FOR_EVER = 24 * 3600
ATTEMPTS = 3
"""How often tests may fail without a mutant, because the machine is too busy."""
Sources = dict[str, bytes]
"""The text of each file of tests, by its path."""


def module_name(path: str) -> str:
    """Return the name of the module with this path below the repository's root."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def is_test(path: str) -> bool:
    return os.path.basename(path).startswith("test_") and path.endswith(".py")


def imported(text: bytes) -> set[str]:
    """Return the modules of the package and of the tests that a file may import, also inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in names if name.partition(".")[0] in ("mcpspy", "tests")}


class Tests:
    """The test files of a repository. Their distance to a module depends on their names, and on what they import."""

    def __init__(self, sources: Sources, also: Iterable[str] = ()) -> None:
        self._also = tuple(also)
        self._files = sorted(path for path in sources if is_test(path))
        direct = {module_name(path): imported(text) for path, text in sources.items()}
        self._imports = {path: direct[module_name(path)] for path in self._files}
        self._through_helpers = {path: _reached(module_name(path), direct) for path in self._files}

    def nearest(self, file: str) -> list[list[str]]:
        """Return the test files that are run for a mutant in `file`, in groups that are run one after the other.

        1. The file of the same name, and those of the unit's tests that import the module.
        2. Other files that import the module, themselves or through helpers of the tests, and the files of the unit's
           tests in the same folder.
        3. The unit's other tests, and those in `also`.
        4. The tests that compare every output.
        """
        module = module_name(file)
        unit = file.split("/")[1].removesuffix(".py")
        folder = f"tests/{os.path.dirname(file).partition('/')[2]}/"
        namesake = f"{folder}test_{os.path.basename(file)}"
        ours = [path for path in self._files if path.startswith(f"tests/{unit}/")]

        def distance(path: str) -> int:
            if path.startswith(EVERY_OUTPUT):
                return 4
            if path in ours and (path == namesake or module in self._imports[path]):
                return 1
            if module in self._imports[path]:
                return 2
            if path in ours:
                return 2 if module in self._through_helpers[path] or os.path.dirname(path) + "/" == folder else 3
            return 3 if path.startswith(self._also) else 0

        def order(path: str) -> tuple[bool, bool, int, str]:
            # A file that imports few modules is about this module, and is quick.
            return path != namesake, not path.startswith(folder), len(self._imports[path]), path

        groups = [[path for path in self._files if distance(path) == number] for number in (1, 2, 3, 4)]
        return [sorted(group, key=order) for group in groups if group]


def _reached(module: str, direct: dict[str, set[str]]) -> set[str]:
    """Return what a test file imports itself, and through other modules of the tests."""
    found: set[str] = set()
    rest = {module}
    while rest := set().union(*(direct.get(name, set()) for name in rest)) - found:
        found |= rest
    return found


class Judge:
    """Finds out which mutants are killed, and how long the tests take without them."""

    def __init__(self, tests: Tests, limit: float) -> None:
        self._tests, self._limit = tests, limit
        self._passed: dict[str, Future[bool]] = {}
        self._lock = threading.Lock()
        self._known: dict[str, float] = {}

    def result(self, copy: Copy, mutant: Mutant, killer: str) -> Result:
        """Test a mutant in a copy. `killer` is the test that killed it before, which is run first."""
        seconds, complete = 0.0, True
        for files in self._batches(copy, mutant.file, killer):
            left = FOR_EVER if files[0].startswith(EVERY_OUTPUT) else self._limit - seconds
            if left <= 0:
                complete = False
                continue
            self._pass_without_mutant(copy, files)
            began = time.monotonic()
            with copy.mutated(mutant):
                found = self._tested(copy, files, left)
            seconds += time.monotonic() - began
            if found["outcome"] == "failed":
                late = " (too slow)" if found["late"] else ""
                return _result(mutant, "killed", f"{found['by']}{late}", seconds, complete=complete)
            complete &= found["outcome"] != "stopped"
        return _result(mutant, "survived", "", seconds, complete=complete)

    def _batches(self, copy: Copy, file: str, killer: str) -> Iterator[list[str]]:
        """Yield the test files for a mutant in `file`, in groups that are run together."""
        first = killer.partition("::")[0]
        if first and (copy.folder / first).is_file():
            yield [first]
        for group in self._tests.nearest(file):
            files = [name for name in group if name != first]
            yield from (files[start : start + BATCH] for start in range(0, len(files), BATCH))

    def _tested(self, copy: Copy, files: list[str], seconds: float) -> dict[str, Any]:
        """Run tests with a mutant. A test that fails only once has not killed it: the machine was too busy."""
        with self._lock:
            known = {nodeid: taken for nodeid, taken in self._known.items() if nodeid.partition("::")[0] in files}
        found = copy.test(files, known, seconds)
        if found["outcome"] == "failed" and "::" in found["by"]:
            alone = copy.test([found["by"]], known, FOR_EVER)
            if alone["outcome"] == "passed":
                return copy.test(files, known, seconds)
        return found

    def _pass_without_mutant(self, copy: Copy, files: list[str]) -> None:
        """Run test files without a mutant if no copy has done it yet, and note how long each test takes."""
        with self._lock:
            ours = [file for file in files if file not in self._passed]
            self._passed |= {file: Future() for file in ours}
        passed = False
        try:
            for _ in range(ATTEMPTS if ours else 0):
                found = copy.test(ours, {}, FOR_EVER)
                if passed := found["outcome"] == "passed":
                    with self._lock:
                        self._known |= found["seconds"]
                    break
            if ours and not passed:
                sys.exit(f"without a mutant, {found['by']} fails:\n{copy.log.read_text(errors='replace')}")
        finally:
            for file in ours:  # the other copies wait for this
                self._passed[file].set_result(passed)
        if not all(self._passed[file].result() for file in files):
            sys.exit("a test fails without a mutant")


def _result(mutant: Mutant, outcome: str, by: str, seconds: float, *, complete: bool) -> Result:
    more = {"unit": mutant.unit, "outcome": outcome, "by": by, "seconds": round(seconds, 1), "complete": complete}
    return mutant.name() | more
