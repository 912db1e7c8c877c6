from mcpspy.report.differences.github import as_github
from tests.report.differences import ALL


def test_github_gets_one_command_for_each_difference():
    lines = as_github("a,b:c.jsonl", ALL).splitlines()
    assert lines[0] == (
        "::error file=a%2Cb%3Ac.jsonl,line=9,title=#9 tools/call read%3A changed"
        '::/result/a~1b/0: recorded 1, observed "x"'
    )
    assert (
        lines[2]
        == '::error file=a%2Cb%3Ac.jsonl,title=a line that is not a message%3A extra::recorded nothing, observed "oops"'
    )
