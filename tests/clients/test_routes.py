import os
import stat

import pytest

from mcpspy.clients import routes
from mcpspy.clients.routes import Route, assign, routed, split
from mcpspy.errors import ConfigError


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://h.example/mcp?a#b", ("https://h.example", "/mcp?a#b")),
        ("http://u:p@[::1]:80", ("http://u:p@[::1]:80", "")),
        ("HTTPS://H?x", ("HTTPS://H", "?x")),
        ("unix:///s", None),
        ("https://", None),
        ("/mcp", None),
    ],
)
def test_a_url_is_split_after_its_origin(url, parts):
    assert split(url) == parts


@pytest.mark.parametrize(
    ("url", "route"),
    [
        ("http://127.0.0.1:6278/a-b.c/mcp?x", ("a-b.c", "/mcp?x")),
        ("http://127.0.0.1:6278/a", ("a", "")),
        ("http://127.0.0.1:6278/a?x", ("a", "?x")),
        ("http://127.0.0.1:6278/", None),
        ("http://127.0.0.1:3000/a", None),
        ("https://h/a", None),
    ],
)
def test_a_url_of_ours_names_its_route(url, route):
    assert routed(url) == route


def test_a_route_is_named_after_its_server_and_stays_its_own():
    name, one = assign({}, "My Server", "https://a", "cursor")
    assert (name, one) == ("My-Server", {"My-Server": Route("https://a", ("cursor",))})
    assert assign(one, "My Server", "https://a", "cursor") == (name, one)
    assert assign(one, "My Server", "https://a", "vscode")[1] == {name: Route("https://a", ("cursor", "vscode"))}
    other, two = assign(one, "My Server", "https://b", "cursor")
    assert other == "My-Server-2"
    assert two["My-Server"] == one["My-Server"]
    assert assign(two, "My Server", "https://b", "cursor") == (other, two)


def test_routes_are_kept_where_nobody_else_reads_them(home):
    assert routes.load() == {}
    assert routes.routes_of("cursor") == []
    known = {"a": Route("https://a", ("cursor", "vscode")), "b": Route("https://b", ("vscode",))}
    routes.save(known)
    assert routes.load() == known
    assert routes.routes_of("cursor") == [("a", "https://a")]
    assert routes.routes_of("vscode") == [("a", "https://a"), ("b", "https://b")]
    path = home / ".mcpspy" / "routes.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["routes.json"]


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": {"origin": "x"}}', "\xff"])
def test_a_damaged_file_is_said_and_not_overwritten(home, text):
    (home / ".mcpspy").mkdir()
    (home / ".mcpspy" / "routes.json").write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError, match=r"routes\.json is damaged"):
        routes.load()
