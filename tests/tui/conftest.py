import pytest

from mcpspy.tui.model.timeline import OpenCapture
from tests.relay.conftest import wrap  # noqa: F401 (a fixture: servers behind a relay, all of them ended)


@pytest.fixture
def read():
    """Opens captures and reads them to the end; all of them are closed."""
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
