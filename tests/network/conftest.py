import pytest

from tests.network.authority import TestAuthority
from tests.optional import require


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    require("openssl")
    return TestAuthority(tmp_path_factory.mktemp("authority"))
