"""A program that takes the place of the server: `python -I -S probe.py DIRECTORY COMMAND [ARG...]`.

The theory. Only a program in the server's place can record what a server sees. So this program is started as the
server, bare and behind a wrapper. It records how it was started, starts the server in the same way, and forwards its
streams. Everything is written to a file of DIRECTORY before it is forwarded: `stdin`, `stdout`, `stderr`, one line for
each signal in `signals`, and `end`, the exit status (negative: the signal that killed the server). It ends as the
server ended.

It is between the two in both cases, so it causes no difference between them. POSIX, standard library only.
"""

import json
import os
import signal
import stat
import sys
import threading

if sys.platform == "win32":
    raise ImportError("mcpspy.contract.verify.probe needs POSIX: `mcpspy verify` does not run on Windows")

_IGNORED_BY_PYTHON = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)]
_NOTED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")
_DRAIN = 0.25  # seconds to read the rest of the pipes, if another process holds them open
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


def main(folder: str, argv: list[str]) -> None:
    """Run the server of `argv`, record its traffic, and end as it does."""
    environ = _environment()
    facts = _facts(environ)
    with open(os.path.join(folder, "facts"), "w", encoding="utf-8") as file:
        json.dump(facts, file)
    held, mask = _hold_signals()
    pipes = [os.pipe() for _ in range(3)]
    server = os.fork()
    if server == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _become(argv, environ, (pipes[0][0], pipes[1][1], pipes[2][1]))
    for end in (pipes[0][0], pipes[1][1], pipes[2][1]):
        os.close(end)
    signals = (held, server, os.path.join(folder, "signals"))
    threading.Thread(target=_forward_signals, args=signals, daemon=True).start()
    ways = ((0, pipes[0][1], "stdin"), (pipes[1][0], 1, "stdout"), (pipes[2][0], 2, "stderr"))
    pumps = [
        threading.Thread(target=_pump, args=(source, target, os.path.join(folder, name)), daemon=True)
        for source, target, name in ways
    ]
    for pump in pumps:
        pump.start()
    _, status = os.waitpid(server, 0)
    code = os.waitstatus_to_exitcode(status)
    for pump in pumps[1:]:
        pump.join(_DRAIN)
    with open(os.path.join(folder, "end"), "w", encoding="utf-8") as file:
        file.write(str(code))
    if code < 0:
        _die_by(-code)
    os._exit(code if code >= 0 else 128 - code)


def _facts(environ: dict[bytes, bytes]) -> dict[str, object]:
    """Return how this process was started."""
    mask = os.umask(0)
    os.umask(mask)
    own = {*_IGNORED_BY_PYTHON, signal.SIGKILL, signal.SIGSTOP}
    ignored = [number for number in signal.valid_signals() - own if signal.getsignal(number) == signal.SIG_IGN]
    return {
        "environment": {os.fsdecode(name): os.fsdecode(value) for name, value in environ.items()},
        "arguments": sys.orig_argv,
        "directory": os.getcwd(),
        "umask": f"{mask:03o}",
        "descriptors": _descriptors(),
        "ignored signals": sorted(_name(number) for number in ignored),
        "blocked signals": sorted(_name(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "priority": os.nice(0),
        "limits": _limits(),
        "group": os.getpgrp(),
        "session": os.getsid(0),
    }


def _environment() -> dict[bytes, bytes]:
    """Return the environment as it was received. Python adds LC_CTYPE to its own without a locale (PEP 538)."""
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = [entry.partition(b"=") for entry in file.read().split(b"\0") if entry]
    except OSError:
        return dict(os.environb)
    found: dict[bytes, bytes] = {}
    for name, _, value in pairs:
        found.setdefault(name, value)
    return found


def _descriptors() -> dict[str, str]:
    """Return the open descriptors, and what each is."""
    found = {}
    for number in range(min(os.sysconf("SC_OPEN_MAX"), 1024)):
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            continue
        kinds = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFREG: "file", stat.S_IFCHR: "device"}
        found[str(number)] = kinds.get(stat.S_IFMT(mode), "other")
    return found


def _limits() -> dict[str, list[int]]:
    import resource

    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    return {name: list(resource.getrlimit(getattr(resource, name))) for name in names}


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _become(argv: list[str], environ: dict[bytes, bytes], streams: tuple[int, int, int]) -> None:
    """Replace this new process with the server."""
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        for ignored in _IGNORED_BY_PYTHON:
            signal.signal(ignored, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN if signal.getsignal(signal.SIGINT) == signal.SIG_IGN else 0)
        try:
            os.execvpe(argv[0], argv, environ)
        except OSError as error:
            os._exit(_NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE)
    finally:
        os._exit(_NOT_FOUND)


def _hold_signals() -> tuple[set[signal.Signals], set[int]]:
    """Block the forwarded signals in all later threads. Return them, and the mask as it was before.

    A thread of its own waits for them. A handler would run only in the main thread, and not while that thread waits for
    the server to end. A signal just before this wait would go unnoticed until the server ends.
    """
    numbers = {getattr(signal, name) for name in _NOTED}
    held = {number for number in numbers if signal.getsignal(number) != signal.SIG_IGN}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    for number in held:  # a signal that is ignored by default may be dropped while blocked (POSIX, 2.4.1)
        signal.signal(number, lambda *_: None)
    return held, before


def _forward_signals(held: set[signal.Signals], server: int, path: str) -> None:
    """Record each signal that arrives, and send it to the server."""
    noted = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    while True:
        number = signal.sigwait(held)
        os.write(noted, f"{_name(number)}\n".encode())
        try:
            os.kill(server, number)
        except OSError:  # it has ended
            pass


def _pump(source: int, target: int, path: str) -> None:
    """Forward bytes until one of the two ends is closed, then close both."""
    noted = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        while chunk := os.read(source, 65536):
            os.write(noted, chunk)
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(target, rest) :]
    except OSError:
        pass
    finally:
        for end in (source, target):
            os.close(end)


def _die_by(number: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    signal.raise_signal(number)  # to this thread: another thread waits for signals of the process


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
