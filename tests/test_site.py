"""The documentation site: `scripts/site` builds it without a warning, and it loads nothing from another host."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import limits

ROOT = Path(__file__).parents[1]
LOADED = re.compile(r"""<(?:script|img|iframe|link) [^>]*(?:src|href)=["']?(?:https?:)?//[^ >]+""")


@pytest.mark.timeout(400)
@pytest.mark.field  # it needs PyPI, and 15 s
def test_the_site_is_built_and_loads_nothing_from_elsewhere():
    command = [sys.executable, ROOT / "scripts" / "site"]
    done = limits.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    pages = sorted((ROOT / "build" / "site").rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").rglob("*.md")))
    for page in pages:
        assert LOADED.findall(page.read_text(encoding="utf-8")) == [], page
