"""docs/tutorial.md, followed as a reader would: its files are saved, its commands typed, and they print what it shows.

It starts a dozen processes with the SDK in them, so it is marked `field`. What the page installs is in our own
environment.
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
    (r"#\d+", "#N"),  # when stderr is opened, other numbers follow
    (r"\b\d+\.\d{3}\b", "SECONDS"),
    (r"\b[\d.]+ (?:ms|µs)", "LATENCY"),
    (r"\bin [\d.]+s\b", "DURATION"),
)
"""What is new in each run, and what it is compared as."""


def steps():
    """Files to save, and commands to type with what they print, in the order of the page."""
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
    """A text without what is new in each run, on one line: how wide a terminal is does not count."""
    for pattern, name in VARYING:
        text = re.sub(pattern, name, text)
    return " ".join(text.split())


def pattern_of(printed):
    """`…` on the page is any text: what was left out, or what a narrow terminal has no room for."""
    return re.compile(".*?".join(re.escape(part.strip()) + r"\s*" for part in normal(printed).split("…")))


@pytest.fixture
def shell(tmp_path):
    """Runs a line of shell where the reader is, and returns the exit status and what it printed."""
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
