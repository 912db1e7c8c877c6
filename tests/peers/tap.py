"""An independent byte tap: `tap.py DIR -- COMMAND ARG...`.

Starts COMMAND, passes stdin, stdout and stderr through unchanged, and writes the exact bytes of each to DIR/stdin.bin,
DIR/stdout.bin and DIR/stderr.bin before it passes them on. It shares no code with mcpspy: it is what mcpspy is measured
against. Each stream has one thread that reads, writes to the file and forwards; nothing is buffered.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1


def copy(source, target, path):
    """Copy bytes from one descriptor to another until either end closes, then close both."""
    record = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with contextlib.suppress(OSError):
        while chunk := os.read(source, 65536):
            os.write(record, chunk)
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(target, rest) :]
    os.close(record)
    os.close(source)
    os.close(target)


def die_with_parent():
    """End the child when the tap is killed (Linux). Elsewhere the child gets the end of its stdin."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main(argv):
    if len(argv) < 4 or argv[2] != "--":
        sys.exit(__doc__.splitlines()[0])
    folder = argv[1]
    os.makedirs(folder, exist_ok=True)
    child = subprocess.Popen(
        argv[3:],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - no thread runs yet
    )
    signal.signal(signal.SIGTERM, lambda number, _: child.send_signal(number))
    streams = {
        "stdin": (0, child.stdin.fileno()),
        "stdout": (child.stdout.fileno(), 1),
        "stderr": (child.stderr.fileno(), 2),
    }
    threads = {}
    for name, (source, target) in streams.items():
        path = os.path.join(folder, f"{name}.bin")
        threads[name] = threading.Thread(target=copy, args=(source, target, path), daemon=True)
        threads[name].start()
    status = child.wait()
    threads["stdout"].join()
    threads["stderr"].join()
    if status < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no disposition to reset
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    main(sys.argv)
