"""Follow docs/tutorial.md as a reader does: save its files, type its commands, compare the output with the page.

It starts a dozen processes that import the SDK, so it is marked `field`. The packages that the page installs are in
this environment already.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.limits import LIMIT

PAGE = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(?:[Ss]ave this as `([^`]+)`[^`]*)?^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
VARYING = (
    (r"\S*/\.mcpspy/captures/\S+?\.jsonl", "CAPTURE"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"#\d+", "#N"),  # the numbers depend on when stderr is opened
    (r"\b\d+\.\d{3}\b", "SECONDS"),
    (r"\b[\d.]+ (?:ms|µs|s)\b", "LATENCY"),
    (r"\bin [\d.]+s\b", "DURATION"),
)
"""Patterns of texts that differ in each run, and their replacements for the comparison."""


def steps():
    """Yield the files to save, and the commands to type with their output, in the order of the page."""
    for name, language, text in BLOCK.findall(PAGE):
        if name:
            yield "file", name, text
        elif language == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, printed = part.partition("\n")
                yield "command", command, printed
        else:
            assert language == "sh", language
            if "mcpspy demo" in text:
                yield "command", "mcpspy demo", "…"


def normal(text):
    """Return a text on one line, as the terminal's width does not count, without the parts that differ in each run."""
    for pattern, name in VARYING:
        text = re.sub(pattern, name, text)
    return " ".join(text.split())


def pattern_of(printed):
    """Return a pattern in which `…` matches any text: text left out on the page, or clipped in a narrow terminal."""
    return re.compile(".*?".join(re.escape(part.strip()) + r"\s*" for part in normal(printed).split("…")))


@pytest.fixture
def shell(tmp_path):
    """Run a shell line in the reader's directory and return its exit status and output."""
    environ = os.environ | {
        "HOME": str(tmp_path / "home"),
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),
        "PYTHONUNBUFFERED": "1",  # as on a terminal
        "CI": "true",
    }
    for name in ("MCPSPY_CAPTURE_DIR", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST"):
        environ.pop(name, None)
    (tmp_path / "home").mkdir()
    (tmp_path / "weather").mkdir()

    def run(line):
        done = subprocess.run(
            ["bash", "-c", line], cwd=tmp_path / "weather", env=environ, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    return run


@pytest.mark.field
def test_the_tutorial_does_what_it_says(tmp_path, shell):
    for kind, name, text in steps():
        if kind == "file":
            path = tmp_path / "weather" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            continue
        _, printed = shell(name)
        assert pattern_of(text).fullmatch(normal(printed)), (name, printed)
    workflow = YAML(typ="safe").load((tmp_path / "weather/.github/workflows/mcp.yml").read_text(encoding="utf-8"))
    lines = {step["name"]: step["run"] for step in workflow["jobs"]["replay"]["steps"] if "run" in step}
    assert lines.pop("Install").startswith("pip install ")  # it needs the network
    assert {name: shell(line)[0] for name, line in lines.items()} == {"Scrub": 0, "Check": 0, "Replay": 0}


def test_the_page_has_a_step_for_each_file_and_command():
    kinds = [(kind, name) for kind, name, _ in steps()]
    files = [name for kind, name in kinds if kind == "file"]
    assert files == ["server.py", "client.py", "server.py", "tests/test_server.py", ".github/workflows/mcp.yml"]
    assert ("command", "mcpspy demo") in kinds
    assert len(kinds) - len(files) > 12
