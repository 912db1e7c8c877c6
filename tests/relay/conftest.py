import pytest

from tests.relay.harness import Wrapped, end_group


@pytest.fixture
def wrap(tmp_path):
    """Start servers behind `mcpspy wrap`, each with its own capture file; end all of them after the test."""
    started = []

    def start(*command, options=None, **popen):
        popen.setdefault("start_new_session", True)
        process = Wrapped(tmp_path / f"capture-{len(started)}.jsonl", command, options, **popen)
        started.append(process)
        return process

    yield start
    for process in started:
        end_group(process)
