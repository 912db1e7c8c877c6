from contextlib import closing

import pytest

from mcpspy.browse.timeline import OpenCapture
from tests.optional import require
from tests.relay.conftest import wrap  # noqa: F401 (a fixture: servers behind a relay, ended at the end)
from tests.tui.terminal import Terminal


@pytest.fixture
def read():
    """Open captures and read them to the end. All of them are closed at the end."""
    opened = []

    def open_(path):
        session = OpenCapture(str(path))
        opened.append(session)
        while session.grow(1):
            pass
        return session

    yield open_
    for session in opened:
        session.close()


@pytest.fixture
def terminal(tmp_path):
    """A real terminal. Its home is the test's folder."""
    require("tmux")
    with closing(Terminal(tmp_path)) as opened:
        yield opened
