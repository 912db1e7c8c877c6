import re

from mcpspy.report.checked import check
from tests.report.captures import hostile
from tests.report.findings import told


def test_github_commands_cannot_be_forged_by_a_peer(tmp_path):
    text = told("github", hostile(tmp_path / "a"))
    lines = text.splitlines()
    assert len(lines) == len(check(str(tmp_path / "a")).findings)
    for command in lines:
        assert re.fullmatch(r"::(error|warning|notice) file=[^,:]*,line=\d+,title=[^,:]*::.*", command)
        assert "%0A::" not in command
