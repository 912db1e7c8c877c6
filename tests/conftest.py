import os

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """With CI=true a skipped test has failed: all that tests need has to be there, but for the right to mount."""
    report = yield
    excused = hasattr(report, "wasxfail") or "mount" in str(report.longrepr)
    if report.skipped and os.environ.get("CI") == "true" and not excused:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report
