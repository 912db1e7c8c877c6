"""The modes in which `mitm` can start mitmproxy."""

import pytest

from tests import limits
from tests.peers import prepare
from tests.relay.interception import needs_mitmproxy

pytestmark = needs_mitmproxy

TARGET = """
import sys
from mcpspy.errors import UsageError
from mcpspy.relay.mitm.master import target
try:
    print(target(sys.argv[1]))
except UsageError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("mode", "answer"),
    [
        ("regular", "None"),
        ("reverse:https://example.com", "('example.com', 443)"),
        ("revers:https://example.com", "the modes are regular, upstream:URL, reverse:URL"),
        ("upstream:http://me:word@example.com", "a URL in it must not hold a password"),
    ],
)
def test_a_mode_leads_to_a_server_or_is_refused(mode, answer):
    """A password in it is not repeated."""
    run = limits.run([prepare.python("mitm"), "-c", TARGET, mode], capture_output=True, text=True, check=True)
    assert answer in run.stdout
    assert "word" not in run.stdout.replace("password", "")
