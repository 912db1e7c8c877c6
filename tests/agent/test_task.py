"""The task of docs/agents.md: find the failing call of the demo session, the blamed side, and the fix."""

import os
import re
import sys

import pytest

import mcpspy
from mcpspy.agent.clean import size_of
from mcpspy.agent.problems import find_problems
from mcpspy.agent.rows import read_message
from mcpspy.agent.sessions import list_sessions
from tests import limits

PAGE = os.path.join(os.path.dirname(os.path.dirname(mcpspy.__file__)), "docs", "agents.md")


@pytest.mark.field
def test_three_calls_are_enough(folder):
    path = str(folder.path / "demo.jsonl")
    limits.run([sys.executable, "-m", "mcpspy.demo.client", "-o", path], check=True, capture_output=True)
    session = list_sessions(folder.captures)["sessions"][0]["session"]
    problems = find_problems(folder.captures, session=session)
    failed = problems["failed"][0]
    message = read_message(folder.captures, address=failed["at"])
    assert (failed["rule"], failed["blame"]) == ("tools/arguments", "client")
    assert "validate the arguments" in message["findings"][0]["fix"]
    assert size_of([problems, message]) < 4000


def test_the_transcript_on_the_page_is_within_six_calls_and_20_kb():
    with open(PAGE, encoding="utf-8") as file:
        transcript = file.read().partition("## A task")[2].partition("```\n")[2].partition("```")[0]
    calls = re.findall(r"^> \w+ {.*}$", transcript, re.MULTILINE)
    assert 0 < len(calls) <= 6
    assert len(transcript.encode()) < 20_000
