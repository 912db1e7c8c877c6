"""The content of the sdist and the wheel. Each of them installs and runs."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from mcpspy import __version__

ROOT = Path(__file__).parent.parent
MODULES = {path.relative_to(ROOT).as_posix() for path in (ROOT / "mcpspy").rglob("*.py")}
BESIDE_CODE = {
    "mcpspy/cli/completions": {".bash", ".fish", ".zsh", ".json"},
    "mcpspy/sharing/page": {".js", ".css", ".html"},
    "mcpspy/tui": {".tcss"},
}
"""Folders with data files that the code in them reads, and the suffixes of these files."""
LARGEST = 2_000_000  # bytes, for each of the two files
LIMIT = 300  # seconds


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the sdist, and the wheel from the unpacked sdist, as an installer does. Return both paths."""
    folder = tmp_path_factory.mktemp("dist")
    (sdist,) = SdistBuilder(str(ROOT)).build(directory=str(folder))
    with tarfile.open(sdist) as tar:
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python before 3.11.4 has no filters
        tar.extractall(folder, **safe)  # noqa: S202 (our own archive)
    (wheel,) = WheelBuilder(str(folder / f"mcpspy-{__version__}")).build(directory=str(folder))
    return Path(sdist), Path(wheel)


def data(names):
    """Return the files that are not modules."""
    return {name for name in names if name.startswith("mcpspy/") and not name.endswith(".py")}


def test_the_wheel_has_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built[1]) as wheel:
        names = set(wheel.namelist())
        metadata = wheel.read(f"mcpspy-{__version__}.dist-info/METADATA").decode()
    info = {name for name in names if name.startswith(f"mcpspy-{__version__}.dist-info/")}
    assert {name.partition("/")[2] for name in info} == {
        "METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE",
    }  # fmt: skip
    assert names - info - data(names) == MODULES
    assert {os.path.dirname(name) for name in data(names)} == set(BESIDE_CODE)
    assert not {it for it in data(names) if os.path.splitext(it)[1] not in BESIDE_CODE[os.path.dirname(it)]}
    assert data(names) == {
        path.relative_to(ROOT).as_posix()
        for folder, kinds in BESIDE_CODE.items()
        for path in (ROOT / folder).iterdir()
        if path.suffix in kinds
    }
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    assert built[1].stat().st_size < LARGEST


def test_the_sdist_has_what_builds_and_explains_the_package(built):
    with tarfile.open(built[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    outside = {name for name in names if not name.startswith(("mcpspy/", "docs/"))}
    assert outside == {
        ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "PKG-INFO", "README.md", "SECURITY.md",
        "pyproject.toml",
    }  # fmt: skip
    assert {name for name in names if name.endswith(".py")} == MODULES
    assert not {name for name in names if name.endswith((".jsonl", ".pyc"))}
    assert built[0].stat().st_size < LARGEST


@pytest.mark.field
@pytest.mark.timeout(3 * LIMIT)
@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_each_installs_into_a_fresh_environment_and_runs(built, tmp_path, kind):
    """It needs PyPI."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, timeout=LIMIT)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    home = {"HOME": str(tmp_path), "MCPSPY_CAPTURE_DIR": str(tmp_path / "captures")}

    def run(*command):
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT, check=False, cwd=tmp_path, env=os.environ | home
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(python, "-m", "pip", "install", "-q", built[kind == "wheel"])
    assert "No broken requirements found." in run(python, "-m", "pip", "check")
    script = python.parent / "mcpspy"
    assert run(script, "--version") == run(python, "-m", "mcpspy", "--version") == f"mcpspy {__version__}\n"
    assert "not installed (mcpspy[sql])" in run(script, "--version", "--verbose")
    assert run(python, "-m", "mcpspy", "--help").startswith("usage: mcpspy")
    assert "tools/call get_forecast" in run(script, "demo")
    (capture,) = (tmp_path / "captures").iterdir()
    assert "tools/arguments" in run(script, "check", "--fail-on", "never", capture)
    run(script, "share", "--yes", capture, "-o", tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 100_000
    assert "complete" in run(script, "completion", "bash")
    for name in ("sharing/page/page.html", "tui/app.tcss"):
        assert list((tmp_path / "venv").rglob(f"mcpspy/{name}"))


@pytest.fixture(scope="session")
def uv(tmp_path_factory):
    """Return the path of the installed uv, or install it from PyPI."""
    found = shutil.which("uv")
    if not found:
        folder = tmp_path_factory.mktemp("uv")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=LIMIT)
        found = folder / ("Scripts" if os.name == "nt" else "bin") / "uv"
        install = [found.parent / "python", "-m", "pip", "install", "-q", "uv"]
        if subprocess.run(install, check=False, timeout=LIMIT).returncode:
            pytest.skip("uv is not installed, and PyPI does not answer")
    return found


@pytest.mark.field
@pytest.mark.timeout(3 * LIMIT)
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_every_extra_resolves(uv, tmp_path, version):
    """It needs PyPI, but not a Python of that version."""
    project = ROOT / "pyproject.toml"
    extras = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for options in ([], *(["--extra", extra] for extra in extras)):
        compiled = tmp_path / "requirements.txt"
        command = [uv, "pip", "compile", "--quiet", "--python-version", version, project, "-o", compiled, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        if "error sending request" in done.stderr or "Failed to fetch" in done.stderr:
            pytest.skip("PyPI does not answer")
        assert done.returncode == 0, f"Python {version} {options}: {done.stderr}"
        assert "aiohttp==" in compiled.read_text(encoding="utf-8")
        compiled.unlink()


@pytest.mark.field
@pytest.mark.timeout(3 * LIMIT)
def test_the_licences_of_all_dependencies_are_listed():
    """It needs PyPI."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "dependencies", "--check"],
        capture_output=True, text=True, timeout=2 * LIMIT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
