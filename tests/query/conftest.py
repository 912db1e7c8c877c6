"""Tables of captures, built in a separate cache."""

import pytest

from mcpspy.query.build import build
from mcpspy.query.cache import tables_of
from tests.timelines import CAPTURES
from tests.transcript import capture


@pytest.fixture(scope="session")
def golden(tmp_path_factory):
    """The tables of all golden captures, by file name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        found = {path.stem: tables_of(str(path)) for path in sorted(CAPTURES.glob("*.jsonl"))}
        for captured in found.values():
            build([captured], lambda _: None)
    return found


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of the cache; it does not exist yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "mcpspy" / "sql" / "v1"


@pytest.fixture
def made(tmp_path, cache):
    """Return a function that builds the tables of a transcript."""

    def make(text, name="made"):
        captured = tables_of(capture(str(tmp_path / f"{name}.jsonl"), text))
        build([captured], lambda _: None)
        return captured

    return make
