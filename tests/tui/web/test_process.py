"""The process behind a page. `test_page` tests its input and output."""

import os
import subprocess
import sys

import pytest

from tests.limits import LIMIT
from tests.transcript import capture

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs pipes that a thread can wait for")


def test_it_ends_with_its_input(tmp_path):
    words = [sys.executable, "-m", "mcpspy.tui.web.process", capture(tmp_path / "a.jsonl", "> {}")]
    done = subprocess.run(
        words, input=b"", capture_output=True, timeout=LIMIT, check=False, env=os.environ | {"HOME": str(tmp_path)}
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"__GANGLION__\n")
    assert done.stdout.endswith(b'{"type": "exit"}')
