"""Where the sources of the page are, and the programs that check them."""

from pathlib import Path

import mcpspy
from tests.peers import prepare

PAGE = Path(mcpspy.__file__).parent / "sharing" / "page"
HERE = Path(__file__).parent


def program(name):
    """A program of the Node packages."""
    return str(Path(prepare.node_modules()) / ".bin" / name)
