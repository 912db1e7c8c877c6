"""What the paths of configurations depend on: the home, the platform, the environment, the working directory."""

import ntpath
import os
import posixpath
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from mcpspy.foreign_file import read_foreign


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine, and one working directory on it. Pure: everything is in its fields."""

    home: str
    platform: str
    """A value of `sys.platform`: darwin, win32, linux."""
    environ: Mapping[str, str]
    cwd: str
    repository: str = ""
    """The root of the git working tree that contains the working directory; empty if there is none."""
    main: str = ""
    """The root of the main working tree, if `repository` was added by `git worktree`."""

    @classmethod
    def here(cls) -> "Machine":
        """Return the machine that runs mcpspy."""
        home = os.path.realpath(os.path.expanduser("~"))  # resolved like the working directory
        try:
            cwd = os.getcwd()
        except OSError:  # deleted
            cwd = home
        return cls(home, sys.platform, os.environ, cwd, *repository(cwd))

    @property
    def paths(self) -> ModuleType:
        """The `os.path` of the platform."""
        return ntpath if self.platform == "win32" else posixpath


def repository(folder: str) -> tuple[str, str]:
    """Return the root of the git working tree around `folder`, and of its main one; empty strings if there is none.

    A `.git` of another user is ignored, as in git itself (`safe.directory`), because files beside it are theirs.
    """
    while not os.path.lexists(git := os.path.join(folder, ".git")):
        if (above := os.path.dirname(folder)) == folder:
            return "", ""
        folder = above
    try:
        if sys.platform != "win32" and os.stat(git).st_uid != os.geteuid():
            return "", ""
        return folder, folder if os.path.isdir(git) else _main(git, folder)
    except (OSError, ValueError):
        return "", ""


def _main(git: str, folder: str) -> str:
    """Return the main working tree if `.git` is a file (git-worktree, "DETAILS"); for a submodule, the tree itself."""
    link = os.path.join(folder, _first_line(git).removeprefix("gitdir:").strip())
    try:
        common = os.path.normpath(os.path.join(link, _first_line(os.path.join(link, "commondir")).strip()))
    except FileNotFoundError:
        return folder
    return os.path.dirname(common) if os.path.basename(common) == ".git" else folder


def _first_line(path: str) -> str:
    return read_foreign(path).decode().partition("\n")[0]
