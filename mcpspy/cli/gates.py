"""The common parts of commands with a gate file: compiling the gates, and answers from recordings.

This module is on the `wrap` path if there are gates, so it has no heavy imports.
"""

import os
import sys

from mcpspy.errors import UsageError
from mcpspy.json_values import only_value, scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mcpspy.gate.compiled import Answerers

_PROGRAM = """\
import sys
sys.path.insert(0, sys.argv.pop())
from mcpspy.gate_files.__main__ import main
sys.exit(main())
"""
_ROOT = os.path.abspath(__file__).rsplit(os.sep, 3)[0]


def compiled(path: str | None, transport: str) -> "list[dict[str, Any]] | None":
    """Return the gates of a file, compiled in this process; None without a file. Raises GateError."""
    if path is None:
        return None
    from mcpspy.gate_files.file import compile_file

    return compile_file(path, transport)


def compiled_apart(path: str) -> "list[dict[str, Any]] | None":
    """Return the gates of a file for stdio, compiled in another process; None if that process reported a mistake.

    A client waits for this process, and this process runs as long as the session, so it does not import the compiler.
    """
    argv = [sys.executable, "-P", "-c", _PROGRAM, "--transport", "stdio", "--", path, _ROOT]
    try:
        status, text = _output_of(argv)
    except OSError as error:
        raise UsageError(f"cannot compile the gates of {path}: {error.strerror or error}") from None
    return only_value(text, scanner()) if status == 0 else None


def _output_of(argv: list[str]) -> tuple[int, str]:
    """Return the exit status and the stdout of a program; stderr is passed through."""
    if sys.platform == "win32":
        import subprocess

        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
        return done.returncode, done.stdout.decode()
    reader, writer = os.pipe()
    try:
        actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, writer, 1)]
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    with open(reader, encoding="utf-8") as output:
        text = output.read()
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text
    except ChildProcessError:  # this process inherited an ignored SIGCHLD, so the kernel keeps no status
        return (0 if text else 2), text


def recorded_answers(gates: "Iterable[dict[str, Any]] | None") -> "Answerers":
    """Return the recorded answers for each gate that answers from a recording. Raises CaptureError."""
    found = {gate["name"]: gate["action"]["answer-from"] for gate in gates or () if "answer-from" in gate["action"]}
    if not found:
        return {}
    from mcpspy.cli.output import say
    from mcpspy.replay.match import answers  # takes 0.25 s to import

    return {name: answers(recording["file"], recording["miss"], say) for name, recording in found.items()}
