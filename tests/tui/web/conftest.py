import os
import subprocess
import sys
from contextlib import closing

import pytest

from tests import limits
from tests.tui.web.browser import LIMIT, Browser


@pytest.fixture
def served(tmp_path):
    """Start `mcpspy tui --web` on targets, and return the process and its link."""
    running = []

    def start(*targets):
        words = [sys.executable, "-m", "mcpspy", "tui", "--web", "127.0.0.1:0", *map(str, targets)]
        process = limits.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"HOME": str(tmp_path)}
        )
        running.append(process)
        link = process.stdout.readline().strip()
        assert link, process.stderr.read()
        return process, link

    yield start
    for process in running:
        process.kill()
        process.communicate(timeout=LIMIT)


@pytest.fixture
def browser(tmp_path):
    with closing(Browser(tmp_path)) as found:
        yield found
