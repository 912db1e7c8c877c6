from mcpspy.capture.records import End
from mcpspy.relay.mitm import flow as module
from mcpspy.relay.mitm.flow import Origins
from tests.relay.mitm.kept import CALL, JSON, pass_through


def test_of_many_origins_the_one_that_was_idle_for_longest_ends(kept, monkeypatch):
    """Its capture ends too; a later flow of that origin gets a new one."""
    monkeypatch.setattr(module, "MOST_ORIGINS", 2)
    origins = Origins(kept.begin)
    busy = set()
    origin = {name: origins.at(f"https://{name}", lambda: busy) for name in "ab"}
    for name in "ab":
        kept.origin = origin[name]
        pass_through(kept.flow(), CALL, JSON, CALL)
    assert origins.at("https://a", lambda: busy) is origin["a"]
    assert origins.at("https://c", lambda: busy) is not None
    assert len(kept.records(End)) == 1
    busy.add(origin["a"])
    assert origins.at("https://b", lambda: busy) is not origin["b"]
    assert origins.at("https://a", lambda: busy) is origin["a"]
    assert len(kept.records(End)) == 1
    busy.add(origins.at("https://b", lambda: busy))
    assert origins.at("https://d", lambda: busy) is None
    origins.end()
    assert len(kept.records(End)) == 2
