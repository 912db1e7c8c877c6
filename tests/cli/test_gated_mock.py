"""`mcpspy mock --gate`: a faulty server made from a capture."""

import json

import pytest

from tests.cli.test_gates import ANSWER, BERGEN, OSLO, REFUSED, run
from tests.cli.test_replay import SESSION
from tests.replay.scripts import call, result
from tests.replay.webs import served
from tests.transcript import capture

CLOUDY = call(8, "get_forecast", '{"city":"Paris"}')


def test_a_gate_stands_before_a_mock_on_stdio(gates, tmp_path, monkeypatch):
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path / "captures"))
    path = capture(tmp_path / "w.jsonl", SESSION)
    code, out, err = run("mock", path, "--gate", gates(ANSWER), said=[BERGEN, OSLO])
    assert (code, out, err) == (0, [REFUSED, result(7, "12 °C, light rain")], [])
    assert not (tmp_path / "captures").exists()


def test_a_mock_behind_a_gate_keeps_its_options_and_its_exit_status(gates, tmp_path):
    path = capture(tmp_path / "w.jsonl", SESSION)
    code, out, err = run("mock", path, "--gate", gates(ANSWER), said=[CLOUDY])
    assert (code, len(out), len(err)) == (1, 1, 1)
    assert "get_forecast was not recorded" in err[0]
    code, out, err = run("mock", path, "--loose", "--gate", gates(ANSWER), said=[CLOUDY])
    assert (code, out) == (0, [result(8, "12 °C, light rain")])


@pytest.mark.parametrize("status", [False, True])
def test_a_gate_stands_before_a_mock_over_http(gates, tmp_path, monkeypatch, status):
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path / "captures"))
    path = capture(tmp_path / "w.jsonl", SESSION)
    with served(path, options=["--gate", gates(ANSWER)]) as mock:
        assert mock.post(BERGEN) == (200, REFUSED)
        code, text = mock.post(OSLO)
        assert (code, json.loads(text)) == (200, json.loads(result(7, "12 °C, light rain")))
        if status:
            mock.post(CLOUDY)
        code, err = mock.end()
    assert code == int(status), err
    assert ("get_forecast was not recorded" in err) is status
    assert not (tmp_path / "captures").exists()
