"""The key that secrets are replaced with lies in the home directory: a test has one of its own."""

import pytest


@pytest.fixture(autouse=True)
def _home(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
