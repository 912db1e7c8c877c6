"""The modes in which `mitm` can start mitmproxy."""

import json

from tests import limits
from tests.peers import prepare
from tests.relay.interception import needs_mitmproxy

pytestmark = needs_mitmproxy

TARGET = """
import json, sys
from mcpspy.errors import UsageError
from mcpspy.relay.mitm.master import target
answers = []
for mode in sys.argv[1:]:
    try:
        answers.append(str(target(mode)))
    except UsageError as error:
        answers.append(str(error))
print(json.dumps(answers))
"""
MODES = {
    "regular": "None",
    "reverse:https://example.com": "('example.com', 443)",
    "revers:https://example.com": "the modes are regular, upstream:URL, reverse:URL",
    "upstream:http://me:word@example.com": "cannot hold a password: put it with its URL into https_proxy",
}


def test_a_mode_leads_to_a_server_or_is_refused():
    """A password in a mode is not repeated. One process tests all modes, because importing mitmproxy takes a second."""
    run = limits.run([prepare.python("mitm"), "-c", TARGET, *MODES], capture_output=True, text=True, check=True)
    told = dict(zip(MODES, json.loads(run.stdout), strict=True))
    assert {mode for mode, answer in told.items() if MODES[mode] in answer} == set(MODES), told
    assert "word" not in run.stdout.replace("password", "")
