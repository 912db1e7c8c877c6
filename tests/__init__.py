"""The tests; every run of them tries the same examples."""

import os

os.environ["TEXTUAL_FPS"] = "5"  # tests of the TUI draw the screen when all is done that was asked for
import textual.constants  # noqa: F401 (it reads that once, before the application asks for more)
from hypothesis import settings

del os.environ["TEXTUAL_FPS"]

NIGHTLY = os.environ.get("MCPSPY_NIGHTLY") == "1"
"""Whether what is tested in a smaller form otherwise is tested in full: `scripts/test --nightly`."""

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=500 if NIGHTLY else 30)
settings.load_profile("repeatable")
