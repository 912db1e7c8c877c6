"""`mcpspy completion`: print the script with which a shell completes commands, options and captures."""

import argparse
import os
from difflib import get_close_matches

from mcpspy.cli.arguments import offer
from mcpspy.errors import UsageError

SHELLS = {
    "bash": 'eval "$(mcpspy completion bash)"    in ~/.bashrc',
    "zsh": 'eval "$(mcpspy completion zsh)"     in ~/.zshrc, after compinit',
    "fish": "mcpspy completion fish | source     in ~/.config/fish/config.fish",
}
"""Shell -> the line that enables the script, and the file in which to put it."""
_SCRIPTS = os.path.join(os.path.dirname(__file__), "completions")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = "Print the script with which a shell completes commands, options and captures."
    parser.epilog = "To switch it on:\n" + "".join(f"  {line}\n" for line in SHELLS.values())
    offer(parser.add_argument("shell", metavar="SHELL", help=", ".join(SHELLS)), dict.fromkeys(SHELLS, ""))


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    if options.shell not in SHELLS:
        near = get_close_matches(options.shell, SHELLS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(SHELLS)}"
        raise UsageError(f"there is no completion for {options.shell!r}; {hint}")
    with open(os.path.join(_SCRIPTS, f"mcpspy.{options.shell}"), encoding="utf-8") as script:
        print(script.read(), end="")
    return 0
