"""Whether a client trusts the working directory; if not, it does not start servers of that directory.

This only reads the clients' own files. A file that cannot be read counts as empty: the client itself reports that. If a
client has no directory in the home, it was never started, and nothing is reported. Each rule was observed in the
version of the client in its row of `clients.table`.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from mcpspy.clients.apply import load
from mcpspy.clients.formats import JSON, TOML, read
from mcpspy.clients.machine import Machine
from mcpspy.clients.places import Found
from mcpspy.clients.table import PROJECT
from mcpspy.clients.tree import plain
from mcpspy.errors import ConfigError

TRUST_IT = "start it there once and trust the folder"


def untrusted(found: Found, machine: Machine) -> str:
    """Return why the client starts no server of this place in the working directory; empty if it does.

    It is also empty if that is not known.
    """
    trusts = _TRUSTS.get(found.client.id)
    of_project = found.place.scope == PROJECT
    if not trusts or (found.client.id in ("codex", "copilot") and not of_project):  # these ignore only project files
        return ""
    home = _home(found.client.id, machine)
    if not os.path.isdir(home) or trusts(home, machine):
        return ""
    what = "this file" if of_project else "its servers, the user's too"
    return f"{found.client.name} does not trust {machine.cwd}, and ignores {what}"


def _home(client: str, machine: Machine) -> str:
    """Return the directory where a client keeps its state."""
    environ, join = machine.environ, os.path.join
    if client == "gemini-cli":
        return join(environ.get("GEMINI_CLI_HOME") or machine.home, ".gemini")
    variable, folder = {"qwen": ("QWEN_HOME", ".qwen"), "codex": ("CODEX_HOME", ".codex")}.get(
        client, ("COPILOT_HOME", ".copilot")
    )
    return environ.get(variable) or join(machine.home, folder)


def _gemini(home: str, machine: Machine) -> bool:
    told = machine.environ.get("GEMINI_CLI_TRUST_WORKSPACE")
    return told == "true" or (told != "false" and _by_rules(home, machine, "GEMINI_CLI", asks=True))


def _qwen(home: str, machine: Machine) -> bool:
    return _by_rules(home, machine, "QWEN_CODE", asks=False)


def _by_rules(home: str, machine: Machine, prefix: str, *, asks: bool) -> bool:
    """Apply the rules of Gemini CLI and its descendants: the longest path with a rule decides.

    `asks` is the default of the setting.
    """
    if _member(_values(os.path.join(home, "settings.json"), JSON), asks, "security", "folderTrust", "enabled") is False:
        return True
    path = machine.environ.get(f"{prefix}_TRUSTED_FOLDERS_PATH") or os.path.join(home, "trustedFolders.json")
    longest, trusted = -1, False
    for rule, level in _values(path, JSON).items():
        root = os.path.dirname(rule) if level == "TRUST_PARENT" else rule
        if len(rule) > longest and _inside(machine.cwd, [root]):
            longest, trusted = len(rule), level in ("TRUST_FOLDER", "TRUST_PARENT")
    return trusted


def _codex(home: str, machine: Machine) -> bool:
    """Return whether Codex trusts the directory itself, or the git working tree around it."""
    values = _values(os.path.join(home, "config.toml"), TOML)
    folders = [folder for folder in (machine.cwd, machine.repository, machine.main) if folder]
    return any(_member(values, "", "projects", folder, "trust_level") == "trusted" for folder in folders)


def _copilot(home: str, machine: Machine) -> bool:
    values = _values(os.path.join(home, "config.json"), JSON)
    folders = [_member(values, [], key) for key in ("trustedFolders", "trusted_folders")]
    return machine.environ.get("COPILOT_ALLOW_ALL") == "true" or any(
        _inside(machine.cwd, some) for some in folders if isinstance(some, list)
    )


_TRUSTS = {"gemini-cli": _gemini, "qwen": _qwen, "codex": _codex, "copilot": _copilot}


def _inside(folder: str, roots: Iterable[Any]) -> bool:
    real = os.path.join(os.path.realpath(folder), "")
    return any(real.startswith(os.path.join(os.path.realpath(root), "")) for root in roots if isinstance(root, str))


def _member(values: Any, default: Any, *keys: str) -> Any:
    """Return the value at a path of keys."""
    for key in keys:
        if not isinstance(values, dict) or key not in values:
            return default
        values = values[key]
    return values


def _values(path: str, form: str) -> Mapping[str, Any]:
    """Return the values in a file of a client; an empty mapping if it is missing or unreadable."""
    try:
        values = plain(read(load(path).text, form))
    except ConfigError:
        return {}
    return values if isinstance(values, dict) else {}
