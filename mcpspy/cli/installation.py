"""The installation: the facts for a bug report (`mcpspy --version --verbose`), and how to add an optional extra.

The report has versions and names of variables. It has values only of variables that describe the terminal, and `~` for
the home directory. No package is imported to find its version, so a broken dependency cannot prevent the report.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec

import mcpspy
from mcpspy.capture.location import directory
from mcpspy.cli.output import path_text
from mcpspy.text import printable

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)[^;]*(?:;\s*(?P<marker>.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w.-]+)['"]""")
_AROUND = ("NO_COLOR", "ACCESSIBLE", "TMUX", "STY", "SSH_CONNECTION", "WT_SESSION")
"""Variables whose values are not printed, only their names: the values may contain host names."""
_INDENT = "  "


def report() -> str:
    """Return the whole report, as aligned lines of plain text."""
    import platform  # imported here: what asks for `install_command` does not need these
    from importlib import metadata

    try:
        required = metadata.requires("mcpspy") or []
    except metadata.PackageNotFoundError:  # run from a source tree
        required = []
    dependencies, extras = parse(required)
    rows = {
        "mcpspy": f"{mcpspy.__version__}, {path_text(os.path.dirname(mcpspy.__file__))}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}, {path_text(sys.executable or '?')}",
        "platform": printable(platform.platform(), 200),
        "captures": _captures(),
        "terminal": _terminal(),
        "dependencies": "" if required else "unknown: mcpspy is not installed as a package",
        **{_INDENT + name: of_dependency(name, marker) for name, marker in dependencies.items()},
        "extras": "" if required else "unknown",
        **{_INDENT + name: of_extra(name, packages) for name, packages in extras.items()},
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in rows.items())


def parse(required: Sequence[str]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Parse a `Requires-Dist` list: the dependencies, each with its marker or "", and the packages of each extra.

    The extra `dev` is left out: it is for people who develop mcpspy.
    """
    dependencies: dict[str, str] = {}
    extras: dict[str, list[str]] = {}
    for line in required:
        found = _REQUIREMENT.match(line)
        if not found:
            continue
        name, marker = found["name"], found["marker"] or ""
        if named := _EXTRA.search(marker):
            packages = extras.setdefault(named[1], [])
            if name not in packages:  # it may be listed once per Python version
                packages.append(name)
        else:
            dependencies[name] = marker
    extras.pop("dev", None)
    return dict(sorted(dependencies.items())), dict(sorted(extras.items()))


def of_dependency(name: str, marker: str) -> str:
    """Return the installed version of a package; if it is missing, when it is needed."""
    return _version(name) or (f"not installed; needed if {marker}" if marker else "not installed")


def of_extra(name: str, packages: Sequence[str]) -> str:
    """Return the packages of an extra with their versions, or that it is not installed."""
    versions = {package: _version(package) for package in packages}
    if not any(versions.values()):
        return f"not installed (mcpspy[{name}])"
    return ", ".join(f"{package} {version or 'missing'}" for package, version in versions.items())


def _version(package: str) -> str:
    from importlib import metadata

    try:
        return printable(metadata.version(package) or "unknown version", 40)
    except metadata.PackageNotFoundError:
        return ""


def _captures() -> str:
    """Return the capture directory, the variable that sets it, and whether it exists."""
    folder = directory(None, os.environ)
    origin = ", from MCPSPY_CAPTURE_DIR" if os.environ.get("MCPSPY_CAPTURE_DIR") else ""
    state = "" if os.path.isdir(folder) else ", does not exist yet"
    return f"{path_text(folder)}{origin}{state}"


def _terminal() -> str:
    return ", ".join(_terminal_facts(os.environ)) or "unknown"


def _terminal_facts(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield what affects the TUI: the kind, size and encoding of the terminal, and programs such as tmux around it."""
    if not sys.stdout.isatty():
        yield "none (stdout is not a terminal)"
    else:
        size = shutil.get_terminal_size()
        yield f"{size.columns}x{size.lines}"
    for name in ("TERM", "COLORTERM", "TERM_PROGRAM"):
        if value := environ.get(name):
            yield f"{name}={printable(value, 60)}"
    yield from (f"{name} is set" for name in _AROUND if name in environ)
    yield printable(sys.stdout.encoding or "no encoding", 40)


def install_command(extra: str) -> str:
    """Return the shell command that adds `extra` to the environment of this interpreter.

    `uv tool install` makes environments without pip.
    """
    installer = f"{sys.executable} -m pip install" if find_spec("pip") else f"uv pip install --python {sys.executable}"
    return f"{installer} 'mcpspy[{extra}]'"


def missing(what: str, package: str | None, extra: str) -> str:
    """Return that a package of an extra is missing; `what` says what needs it, such as `SQL needs`."""
    return f"{what} {printable(str(package), 60)}, which is not installed: {install_command(extra)}"
