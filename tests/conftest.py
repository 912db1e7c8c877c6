import gc
import os
import signal
import sys
import threading
import traceback

import pytest

_PYTHONS_OWN = {signal.SIGPIPE, signal.SIGXFSZ}
"""What every Python ignores."""
LEFT = 10
"""Seconds that a thread may outlive the tests."""
YOUNG = 100_000
"""Objects that are made before the collector of garbage looks at them; a test that counts memory collects first."""


def heed_signals():
    """Undo what the tests were started with: `nohup` ignores SIGHUP, a shell's background job SIGINT and SIGQUIT.

    Our processes keep what they inherit, as they must (S-02), so a test of signals would wait in vain.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - _PYTHONS_OWN:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


heed_signals()


@pytest.fixture(scope="session", autouse=True)
def _home_of_its_own(tmp_path_factory):
    """No test, and no other process of tests, shares a home with the user or with this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _time_to_judge():
    """A busy machine may start a process slowly; what computes too long is ended by the kernel all the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mcpspy.spec.peer_schemas.SECONDS", 30)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is collected stays: the collector of garbage need not look through it again and again.

    Nor after every 700 objects for what a test makes: that takes a fifth of the time of the tests of the TUI.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(YOUNG)
        gc.enable()


def pytest_unconfigure():
    """A thread that a test has left must not keep us from ending."""
    main = threading.main_thread()
    for thread in threading.enumerate():
        if thread is main or thread.daemon or "PYTEST_XDIST_WORKER" in os.environ:
            continue
        thread.join(LEFT)
        if thread.is_alive():
            print(f"a test has left the thread {thread.name}:", file=sys.stderr)
            traceback.print_stack(sys._current_frames().get(thread.ident), file=sys.stderr)
            sys.stderr.flush()
            os._exit(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """With CI=true a skipped test has failed: all that tests need has to be there.

    But for the right to mount, and the official schemas, which are not ours to keep: `test_sdk_types` stands in.
    """
    report = yield
    excused = hasattr(report, "wasxfail") or any(word in str(report.longrepr) for word in ("mount", "official schema"))
    if report.skipped and os.environ.get("CI") == "true" and not excused:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report
