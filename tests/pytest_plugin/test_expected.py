"""The expectations of a test about its sessions: the terms of a file, and messages that name frames."""

import pytest

from mcpspy.errors import UsageError
from mcpspy.pytest_plugin.expected import failures
from tests.each import each
from tests.transcript import capture

SESSION = """
    = 2025-06-18
    > 2 tools/call {"name":"echo","arguments":{"text":"a"}}
    < 2 = {"content":[]}
    > 3 tools/call {"name":"echo","arguments":{"text":"b"}}
    < 3 = {"content":[],"isError":true}
"""


@pytest.fixture
def session(tmp_path):
    return str(capture(tmp_path / "a.jsonl", SESSION))


@each(
    "expected, told",
    [
        ({"tool": "echo"}, None),
        ({"tool": "echo", "times": 2, "max_duration": "5s"}, None),
        ({"tool": "echo", "times": 1}, "expected that echo is called once; this is call 2 (#8, #10 of "),
        ({"tool": "echo", "arguments": {"text": "b"}, "times": 1}, None),
        ({"tool": "e*", "never": True, "arguments": {"text": "b"}}, 'expected that e* with /text "b" is never called'),
        ({"order": ["echo", "bye"]}, "bye was not called after echo (#8)"),
        ({"max_duration": "50s", "max_tokens": 1000, "stderr_without": "Traceback", "started_within": "5s"}, None),
        ({"no_errors": True}, "tools/call echo: the result has isError (#10, #11 of "),
    ],
)  # fmt: skip
def test_terms_are_those_of_a_file(session, expected, told):
    found = failures(expected, [session])
    assert (told in found[0]) if told else found == []


@each(
    "expected, told",
    [
        ({}, "expect\\(\\) expects nothing; it takes tool, order, max_duration"),
        ({"tol": "echo"}, "expect\\(\\) has no argument tol; did you mean 'tool'\\?"),
        ({"times": 2}, 'expect\\(\\): times is about the calls of a tool; add tool="NAME"'),
        ({"tool": "echo", "time": 1}, "expect\\(\\), tool 1: a tool has no key \"time\"; did you mean 'times'\\?"),
        ({"tool": "echo", "server": "x"}, "no session is of a server 'x'"),
        ({"max_duration": 5}, "max_duration: it is 5; write a time with its unit"),
    ],
)
def test_a_mistake_in_the_terms_is_told(session, expected, told):
    with pytest.raises(UsageError, match=told):
        failures(expected, [session])
