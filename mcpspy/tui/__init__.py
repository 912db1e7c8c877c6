"""The terminal user interface. What it shows comes from `model` and `mcpspy.browse`, which do not use textual."""

import os

os.environ.setdefault("TEXTUAL_FPS", "120")
"""The maximum frames per second: with textual's default of 60, a key pressed soon after another waits up to 33 ms."""
