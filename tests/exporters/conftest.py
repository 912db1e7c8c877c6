from contextlib import closing

import pytest

from tests.exporters.consumers import Mermaid


@pytest.fixture(scope="module")
def mermaid(tmp_path_factory):
    with closing(Mermaid(tmp_path_factory.mktemp("browser"))) as found:
        yield found
