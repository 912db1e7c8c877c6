"""The local time zone in tests: UTC, or another one for a while."""

import os
import time
from contextlib import contextmanager
from unittest.mock import patch


@contextmanager
def zone(name):
    """Have this local time zone, also in new processes."""
    before = os.environ.get("TZ", "UTC")
    set_zone(name)
    try:
        with patch("mcpspy.moments.zone", None):
            yield
    finally:
        set_zone(before)


def set_zone(name):
    """Have this local time zone from now on."""
    os.environ["TZ"] = name
    if hasattr(time, "tzset"):  # not on Windows
        time.tzset()
