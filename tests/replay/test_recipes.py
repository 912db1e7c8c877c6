"""The handwritten job of docs/recipes/ci.md, run as GitHub runs it, without its downloads."""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.cli.test_replay import SESSION
from tests.limits import LIMIT
from tests.replay import scripts
from tests.transcript import capture

RECIPE = Path(__file__).parent.parent.parent / "docs" / "recipes" / "ci.md"
SESSION_OF_TODAY = f"""
import subprocess, sys
lines = {[line.partition("> ")[2] for line in SESSION.splitlines() if "> {" in line]!r}
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
for line in lines:
    print(line, file=server.stdin, flush=True)
    if '"id"' in line:
        server.stdout.readline()
server.communicate()
"""


def job():
    _, text = (part.partition("```\n")[0] for part in RECIPE.read_text(encoding="utf-8").split("```yaml\n")[1:])
    return YAML(typ="safe").load(text)


@pytest.fixture
def project(tmp_path):
    """A repository with a server, a client program, a capture of their session, and a lock."""
    shutil.copy(scripts.SERVER[-1], tmp_path / "weather_server.py")
    (tmp_path / "tests" / "captures").mkdir(parents=True)
    (tmp_path / "tests" / "session.py").write_text(SESSION_OF_TODAY, encoding="utf-8")
    session = tmp_path / "tests" / "captures" / "weather.jsonl"
    capture(session, SESSION)
    command = [sys.executable, "-m", "mcpspy", "lock", session, "-o", tmp_path / "mcp.lock.json"]
    subprocess.run(command, check=True, capture_output=True, timeout=LIMIT)
    return tmp_path


def run(project, *only):
    """Run the job, or some steps of it; return the exit status of each step by name."""
    environ = os.environ | {
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),
        "GITHUB_STEP_SUMMARY": str(project / "summary.md"),
        "PYTHONPATH": str(project),
    }
    found = {}
    for step in job()["jobs"]["replay"]["steps"]:
        if step.get("if") == "failure()" and not any(found.values()):
            continue
        if "name" in step and step["name"] in (only or {step["name"]}):
            command = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
            done = subprocess.run(command, cwd=project, env=environ, capture_output=True, timeout=LIMIT, check=False)
            found[step["name"]] = done.returncode
    return found


def test_the_job_is_one_that_github_takes():
    whole = job()
    assert set(whole) == {"name", "on", "permissions", "jobs"}
    for step in whole["jobs"]["replay"]["steps"]:
        assert ("uses" in step) != ("run" in step)
        assert set(step) <= {"name", "uses", "run", "if", "with"}


def test_a_server_passes_until_it_changes_and_everything_that_is_kept_is_there(project):
    assert run(project) == {"Record": 0, "Scrub": 0, "Check": 0, "Lock": 0, "Replay": 0}
    (kept,) = [it["with"]["path"].split() for it in job()["jobs"]["replay"]["steps"] if "upload" in it.get("uses", "")]
    assert all((project / path).exists() for path in kept)
    for report in ("check.xml", "replay/weather.xml"):
        suites = ET.parse(project / report).getroot()  # noqa: S314 (our own)
        assert (int(suites.get("tests")) > 0, suites.get("failures")) == (True, "0")
    server = project / "weather_server.py"
    server.write_text(server.read_text(encoding="utf-8").replace("light rain", "sun"), encoding="utf-8")
    assert run(project, "Replay", "Tell") == {"Replay": 1, "Tell": 0}
    assert ET.parse(project / "replay" / "weather.xml").getroot().get("failures") == "1"  # noqa: S314 (our own)
    summary = (project / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("### weather\n```\n")
    assert "#10 tools/call get_forecast: changed" in summary
