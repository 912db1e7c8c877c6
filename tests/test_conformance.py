"""The official conformance suite gives the same verdicts without mcpspy and through it, and agrees with `check`."""

import sys
from pathlib import Path

import pytest

from tests import limits

ROOT = Path(__file__).parent.parent
SECONDS = 7200  # for about 150 scenarios, each without mcpspy and through one or two programs


@pytest.mark.field
@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.needs("npm", ".peers/mitm")
def test_every_verdict_is_equal_and_every_finding_was_judged(tmp_path):
    """The same script writes docs/conformance.md."""
    script = [sys.executable, ROOT / "scripts" / "conformance", "--cache", tmp_path, "--page", tmp_path / "page.md"]
    done = limits.run(script, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
