import json
import sys

import pytest

from mcpspy.gate_files.__main__ import main
from tests import limits

FILE = "[[gate]]\nwhen = 'from:client'\ndelay = '2s'\n"


def test_the_gates_of_a_file_come_as_json(tmp_path):
    path = tmp_path / "gates.toml"
    path.write_text(FILE)
    argv = [sys.executable, "-m", "mcpspy.gate_files", str(path), "--transport", "stdio"]
    done = limits.run(argv, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [{"name": "1", "when": {"from": "client"}, "action": {"delay": 2_000_000_000}}]


def test_a_mistake_is_one_line_and_exit_status_2(tmp_path, capsys):
    path = tmp_path / "gates.toml"
    path.write_text(FILE.replace("delay", "dealy"))
    assert main([str(path), "--transport", "http"]) == 2
    assert capsys.readouterr() == ("", f"mcpspy: {path}:3:1: a gate has no key \"dealy\"; did you mean 'delay'?\n")


def test_a_transport_is_one_of_the_table(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["gates.toml", "--transport", "pigeon"])
    assert ended.value.code == 2
    assert "invalid choice: 'pigeon'" in capsys.readouterr().err
