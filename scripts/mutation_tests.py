"""Whether tests kill a mutant, the nearest test files first."""

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

from mutation import Mutant, Result
from mutation_copy import Copy
from nearest_tests import EVERY_OUTPUT, Tests

BATCH = 8
"""Test files that are run together."""
FOR_EVER = 24 * 3600
ATTEMPTS = 3
"""How often tests may fail without a mutant, because the machine is too busy."""


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
