"""`mcpspy --version --verbose` prints, aligned, the facts for a bug report and nothing private."""

import os
import sys
from importlib import metadata

from mcpspy import __version__
from mcpspy.cli import versions


def rows(out):
    """Return the lines by their first words."""
    return {line.split("  ")[0] or line.split()[0]: line for line in out.splitlines()}


def test_the_report_has_versions_extras_and_places(mcpspy, monkeypatch):
    monkeypatch.setenv("TERM", "xterm\x1b[2J")
    status, out, err = mcpspy("--version", "--verbose")
    assert (status, err) == (0, "")
    found = rows(out)
    assert found["mcpspy"].split()[1] == f"{__version__},"
    assert f"CPython {sys.version.split()[0]}" in found["Python"]
    assert found["captures"].endswith(f"  ~{os.sep}.mcpspy{os.sep}captures, does not exist yet")
    assert found["terminal"].endswith(f"none (stdout is not a terminal), TERM=xterm\\e[2J, {sys.stdout.encoding}")
    assert found["orjson"].endswith(f"  {metadata.version('orjson')}")
    assert {"dependencies", "extras", "aiohttp", "agent", "mitm", "otel", "reload", "sql", "web"} < set(found)
    assert not {"dev", "pytest"} & set(found)
    assert out.isascii()
    columns = {line.rindex("  ") for line in out.splitlines() if "  " in line.strip()}
    assert len(columns) == 1, "the values stand below each other"


def test_no_value_of_a_variable_and_no_home_is_shown(mcpspy, home, monkeypatch):
    monkeypatch.setenv("SSH_CONNECTION", "10.1.2.3 5 10.1.2.4 22")
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(home / "of a customer"))
    monkeypatch.setattr(sys, "executable", str(home / "venv" / "python"))
    (home / "of a customer").mkdir()
    _, out, _ = mcpspy("--version", "--verbose")
    assert str(home) not in out
    assert "10.1.2" not in out
    found = rows(out)
    assert found["captures"].endswith(f"  ~{os.sep}of a customer, from MCPSPY_CAPTURE_DIR")
    assert found["Python"].endswith(f", ~{os.sep}venv{os.sep}python")
    assert "SSH_CONNECTION is set" in found["terminal"]


def test_what_the_package_requires_is_parsed():
    dependencies, extras = versions.parse(
        [
            "orjson>=3.10",
            "aiohttp<3.15,>=3.14",
            "backports-zstd>=1; python_version < '3.14'",
            'mitmproxy<12,>=11; (python_version < "3.12") and extra == "mitm"',
            "mitmproxy<14,>=12; (python_version >= '3.12') and extra == 'mitm'",
            "ruff>=0.8; extra == 'dev'",
            "",
        ]
    )
    assert dependencies == {"aiohttp": "", "backports-zstd": "python_version < '3.14'", "orjson": ""}
    assert extras == {"mitm": ["mitmproxy"]}


def test_what_is_not_installed_is_named():
    assert versions.of_dependency("no-such-package", "") == "not installed"
    assert versions.of_dependency("no-such-package", "os_name == 'nt'") == "not installed; needed if os_name == 'nt'"
    assert versions.of_extra("x", ["no-such-package"]) == "not installed (mcpspy[x])"
    assert versions.of_extra("x", ["no-such-package", "orjson"]) == (
        f"no-such-package missing, orjson {metadata.version('orjson')}"
    )


def test_without_an_installation_there_is_a_report_too(mcpspy, monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    _, out, _ = mcpspy("--version", "--verbose")
    assert rows(out)["dependencies"].endswith("  unknown: mcpspy is not installed as a package")
