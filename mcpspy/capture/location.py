"""The directory of captures, and the names of their files.

Imported on the `wrap` path: no heavy imports.
"""

import os
import time

from mcpspy.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUFFIX = ".jsonl"
PACKED = ".gz"
"""The further suffix of a compressed file."""
SUFFIXES = SUFFIX, SUFFIX + PACKED
"""The suffixes of captures in a directory."""
STANDARD_INPUT = "-"
"""Stands for standard input where the path of a capture is expected."""

# Words that start or download a server but do not identify it.
_LAUNCHERS = frozenset(
    "npx npm pnpm pnpx yarn bunx bun deno node tsx ts-node uvx uv pipx poetry pdm hatch rye conda mamba python"
    " python3 py cmd powershell pwsh docker podman sh bash zsh env sudo nice timeout mise exec run dlx x tool"
    " start".split()
)
# Options of interpreters whose next word is a program text.
_CODE = frozenset("-c -e --eval --print".split())
# How a word of a redacted command line begins if all of it was replaced.
_REPLACED = ("«", "…")
# Options of those launchers whose next word is their value.
_VALUED = frozenset(
    "-e --env --env-file -v --volume --mount --name --network -p --publish --directory --project --with --from --python"
    " --package --prefix -w --workdir --cwd -C -u --user --platform --entrypoint".split()
)


def home() -> str:
    """Return the `.mcpspy` directory of the user, even if HOME is not set."""
    folder = os.path.expanduser("~")  # HOME, else the password database
    return os.path.join(folder if os.path.isabs(folder) else "/tmp", ".mcpspy")  # noqa: S108 (no home at all)


def directory(folder: str | None, environ: "Mapping[str, str]") -> str:
    """Return the absolute directory that captures are written to and read from."""
    chosen = folder or environ.get("MCPSPY_CAPTURE_DIR") or os.path.join(home(), "captures")
    return os.path.abspath(os.path.expanduser(chosen))


def make_directory(path: str) -> None:
    """Create `path` and its missing parents, private to the user; `os.makedirs` would leave the parents open."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent != path:
        make_directory(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def shown(path: str) -> str:
    """Return the name of a capture for people: its path, or standard input."""
    return "standard input" if path == STANDARD_INPUT else path


def stem(path: str) -> str:
    """Return the path of a capture without its suffix: what belongs to it has a name that begins so."""
    return "standard-input" if path == STANDARD_INPUT else os.path.splitext(path.removesuffix(PACKED))[0]


def refuse_compressed(path: str | None) -> None:
    """Raise UsageError if a relay should write a compressed file."""
    if path and path.endswith(PACKED):
        what = f"-o {path}: a relay cannot write a compressed capture, because it is read while it grows"
        raise UsageError(f"{what}; compress it after the session")


def server_name(argv: "Sequence[str]", redacted: "Sequence[str]") -> str:
    """Return a name for the server that `argv` starts: the first word that identifies it and contains no secret.

    `redacted` is `argv` with its secrets replaced, word by word.
    """
    skip = False
    for index, (word, clean) in enumerate(zip(argv, redacted, strict=True)):
        if skip:
            skip = False
        elif word.startswith("-") or (word.startswith("/") and len(word) == 2):  # `/c`: an option of cmd
            skip = word in _VALUED
        elif word == clean and "://" not in word and "=" not in word:
            base = os.path.basename(word.rstrip("/\\").replace("\\", "/"))
            plain = base.lower().removesuffix(".exe").removesuffix(".cmd")  # the suffixes of commands on Windows
            if base and plain not in _LAUNCHERS and not (index == 0 and base.startswith("python")):
                return printable_name(base)
    return printable_name(os.path.basename(redacted[0])) if redacted else "server"


def program_name(words: "Sequence[str]") -> str:
    """Return a short name for a program by its redacted command line: `agent.py` for `python3 agent.py --port 1`.

    Empty if all of its words were replaced.
    """
    code = next((at for at, word in enumerate(words) if word in _CODE), len(words))
    known = [word for word in words[:code] if not word.startswith(_REPLACED)]
    return server_name(known, known) if known else ""


def printable_name(name: str) -> str:
    """Return `name` with all characters except letters, digits, `.`, `_` and `-` replaced, at most 48 characters."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)
    return safe.strip(".-")[:48] or "server"


def file_name(wall: int, name: str) -> str:
    """Return a unique file name: start, name, pid, random."""
    start = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(wall // 1_000_000_000))
    return f"{start}-{printable_name(name)}-{os.getpid()}-{os.urandom(2).hex()}{SUFFIX}"


def iso_time(wall: int) -> str:
    """Nanoseconds since the epoch as UTC, ISO 8601 with microseconds."""
    seconds, rest = divmod(wall, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest // 1000:06}Z"
