import re

from mcpspy.report.checked import check
from tests.report.captures import faulty, hostile
from tests.report.findings import told


def test_github_shows_each_finding_beside_its_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    faulty(tmp_path / "a,b:c.jsonl")
    lines = told("github", "a,b:c.jsonl").splitlines()
    assert lines[0] == (
        "::error file=a%2Cb%3Ac.jsonl,line=10,title=mcpspy (tools/arguments)::client: arguments of echo "
        'violate its inputSchema: "text" is a required property (/params/arguments)'
    )
    assert [text.split()[0] for text in lines] == ["::error", "::error", "::warning", "::notice"]


def test_github_commands_cannot_be_forged_by_a_peer(tmp_path):
    text = told("github", hostile(tmp_path / "a"))
    lines = text.splitlines()
    assert len(lines) == len(check(str(tmp_path / "a")).findings)
    for command in lines:
        assert re.fullmatch(r"::(error|warning|notice) file=[^,:]*,line=\d+,title=[^,:]*::.*", command)
        assert "%0A::" not in command
