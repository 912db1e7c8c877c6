"""The tests. Every run tries the same generated examples."""

import os

os.environ["TEXTUAL_FPS"] = "5"  # the tests of the TUI draw the screen themselves, when all work is done
import textual.constants  # noqa: F401 (it reads TEXTUAL_FPS once, at its import)
from hypothesis import settings

del os.environ["TEXTUAL_FPS"]

NIGHTLY = os.environ.get("MCPSPY_NIGHTLY") == "1"
"""Whether the tests run in full (`scripts/test --nightly`) and not in the smaller form."""

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=500 if NIGHTLY else 30)
settings.load_profile("repeatable")
