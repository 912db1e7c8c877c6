"""The application as `mcpspy.tui.web.page` runs it: a process of its own, whose screen and keys are two pipes.

Run with `python -m mcpspy.tui.web.process TARGET…`. It ends when its standard input does, however the server went.
"""

import sys

from textual.drivers.web_driver import WebDriver

from mcpspy.tui.app import run
from mcpspy.tui.textual_internals import end_application


class Driver(WebDriver):
    """Textual's, which itself would go on without anybody who sees it."""

    def run_input_thread(self) -> None:
        """Hand keys to the application until there can be no more."""
        super().run_input_thread()
        end_application(self)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], driver=Driver))
