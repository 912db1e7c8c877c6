"""The completion scripts as text. `tests/cli/test_complete.py` runs them."""

import re
from pathlib import Path

import pytest

from mcpspy import cli
from mcpspy.cli.completion import SHELLS
from tests import limits
from tests.optional import require

ROOT = Path(cli.__file__).parent.parent.parent


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_a_script_that_it_can_read(mcpspy, shell):
    require(shell)
    status, out, err = mcpspy("completion", shell)
    assert (status, err) == (0, "")
    assert limits.run([shell, "-n"], input=out, text=True, capture_output=True).stderr == ""


@pytest.mark.parametrize(
    ("name", "hint"), [("bahs", "did you mean 'bash'?"), ("powershell", "there are bash, zsh, fish")]
)
def test_another_shell_is_a_mistake_that_names_those_there_are(mcpspy, name, hint):
    assert mcpspy("completion", name) == (2, "", f"mcpspy: there is no completion for {name!r}; {hint}\n")


def test_help_scripts_and_readme_say_the_same_about_switching_it_on(mcpspy):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for shell, line in SHELLS.items():
        switch, place = re.split(r"    +", line)
        assert f"# Completion of mcpspy for {shell}: {switch} {place}\n" in mcpspy("completion", shell)[1]
        assert switch in readme
