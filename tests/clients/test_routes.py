import os
import stat
import sys
import threading

import pytest

from mcpspy.clients import routes
from mcpspy.clients.routes import Assignment, Route, routed, split
from mcpspy.errors import ConfigError
from tests.each import each
from tests.limits import proportionate


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@each(
    "url, parts",
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


@each(
    "url, route",
    [
        ("http://127.0.0.1:6278/a-b.c/mcp?x", ("http://127.0.0.1:6278/a-b.c", 6278, "a-b.c", "/mcp?x")),
        ("http://127.0.0.1:6278/a", ("http://127.0.0.1:6278/a", 6278, "a", "")),
        ("http://127.0.0.1:6278/a?x", ("http://127.0.0.1:6278/a", 6278, "a", "?x")),
        ("http://127.0.0.1:7001/moved/mcp", ("http://127.0.0.1:7001/moved", 7001, "moved", "/mcp")),
        ("http://127.0.0.1:7001/a", None),
        ("http://127.0.0.1:6278/", None),
        ("http://127.0.0.1:3000/a", None),
        ("https://h/a", None),
    ],
)
def test_a_url_of_ours_names_its_route(url, route):
    assert routed(url, {"moved": Route("https://h", {}, (6278, 7001))}) == route


@each(
    "host, valid",
    [
        *((host, True) for host in ("h", "h.", "a.b-c.d", "my_host:8443", "1.2.3.4:80", "[::1]:80", "h:", "x" * 63)),
        *((host, False) for host in ("a..b", ".a", "-a", "a-", "a b", "*.a", "<h>", "h\\a", "h\0", "%HOST%", "x" * 64)),
        *((host, False) for host in ("[fe80::1%25eth0]", "[zz]", "[::1", "ä.org", "a." * 130, "", ":80", "h:x")),
    ],
)  # fmt: skip
def test_only_to_a_host_that_is_one_a_route_can_lead(host, valid):
    assert (routes.refused(f"https://{host}") == "") is valid


def assign(known, server, origin, client, path):
    assignment = Assignment(known, client, path)
    return assignment.assign(server, origin), assignment.routes


def test_a_route_is_named_after_its_server_and_stays_its_own():
    name, one = assign({}, "My Server", "https://a", "cursor", "/1")
    assert (name, one) == ("My-Server", {"My-Server": Route("https://a", {"cursor": ("/1",)})})
    assert assign(one, "My Server", "https://a", "cursor", "/1") == (name, one)
    assert assign(one, "My Server", "https://a", "cursor", "/2")[1][name].paths == {"cursor": ("/1", "/2")}
    assert assign(one, "My Server", "https://a", "vscode", "/3")[1][name].paths == {
        "cursor": ("/1",),
        "vscode": ("/3",),
    }
    other, two = assign(one, "My Server", "https://b", "cursor", "/1")
    assert other == "My-Server-2"
    assert two["My-Server"] == one["My-Server"]
    assert assign(two, "My Server", "https://b", "cursor", "/1") == (other, two)


@pytest.mark.parametrize("name", ["server {}", "{} server", "\u6f22{}"], ids=["numbers", "begin", "same"])
def test_the_time_grows_with_the_number_of_routes(home, name):
    """A-21: also if all names are equal as names of routes."""
    path = home / "mcp.json"
    with proportionate(3):
        assignment = Assignment({"z": Route("https://z", {"zed": ("/z",)})}, "cursor", str(path))
        server = name.format("") if name.startswith("\u6f22") else name
        names = [assignment.assign(server.format(n), f"https://h{n}") for n in range(2_000)]
        assert len(set(names)) == len(names)
        assert [assignment.assign(server.format(n), f"https://h{n}") for n in range(2_000)] == names
        path.write_text("\n".join(f"http://127.0.0.1:6278/{name}/mcp" for name in names))
        routes.save(assignment.routes)
        assert [name for name, _ in routes.routes_of("cursor")] == names
        assert not routes.names_other_port(str(path), names, 6278)
        assert routes.names_other_port(str(path), names, 1)


def test_what_another_install_put_there_meanwhile_stays(home):
    routes.save({"a": Route("https://a", {"cursor": ("/1",)})})
    routes.save({"b": Route("https://b", {"cursor": ("/1",)})})
    routes.save({"a": Route("https://a", {"cursor": ("/2",), "zed": ("/3",)})})
    assert routes.load() == {
        "a": Route("https://a", {"cursor": ("/1", "/2"), "zed": ("/3",)}),
        "b": Route("https://b", {"cursor": ("/1",)}),
    }
    with pytest.raises(ConfigError, match="another install has just taken the route 'a'; try again"):
        routes.save({"a": Route("https://other", {"cursor": ("/1",)})})


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_two_that_save_at_once_wait_for_each_other(home, monkeypatch):
    """The second starts while the first is between reading and writing."""
    threads, write = [], routes.write_private

    def meanwhile(path, content):
        if not threads:
            more = {"b": Route("https://b", {})}
            threads.append(
                threading.Thread(
                    target=routes.save, args=[more | {"c": Route("https://c", {"x": ("/",)})}], daemon=True
                )
            )
            threads[0].start()
            threads[0].join(0.2)
            assert threads[0].is_alive()
        write(path, content)

    monkeypatch.setattr(routes, "write_private", meanwhile)
    routes.save({"a": Route("https://a", {"x": ("/",)})})
    threads[0].join(10)
    assert set(routes.load()) == {"a", "c"}


def test_a_route_is_served_while_a_configuration_of_the_client_names_it(home):
    one, two = home / "1.json", home / "2.json"
    one.write_text('{"url": "http://127.0.0.1:6278/a/mcp"}')
    two.write_text('"http://127.0.0.1:6278/b", "http://127.0.0.1:6278/a-2"')
    cursor = {"cursor": (str(one),), "vscode": (str(two),)}
    routes.save({"a": Route("https://a", cursor), "b": Route("https://b", cursor)})
    assert routes.routes_of("cursor") == [("a", "https://a")]
    assert routes.routes_of("vscode") == [("b", "https://b")]
    one.unlink()
    assert routes.routes_of("cursor") == []
    assert routes.routes_of("zed") == []
    assert routes.routes_of("zed", [str(two)]) == [("b", "https://b")], "it reads a file that was changed for another"


def test_routes_are_kept_where_nobody_else_reads_them(home):
    assert routes.load() == {}
    known = {"a": Route("https://a", {"cursor": ("/1", "/2")})}
    routes.save(known)
    assert routes.load() == known
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
