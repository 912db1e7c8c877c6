import os
import subprocess
import sys
from contextlib import closing

import pytest

from tests import limits
from tests.tui.web.browser import LIMIT, Browser


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Start `mcpspy tui --web` on targets, and return the process and its link. All end with the module."""
    running = []
    home = str(tmp_path_factory.mktemp("home"))

    def start(*targets):
        words = [sys.executable, "-m", "mcpspy", "tui", "--web", "127.0.0.1:0", *map(str, targets)]
        process = limits.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"HOME": home}
        )
        running.append(process)
        link = process.stdout.readline().strip()
        assert link, process.stderr.read()
        return process, link

    yield start
    for process in running:
        process.kill()
        process.communicate(timeout=LIMIT)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser for all tests of a module."""
    with closing(Browser(tmp_path_factory.mktemp("browser"))) as found:
        yield found
