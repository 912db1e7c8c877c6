"""Copying a text to the clipboard: through tmux if the application runs in it, else by an escape sequence (OSC 52).

By default tmux discards this escape sequence of its programs. Nothing confirms that a terminal accepts it, so a notice
says only what was done.
"""

import os
import subprocess
import sys
from collections.abc import Mapping

from textual.app import App

_SECONDS = 2  # maximum time for tmux


def copy(app: App[None], text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Copy a text. Returns where it is now, as the end of a sentence."""
    tmux = _to_tmux(text) if environ.get("TMUX") and not app.is_web and sys.platform != "win32" else ""
    if not tmux:
        app.copy_to_clipboard(text)
    return tmux or f"sent to the {'browser' if app.is_web else 'terminal'}"


def _to_tmux(text: str) -> str:
    """Copy a text to a buffer of tmux, and ask tmux to send it to its terminal. Returns where it is; empty if nowhere.

    tmux tells whether it sends texts, and whether its terminal has a clipboard.
    """
    told = ("display-message", "-p", "#{set-clipboard} #{client_termfeatures}")
    try:
        done = subprocess.run(
            ["tmux", "load-buffer", "-w", "-", ";", *told], input=text.encode(errors="replace"), capture_output=True,
            timeout=_SECONDS, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):  # no tmux, one older than 3.2, or its server has ended
        return ""
    sends, _, features = done.stdout.decode(errors="replace").strip().partition(" ")
    known = sends in ("on", "external") and "clipboard" in features.split(",")
    return f"in tmux's buffer{' and sent to the terminal' * known}"
