import os

import pytest


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
