"""When a listing is complete, and when a server is known not to offer something."""

from mcpspy.capture.reader import Capture
from mcpspy.contract.lock import TOLD, offers
from tests.contract.sessions import GET, SEND, found, hello, listed, lock, offered
from tests.transcript import capture


def test_all_pages_make_a_whole_listing():
    text = hello() + listed(GET, more="2") + listed(SEND, number=3, cursor="2")
    assert offered(text).whole("tools") == {"get": GET, "send": SEND}


def test_a_page_that_is_missing_leaves_it_open():
    assert offered(hello() + listed(GET, more="2")).whole("tools") is None
    assert offered(hello() + listed(SEND, cursor="2")).whole("tools") is None
    skipped = hello() + listed(GET, more="2") + listed(SEND, number=3, cursor="3")
    assert offered(skipped).whole("tools") is None
    again = skipped + listed(GET, number=4)
    assert offered(again).whole("tools") == {"get": GET}


def test_what_is_not_declared_is_not_offered():
    shown = offered(hello())
    assert shown.whole("tools") is None
    assert shown.whole("prompts") == shown.whole("resourceTemplates") == {}
    assert offered(listed(GET)).whole("prompts") is None, "there was no handshake"


def test_entries_of_one_name_stand_apart():
    other = GET | {"description": "Another"}
    assert offered(hello() + listed(GET, other)).whole("tools") == {"get": GET, "get (2)": other}


def test_entries_of_one_name_on_several_pages_stand_apart():
    second, third = GET | {"description": "Second"}, GET | {"description": "Third"}
    odd = GET | {"name": "get (2)"}
    pages = [listed(GET, odd, more="2"), listed(second, number=3, cursor="2", more="3")]
    shown = offered(hello() + "".join(pages) + listed(third, number=4, cursor="3"))
    assert [it["description"] for it in shown.whole("tools").values()] == [
        GET["description"], GET["description"], "Second", "Third"
    ]  # fmt: skip


def test_names_hold_no_secrets():
    entry = {"uri": "https://example.com/?token=ghp_" + "a1B2" * 9, "name": "n"}
    shown = offered(hello(capabilities={"resources": {}}) + listed(entry, kind="resources"))
    assert list(shown.whole("resources")) == ["https://example.com/?token=«withheld»"]


def test_the_name_of_a_server_holds_no_secret():
    """A-13: it is the name of an entry of the lock file."""
    locks = lock(text := hello(name="s-ghp_" + "a1B2" * 9), name=offered(text).name)
    assert list(locks) == ["s-«withheld»"]
    assert found(locks, text) == ([], [])


def test_a_listing_that_the_server_does_not_know_is_empty():
    text = hello() + '> 2 tools/list\n< 2 ! {"code":%d,"message":"no"}\n'
    assert offered(text % -32601).whole("tools") == {}
    assert offered(text % -32603).whole("tools") is None


def test_entries_without_a_name_are_left_out():
    assert offered(hello() + listed(GET, {"x": 1}, None, 5)).whole("tools") == {"get": GET}


def test_a_server_tells_of_itself():
    shown = offered(hello(instructions="Be kind"))
    assert shown.name == "weather"
    assert list(shown.told) == list(TOLD)
    assert shown.introduction.n == 2
    assert offered(listed(GET)).name is None


def test_each_session_of_a_capture_shows_what_it_does(tmp_path):
    path = capture(tmp_path / "s.jsonl", hello() + listed(GET))
    read = []
    (shown,) = offers(Capture(path), read.append)
    assert shown.whole("tools") == {"get": GET}
    assert sum(read) == (tmp_path / "s.jsonl").stat().st_size
