import json

import pytest

from tests.relay import gated_wrap
from tests.relay.harness import Wrapped, end_group
from tests.relay.interception import certificate

__all__ = ["certificate"]  # for all tests of relays


@pytest.fixture
def wrap(tmp_path):
    """Start servers behind `mcpspy wrap`, each with its own capture file; end all of them after the test.

    With compiled `gates`, `wrap` is the one of `gated_wrap.py`.
    """
    started = []

    def start(*command, options=None, gates=None, **popen):
        if gates is not None:
            popen["program"] = (gated_wrap.__file__, json.dumps(gates))
        popen.setdefault("start_new_session", True)
        process = Wrapped(tmp_path / f"capture-{len(started)}.jsonl", command, options, **popen)
        started.append(process)
        return process

    yield start
    for process in started:
        end_group(process)
