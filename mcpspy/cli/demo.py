"""`mcpspy demo`: a sample session of a small server and a scripted client, recorded by the real `wrap`.

On a terminal that shows the TUI, the session is shown there live; otherwise it runs to its end and is then printed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

from mcpspy.capture.location import directory, file_name, make_directory
from mcpspy.capture.reader import Capture
from mcpspy.cli.commands import run as run_command
from mcpspy.cli.output import stays_plain
from mcpspy.errors import CaptureError, McpspyError
from mcpspy.text import printable

PACE = 0.4
"""Seconds before each request, so that a person can follow."""
_STEP = 0.01  # seconds between two checks for the start of the capture


def run(_: argparse.Namespace) -> int:
    """Run the session and show it."""
    watched = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty() and not stays_plain()
    path = _new_path()
    command = [sys.executable, "-P", "-m", "mcpspy.demo.client", "-o", path, "--pace", str(PACE if watched else 0)]
    null, pipe = subprocess.DEVNULL, subprocess.PIPE  # stderr output is small enough for the buffer of a pipe
    with subprocess.Popen(command, stdin=null, stdout=null, stderr=pipe) as client:
        try:
            if watched:
                from mcpspy.tui.app import run as watch

                _await_capture(client, path)
                watch([path])
            else:
                client.wait()
                _await_capture(client, path)
                run_command(["show", path])
                if client.returncode:
                    raise McpspyError(_complaint(client) or f"the demo's client ended with status {client.returncode}")
        finally:
            client.terminate()  # has no effect if it has ended
            client.wait()
    print(f"\n'mcpspy show {printable(path, 4096)}' prints this capture again; 'mcpspy' shows all captures")
    return 0


def _new_path() -> str:
    """Return a path for a new capture in a directory where it can be created. Raises CaptureError if there is none."""
    folder = directory(None, os.environ)
    try:
        make_directory(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        advice = "name another directory in $MCPSPY_CAPTURE_DIR"
        raise CaptureError(f"cannot write a capture to {folder}: {error.strerror}; {advice}") from error
    return os.path.join(folder, file_name(time.time_ns(), "weather"))


def _await_capture(client: subprocess.Popen[bytes], path: str) -> None:
    """Wait for the start of the capture. Raises CaptureError if the client ends before that."""
    while True:
        ended = client.poll() is not None
        try:
            Capture(path)
            return
        except CaptureError as error:
            if ended:
                raise CaptureError(_complaint(client) or str(error)) from error
        time.sleep(_STEP)


def _complaint(client: subprocess.Popen[bytes]) -> str:
    """Return the error message of `wrap`, or else of the client."""
    assert client.stderr
    said = client.stderr.read().decode(errors="replace").splitlines()
    of_wrap = [line.removeprefix("mcpspy: ") for line in said if line.startswith("mcpspy: ")]
    return (of_wrap or said or [""])[-1]
