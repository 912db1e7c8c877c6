"""The tests; every run of them tries the same examples."""

import os

from hypothesis import settings

NIGHTLY = os.environ.get("MCPSPY_NIGHTLY") == "1"
"""Whether what is tested in a smaller form otherwise is tested in full: `scripts/test --nightly`."""

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=500 if NIGHTLY else 30)
settings.load_profile("repeatable")
