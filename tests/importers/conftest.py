"""The key for redaction is in the home directory, so each test has its own home directory."""

import pytest


@pytest.fixture(autouse=True)
def _home(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
