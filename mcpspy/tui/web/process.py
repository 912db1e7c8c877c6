"""The application as a separate process for `mcpspy.tui.web.page`: its screen and keys are two pipes.

Run with `python -m mcpspy.tui.web.process TARGET…`. It exits when its standard input is closed, even if the server was
killed.
"""

import sys

from textual.drivers.web_driver import WebDriver

from mcpspy.tui.app import run
from mcpspy.tui.textual_internals import end_application


class Driver(WebDriver):
    """Textual's driver, changed to end the application at the end of the input."""

    def run_input_thread(self) -> None:
        """Pass keys to the application until the input ends, then end the application."""
        super().run_input_thread()
        end_application(self)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], driver=Driver))
