"""The terminal user interface; `model` and `library` hold what it shows, and know no textual."""

import os

os.environ.setdefault("TEXTUAL_FPS", "120")
"""Drawings of the screen in a second, at most: with textual's own 60, a key soon after one waits for up to 33 ms."""
