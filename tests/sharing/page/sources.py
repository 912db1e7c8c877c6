"""The path of the page's sources, and the programs that check them."""

from pathlib import Path

import mcpspy
from tests.peers import prepare

PAGE = Path(mcpspy.__file__).parent / "sharing" / "page"
HERE = Path(__file__).parent


def program(name):
    """Return the path of a program from the Node packages."""
    return str(Path(prepare.node_modules()) / ".bin" / name)
