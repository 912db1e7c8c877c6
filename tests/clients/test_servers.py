import pytest

from mcpspy.clients.places import Found
from mcpspy.clients.routes import Route
from mcpspy.clients.servers import servers
from mcpspy.clients.table import BY_ID
from mcpspy.errors import ConfigError
from tests.clients.configurations import machine

TEXT = """{"mcpServers": {
  "plain": {"command": "npx", "args": ["x"], "env": {"A": "1", "N": null, "P": 3}, "cwd": "/srv", "envFile": "/e"},
  "wrapped": {"command": "/x/mcpspy", "args": ["wrap", "--", "npx", "y"], "disabled": true},
  "remote": {"url": "https://h/mcp"},
  "routed": {"url": "http://127.0.0.1:6278/routed/mcp"},
  "lost": {"url": "http://127.0.0.1:6278/lost"},
  "broken": {"command": 1},
  "nothing": {"command": "mcpspy", "args": ["wrap", "--"]},
  "empty": {"command": ""},
  "none": {}
}}"""


@pytest.fixture
def found(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(TEXT)
    return Found(BY_ID["cursor"], BY_ID["cursor"].places[0], str(path))


def test_every_server_is_told_with_mcpspy_taken_off(found, tmp_path):
    listed = {one.name: one for one in servers(found, machine(tmp_path), {"routed": Route("https://origin", {})})}
    assert {name: one.state for name, one in listed.items()} == {
        "plain": "not wrapped",
        "wrapped": "wrapped",
        "remote": "not routed",
        "routed": "routed",
        "lost": "routed",
        "broken": "broken",
        "nothing": "broken",
        "empty": "broken",
        "none": "broken",
    }
    plain, behind = listed["plain"], listed["wrapped"]
    assert (plain.words, plain.environ) == (["npx", "x"], {"A": "1", "P": "3"})
    assert (plain.cwd, plain.env_file) == ("/srv", "/e")
    assert (behind.words, behind.launcher, behind.disabled) == (["npx", "y"], ["/x/mcpspy"], True)
    assert (listed["remote"].url, listed["routed"].url) == ("https://h/mcp", "https://origin/mcp")
    assert (listed["lost"].url, listed["lost"].route) == (None, "lost")
    assert "its command is a number" in listed["broken"].problem


def test_what_cannot_be_read_names_the_file(found, tmp_path):
    with open(found.path, "w") as file:
        file.write("{")
    with pytest.raises(ConfigError, match=rf"^{found.path}: line 1, column 2: "):
        servers(found, machine(tmp_path), {})
