import json

from mcpspy.clients.places import Found
from mcpspy.clients.plan import move, uninstall
from mcpspy.clients.routes import Route, moved
from mcpspy.clients.table import BY_ID
from tests.clients.configurations import machine

CURSOR = Found(BY_ID["cursor"], BY_ID["cursor"].places[0], "mcp.json")
TEXT = """{"mcpServers": { // mine
  "a": {"url": "http:\\/\\/127.0.0.1:6278\\/a\\/mcp?x"},
  "b": {"url": "http://127.0.0.1:7001/b"},
  "other": {"url": "http://127.0.0.1:6278/other"},
  "local": {"url": "http://127.0.0.1:7002/local"},
  "s": {"command": "x"},
  "broken": {"url": 1},
}}"""


def test_each_url_of_ours_leads_to_the_other_port_and_nothing_else_changes(tmp_path):
    """CF-11."""
    routes = {"a": Route("https://a", {}), "b": Route("https://b", {}, (6278, 7001))}
    planned = move(TEXT, CURSOR, machine(tmp_path), routes, 7005)
    assert [step.server for step in planned.steps if step.edits] == ["a", "b"]
    assert planned.steps[0].detail == "http://127.0.0.1:7005/a, before http://127.0.0.1:6278/a"
    new = TEXT.replace('"http:\\/\\/127.0.0.1:6278\\/a\\/mcp?x"', '"http://127.0.0.1:7005/a/mcp?x"')
    assert planned.text == new.replace("7001/b", "7005/b")
    assert move(planned.text, CURSOR, machine(tmp_path), routes, 7005).text == planned.text


def test_what_was_moved_is_undone(tmp_path):
    routes = {"a": moved(Route("https://a", {}), 7005)}
    text = '{"mcpServers": {"a": {"url": "http://127.0.0.1:7005/a/mcp"}}}'
    done = uninstall(text, CURSOR, machine(tmp_path), (), routes, None)
    assert json.loads(done.text) == {"mcpServers": {"a": {"url": "https://a/mcp"}}}
    assert uninstall(text, CURSOR, machine(tmp_path), (), {}, None).text == text, "a server of the user's own"
