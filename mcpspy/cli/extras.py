"""How to add an optional extra to the running installation."""

import sys
from importlib.util import find_spec


def install_command(extra: str) -> str:
    """Return the shell command that adds `extra` to the environment of this interpreter.

    `uv tool install` makes environments without pip.
    """
    installer = f"{sys.executable} -m pip install" if find_spec("pip") else f"uv pip install --python {sys.executable}"
    return f"{installer} 'mcpspy[{extra}]'"
