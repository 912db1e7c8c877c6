import pytest

from tests.relay.mitm.kept import Kept


@pytest.fixture
def kept(tmp_path):
    kept = Kept(tmp_path)
    yield kept
    kept.origin.end()
