"""`mcpspy completion`: print the script with which a shell completes commands, options and captures."""

import argparse
import os

from mcpspy.cli.options.set_up import SHELLS
from mcpspy.errors import UsageError
from mcpspy.text import suggestion

_SCRIPTS = os.path.join(os.path.dirname(__file__), "completions")


def run_completion(options: argparse.Namespace) -> int:
    """Print the script."""
    if options.shell not in SHELLS:
        hint = suggestion(options.shell, SHELLS, f"there are {', '.join(SHELLS)}")
        raise UsageError(f"there is no completion for {options.shell!r}; {hint}")
    with open(os.path.join(_SCRIPTS, f"mcpspy.{options.shell}"), encoding="utf-8") as script:
        print(script.read(), end="")
    return 0
