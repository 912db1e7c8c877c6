import collections
import gc
import os
import signal
import sys
import threading
import traceback

import pytest

from tests import optional
from tests.zones import set_zone

_PYTHONS_OWN = {signal.SIGPIPE, signal.SIGXFSZ}
"""Signals that every Python process ignores."""
LEFT = 10
"""Seconds that a thread may run after the tests."""
YOUNG = 100_000
"""New objects before the garbage collector runs. A test that measures memory collects first."""


def heed_signals():
    """Reset ignored signals: `nohup` starts the tests with SIGHUP ignored, a background job with SIGINT and SIGQUIT.

    mcpspy's processes keep the dispositions that they inherit (S-02), so a test of signals would wait for ever.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - _PYTHONS_OWN:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


heed_signals()
set_zone("UTC")
os.environ.pop("PYTHONUNBUFFERED", None)  # it would hide output that a process does not flush


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(*names): skip without these programs and peers (tests/optional.py)")


@pytest.fixture(scope="session", autouse=True)
def _home_of_its_own(tmp_path_factory):
    """Give each test process its own home, not shared with the user or with other test processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _time_to_judge():
    """Raise the time limit of peer schemas: a busy machine starts a worker slowly. The kernel still ends long runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mcpspy.spec.peer_schemas.SECONDS", 30)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Freeze the collected tests, so that the garbage collector does not scan them again and again.

    It also runs less often than after every 700 objects, which takes a fifth of the time of the TUI's tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(YOUNG)
        gc.enable()


def pytest_collection_modifyitems(items):
    """Skip the tests that need a program or peer that is missing: `@pytest.mark.needs("zsh")`."""
    for item in items:
        if reason := optional.lacks(name for mark in item.iter_markers("needs") for name in mark.args):
            item.add_marker(pytest.mark.skip(reason))


def reason_of(report):
    """Return why a test was skipped."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


SECONDS = collections.Counter()
"""The seconds that each test file takes. `scripts/test --changed` runs those that fit into its time."""


def pytest_runtest_logreport(report):
    SECONDS[report.nodeid.partition("::")[0]] += report.duration


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    """Store how long the test files took, and print what was left out and how to add it, after all other lines."""
    result = yield
    config = session.config
    if "PYTEST_XDIST_WORKER" not in os.environ and hasattr(config, "cache") and not config.option.keyword:
        whole = {
            path: round(seconds, 2) for path, seconds in SECONDS.items() if not any("::" in it for it in config.args)
        }
        config.cache.set("mcpspy/seconds", config.cache.get("mcpspy/seconds", {}) | whole)
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal and "PYTEST_XDIST_WORKER" not in os.environ:
        for line in optional.left_out(reason_of(report) for report in terminal.stats.get("skipped", [])):
            terminal.write_line(line)
    return result


def pytest_unconfigure():
    """If a test has left a thread running, print its stack and exit with status 1 instead of waiting for it."""
    main = threading.main_thread()
    for thread in threading.enumerate():
        if thread is main or thread.daemon or "PYTEST_XDIST_WORKER" in os.environ:
            continue
        thread.join(LEFT)
        if thread.is_alive():
            print(f"a test has left the thread {thread.name}:", file=sys.stderr)
            traceback.print_stack(sys._current_frames().get(thread.ident), file=sys.stderr)
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Make a skipped test fail if CI=true: in CI, everything that tests need has to be installed.

    Exceptions are the right to mount, and the official schemas, which the repository does not include. In their
    place, `test_sdk_types` compares with the SDK's types.
    """
    report = yield
    excused = hasattr(report, "wasxfail") or any(word in reason_of(report) for word in ("mount", "official schema"))
    if report.skipped and os.environ.get("CI") == "true" and not excused:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report
