"""A copy of the repository in which mutants are tested, with environments that import the package from the copy."""

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mutation import Mutant

_SERVER = Path(__file__).resolve().parent / "forked_tests.py"
_TIME = itertools.count(10**9)
"""Python compiles a module again if its time or size differs: each mutant gets a time of its own."""


def tracked(root: Path, commit: str | None, to: Path) -> None:
    """Copy the files of a commit; without one, the files of the working tree, except for those that git ignores."""
    to.mkdir(parents=True)
    if commit:
        archive = subprocess.run(["git", "archive", commit], cwd=root, stdout=subprocess.PIPE, check=False)
        if archive.returncode:
            sys.exit(f"git has no commit {commit}")
        subprocess.run(["tar", "x", "-C", to], input=archive.stdout, check=True)
        return
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listing, cwd=root, check=True, capture_output=True, text=True).stdout.split("\0"):
        if name and (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name, follow_symlinks=False)


def environments(root: Path, to: Path) -> None:
    """Give a copy the environments of the repository: `.venv`, and those of the peers that there are."""
    _environment(root / ".venv", to / ".venv", to)
    for peer in sorted((root / ".peers").iterdir()) if (root / ".peers").is_dir() else []:
        if (peer / "pyvenv.cfg").exists():
            _environment(peer, to / ".peers" / peer.name, to)
        else:
            (to / ".peers").mkdir(exist_ok=True)
            (to / ".peers" / peer.name).symlink_to(peer)


def _environment(original: Path, to: Path, package: Path) -> None:
    """Make a Python environment of links to another one. Its mcpspy is the one in the folder `package`.

    An environment has its own folder of packages, in which one file names the folder of mcpspy. A path that Python gets
    in another way, such as PYTHONPATH, does not reach all processes that tests start.
    """
    packages = next((original / "lib").glob("python*/site-packages"))
    for folder in (original / "bin", packages):
        (to / folder.relative_to(original)).mkdir(parents=True)
        for entry in folder.iterdir():
            link = to / entry.relative_to(original)
            if entry.name == "_editable_impl_mcpspy.pth":
                link.write_text(str(package))
            elif entry.name == "mcpspy":  # its first line names the Python
                link.write_text(entry.read_text().replace(str(original.resolve()), str(to)))
                link.chmod(0o755)
            elif entry.name != "__pycache__":
                link.symlink_to(entry.resolve() if entry.is_symlink() and folder.name != "bin" else entry)
    for name in ("pyvenv.cfg", "stamp", "made-from"):
        if (original / name).exists():
            shutil.copy(original / name, to / name)


class Copy:
    """One copy of the repository, and the process that runs tests in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / ".log"
        self._process: subprocess.Popen[str] | None = None

    @contextlib.contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """Apply a mutant for the duration of a block."""
        path = self.folder / mutant.file
        original = path.read_bytes()
        try:
            self._write(path, mutant.apply(original))
            yield
        finally:
            self._write(path, original)

    def _write(self, path: Path, text: bytes) -> None:
        path.write_bytes(text)
        moment = next(_TIME)
        os.utime(path, (moment, moment))

    def test(self, files: list[str], known: dict[str, float], seconds: float) -> dict[str, Any]:
        """Run test files in the copy; the arguments and the result are those of `forked_tests.run`."""
        request = {"files": files, "known": known, "log": str(self.log), "seconds": seconds}
        for _ in range(2):
            process = self._process = self._process or self._start()
            assert process.stdin
            assert process.stdout
            print(json.dumps(request), file=process.stdin, flush=True)
            if answer := process.stdout.readline():
                return json.loads(answer)
            self.close()  # it was killed: by the kernel, when memory ran out
        sys.exit(f"the tests of {', '.join(files)} end the process that runs them")

    def _start(self) -> "subprocess.Popen[str]":
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
        temporary = self.folder.parent / f"{self.folder.name}.tmp"
        temporary.mkdir(exist_ok=True)
        return subprocess.Popen(
            [self.folder / ".venv" / "bin" / "python", _SERVER],
            cwd=self.folder, env=environ | {"TMPDIR": str(temporary), "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def close(self) -> None:
        """End the process that runs tests."""
        if self._process:
            self._process.communicate()
            self._process = None
