"""The test files that are nearest to a module: by their names, and by what they import."""

import ast
import os
from collections.abc import Iterable
from pathlib import Path

EVERY_OUTPUT = "tests/oracle/"
"""The tests that compare every output; they are the last that a mutant has to survive."""
Sources = dict[str, bytes]
"""The text of each file, by its path."""


def python_files(root: Path, folder: str) -> Sources:
    """Return the text of each Python file below a folder of the repository, by its path."""
    paths = sorted((root / folder).rglob("*.py"))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


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

    def importing(self, module: str) -> list[str]:
        """Return the test files that import a module, themselves or through helpers of the tests."""
        direct = [path for path in self._files if module in self._imports[path]]
        return [*direct, *(it for it in self._files if it not in direct and module in self._through_helpers[it])]

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
