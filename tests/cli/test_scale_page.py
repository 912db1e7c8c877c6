"""Run the commands of docs/scale.md in order. tests/test_documented_commands.py checks that mcpspy has them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_replay import SESSION
from tests.limits import LIMIT
from tests.replay import scripts
from tests.telemetry.collector import Collector

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?ms)^```sh\n(.*?)^```", PAGE)
ASKED = "".join(line.partition("> ")[2] + "\n" for line in SESSION.splitlines() if "> {" in line)


@pytest.mark.field
def test_all_of_them_run(tmp_path):
    """Only --follow is left out, as it has no end, and the addresses and paths are those of the test."""
    shutil.copy(scripts.SERVER[-1], tmp_path / "weather_server.py")
    environ = os.environ | {
        "HOME": str(tmp_path),
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),
    }
    for name in ("MCPSPY_CAPTURE_DIR", "XDG_CACHE_HOME"):
        environ.pop(name, None)
    printed = []
    with Collector() as collector:
        places = {"http://collector.example:4318": collector.url, "/srv/mcp": str(tmp_path), " --follow": ""}
        for block in BLOCKS:
            for place, ours in places.items():
                block = block.replace(place, ours)  # noqa: PLW2901 (the changed block is what runs)
            command = ["bash", "-e", "-o", "pipefail", "-c", block]
            done = subprocess.run(
                command, cwd=tmp_path, env=environ, input=ASKED, capture_output=True, text=True,
                timeout=LIMIT, check=False,
            )  # fmt: skip
            assert done.returncode == 0, (block, done.stdout, done.stderr)
            printed.append(done.stdout)
        counts = collector.counts()
    exchanges = ASKED.count('"id"')
    assert len(counts) == counts.total() == exchanges
    assert {resource["host.name"] for resource in collector.resources} == {os.uname().nodename}
    assert any(f"│ {exchanges}" in " ".join(text.split()) for text in printed), (
        printed
    )  # the number that DuckDB counts in the lake
    assert len(list((tmp_path / "lake" / "captures").rglob("*.parquet"))) == 2  # one is a copy without secrets
