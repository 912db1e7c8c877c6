import pytest

from tests.relay.harness import Wrapped, end_group


@pytest.fixture
def wrap(tmp_path):
    """Starts servers behind `mcpspy wrap`, each capture in a file of its own; ends all of them."""
    started = []

    def start(*command, options=None, **popen):
        popen.setdefault("start_new_session", True)
        process = Wrapped(tmp_path / f"capture-{len(started)}.jsonl", command, options, **popen)
        started.append(process)
        return process

    yield start
    for process in started:
        end_group(process)
