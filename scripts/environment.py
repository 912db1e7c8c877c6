"""The development environment: `.venv`, made once, and made again when `pyproject.toml` changes."""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if sys.platform == "win32" else "bin")


def ensure() -> Path:
    """Make the environment if necessary, and return its Python."""
    if sys.version_info < (3, 11):
        sys.exit(f"mcpspy needs Python 3.11 or newer; this is {sys.version.split()[0]}. Try: python3.12 {sys.argv[0]}")
    stamp = VENV / "made-from"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        print("installing mcpspy and what its tests need into .venv", flush=True)
        try:
            venv.create(VENV, clear=True, with_pip=True, symlinks=sys.platform != "win32")
        except subprocess.CalledProcessError:
            sys.exit("this Python cannot make an environment with pip in it; on Debian: apt install python3-venv")
        pip = [BIN / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        subprocess.run([*pip, "--editable", f"{ROOT}[dev]"], check=True)
        stamp.write_text(wanted)
    return BIN / "python"


def enter() -> None:
    """Go on in the environment: run this script again with its Python, unless that runs it already."""
    python = ensure()
    if Path(sys.prefix) != VENV:
        os.execv(python, [str(python), *sys.argv])
