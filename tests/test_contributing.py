"""The pages and workflows for contributors name files and commands that exist."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from mcpspy.cli.commands import COMMANDS

ROOT = Path(__file__).parent.parent
PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", ".github/pull_request_template.md")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
OWN_FILE = re.compile(r"(?<![\w./-])((?:scripts|tests|docs|mcpspy|\.ci|\.github)/[\w./-]*\w/?)")
PROGRAMS = {"git", "cd"}
"""Programs that a page may call besides files of this repository."""


def read(path):
    """Return a YAML file as values."""
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


def missing(text):
    """Return the files and commands that a text names but that do not exist."""
    files = {name for name in OWN_FILE.findall(text) if not (ROOT / name).exists()}
    links = {name for name in re.findall(r"\]\(([^)#:]+)[)#]", text) if not (ROOT / name).exists()}
    commands = {name for name in re.findall(r"`mcpspy ([a-z_]+)", text) if name not in COMMANDS}
    return files | links | commands


def shell_lines(text):
    """Yield the commands in the shell blocks of a page, without their comments."""
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        yield from (line.partition("  #")[0].strip() for line in block.splitlines() if line.strip())


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_names_exists(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not missing(text)
    assert max(map(len, text.splitlines())) <= 120
    for line in shell_lines(text):
        program = line.removeprefix("MCPSPY_RENEW=1 ").split()[0]
        own = program.startswith((".venv/bin/", "scripts/")) or program in PROGRAMS
        assert own, f"{line!r} calls something else"


def test_a_planted_name_is_found():
    assert missing("`scripts/tset` and [x](docs/no.md) `mcpspy shwo a`") == {"scripts/tset", "docs/no.md", "shwo"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_pins_actions_and_calls_scripts_that_exist(path):
    workflow = read(path)
    assert workflow["permissions"] in ({}, {"contents": "read"}), "a job asks for what it needs"
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"]
        for step in job["steps"]:
            if "uses" in step:
                assert re.search(r"@([0-9a-f]{40}|v\d+\.\d+\.\d+)$", step["uses"])
                if step["uses"].startswith("actions/checkout@"):
                    assert step["with"]["persist-credentials"] is False
            else:
                assert "${{" not in step["run"], "what comes from outside is never part of a script"
                assert not missing(step["run"])


def test_only_publishing_may_write():
    jobs = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    writers = [name for name, job in jobs.items() if "write" in job["permissions"].values()]
    assert writers == ["publish"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert set(jobs["publish"]["needs"]) == {"test", "build"}


def test_every_python_that_the_package_takes_is_tested():
    job = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["linux"]
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_an_issue_form_asks_for_what_is_needed(path):
    form = read(path)
    if path.name == "config.yml":
        assert set(form) == {"blank_issues_enabled"}
        return
    assert form["name"]
    assert form["description"]
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in fields}) == len(fields)
    for part in fields:
        assert part["type"] in {"input", "textarea", "dropdown"}
        assert part["attributes"]["label"]
    text = path.read_text(encoding="utf-8")
    if path.name != "feature.yml":
        assert "mcpspy --version --verbose" in text
        assert "mcpspy share" in text


def test_the_hooks_run_the_checks_of_scripts_test():
    hooks = read(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    checks = [hook["entry"].removeprefix(".venv/bin/python -m ") for hook in hooks]
    (listed,) = re.findall(r"for check in \((.*)\):", (ROOT / "scripts" / "test").read_text(encoding="utf-8"))
    assert ", ".join(f'"{check}"' for check in checks) == listed
