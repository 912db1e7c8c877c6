"""The benchmarks run; what they measure is for a quiet machine to say."""

import json
import subprocess
import sys


def test_the_relay_benchmark_runs_and_loses_nothing(tmp_path):
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.relay", "--quick", "--json", str(figures)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(figures.read_text())
    assert "200 B" in done.stdout
