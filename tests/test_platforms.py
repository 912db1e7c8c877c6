"""Checks on Linux for systems where these tests do not run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIMIT = 120  # seconds
POSIX_ONLY = {
    "contract.verify.launch",
    "contract.verify.probe",
    "process.child",
    "process.pipes",
    "process.witness",
    "relay.reload.relay",
    "relay.stdio.companion",
    "tui.terminal",
}
"""Modules whose import fails with a message that they need POSIX, and modules that import these at the top level."""

# First the whole package is imported, so that all libraries are loaded. Then the names that Python lacks on Windows are
# removed, and the package is imported again. Libraries keep the names: only the imports of our own modules are tested.
WITHOUT_POSIX = '''
import ctypes, importlib, io, json, os, select, signal, socket, sys, types
names = json.load(sys.stdin)


def faults():
    found = {}
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


anyway = faults()  # extras that are not installed, and what is for Windows alone
for name in [name for name in sys.modules if name.partition(".")[0] == "mcpspy"]:
    del sys.modules[name]
for name in "fcntl grp pty pwd resource syslog termios tty".split():
    sys.modules[name] = None
GONE = {
    os: """chown chroot environb fchdir fchmod fchown fork forkpty geteuid getegid getgid getgroups getloadavg getpgid
        getpgrp getpriority getsid getuid initgroups killpg lchown mkfifo mknod nice openpty posix_spawn posix_spawnp
        pread preadv pwrite pwritev readv register_at_fork sched_getaffinity sched_yield sendfile setpgid setpriority
        setsid setuid statvfs sysconf ttyname uname wait wait3 wait4 waitid writev O_CLOEXEC O_DIRECTORY O_NOFOLLOW
        O_NONBLOCK O_SYNC P_PID POSIX_SPAWN_DUP2 POSIX_SPAWN_OPEN PRIO_PROCESS WEXITED WNOHANG WNOWAIT""",
    select: "epoll poll POLLIN POLLOUT",
    socket: "AF_UNIX SO_REUSEPORT socketpair",
}
for module, gone in GONE.items():
    for name in gone.split():
        vars(module).pop(name, None)
KEPT = "SIGABRT SIGFPE SIGILL SIGINT SIGSEGV SIGTERM SIG_DFL SIG_IGN"
for module in (signal, sys.modules["_signal"]):
    for name in list(vars(module)):
        if name.startswith(("SIG", "ITIMER")) and name not in KEPT.split():
            delattr(module, name)
    for name in "getitimer pthread_kill pthread_sigmask setitimer sigpending sigtimedwait sigwait".split():
        vars(module).pop(name, None)


class Library:
    """A library of Windows: it has every function."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        return types.SimpleNamespace()


ctypes.WinDLL = Library
sys.modules["msvcrt"] = Library()
sys.platform = "win32"
sys.stdout.write(json.dumps({name: why for name, why in faults().items() if why != anyway.get(name)}))
'''


def modules():
    """Return the names of all modules, without those that run something when they are imported."""
    paths = (path.relative_to(ROOT).with_suffix("").parts for path in (ROOT / "mcpspy").rglob("*.py"))
    return sorted(".".join(parts).removesuffix(".__init__") for parts in paths if parts[-1] != "__main__")


def test_every_module_can_be_imported_without_posix_or_says_that_it_needs_it():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_POSIX],
        input=json.dumps(modules()), capture_output=True, text=True, timeout=LIMIT, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    faults = json.loads(done.stdout)
    refused = {name.removeprefix("mcpspy."): why for name, why in faults.items() if "needs POSIX" in why}
    assert {name for name in refused if refused[name].startswith(f"ImportError: mcpspy.{name} ")} == POSIX_ONLY
    assert not {name: why for name, why in faults.items() if name.removeprefix("mcpspy.") not in refused}


@pytest.mark.field
@pytest.mark.timeout(2 * LIMIT)
@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_the_types_are_right_on_other_platforms(tmp_path, platform):
    """It computes for half a minute, without the cache of an earlier run.

    A module that needs POSIX is not checked for Windows, so the types that it defines are unknown in the modules that
    import it (`has-type`).
    """
    options = ["--platform", platform, "--disable-error-code", "has-type", "--no-warn-unused-ignores"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--cache-dir", tmp_path],
        capture_output=True, text=True, timeout=LIMIT, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
