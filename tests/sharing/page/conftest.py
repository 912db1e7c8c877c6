from contextlib import closing

import pytest

from tests.sharing.page.browsing import Page
from tests.sharing.page.sources import PAGE
from tests.tui.web.browser import Browser


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """One browser for all tests of pages; it logs its network requests."""
    with closing(Browser(tmp_path_factory.mktemp("browser"), logs=("performance",))) as browser:
        yield browser


@pytest.fixture(scope="session")
def page(chromium, tmp_path_factory):
    return Page(chromium, tmp_path_factory.mktemp("pages"))


@pytest.fixture
def everything(page):
    page.open(PAGE.parents[2] / "captures" / "everything-2025-11-25.jsonl", "#27")
    yield page
    assert page.browser.log() == []
