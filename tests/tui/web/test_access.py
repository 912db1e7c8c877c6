"""Who may use the server of `tui --web` (A-15): the access control, and requests with and without the secret."""

import re
from contextlib import closing

import pytest

pytest.importorskip("textual_serve")

from mcpspy.tui.web.page import WebGate
from tests.transcript import capture
from tests.tui.web.browser import fetch
from tests.tui.web.websocket import Page, authority_of, secret_of

HERE = "127.0.0.1:6280"
OWN = [f"http://{HERE}"]
FOREIGN = "the request comes from a page of another origin: copy the printed link into the address bar"

# The access control


def test_the_host_of_the_link_is_let_through_and_no_other():
    gate = WebGate(HERE)
    assert gate.refusal([HERE], [], []) is None
    assert gate.refusal([HERE], OWN, []) is None
    assert gate.refusal(["BOX:6280"], [], []) == f"this server is {HERE}, and the request has another Host"
    assert WebGate("box:6280").refusal(["BOX:6280"], ["http://Box:6280"], []) is None
    for hosts in (["evil.example"], ["evil.example:6280"], ["127.0.0.1"], ["localhost:6280"], [], [HERE, HERE], [""]):
        assert "another Host" in gate.refusal(hosts, OWN, ["same-origin"])


@pytest.mark.parametrize(
    "origins", [["http://evil.example"], ["null"], [f"https://{HERE}"], ["http://127.0.0.1:1"], [""], OWN * 2]
)
def test_a_page_of_another_origin_is_refused(origins):
    for sites in ([], ["none"], ["same-origin"]):
        assert WebGate(HERE).refusal([HERE], origins, sites) == FOREIGN


def test_without_an_origin_a_page_of_another_port_is_recognised_by_sec_fetch_site():
    """A-15: a page on another port of 127.0.0.1 is of the same site, but of another origin."""
    gate = WebGate(HERE)
    for sites in (["same-site"], ["cross-site"], [""], ["none", "same-site"]):
        assert gate.refusal([HERE], [], sites) == FOREIGN
    for sites in ([], ["none"], ["same-origin"]):
        assert gate.refusal([HERE], [], sites) is None
    assert gate.refusal([HERE], OWN, ["same-site"]) is None, "some browsers compare http: and ws:"


def test_a_websocket_opens_with_the_secret_and_an_origin():
    """A-15: a browser sends the Origin with every WebSocket."""
    gate = WebGate(HERE)
    assert gate.opens(OWN, f"mcpspy.tui, {gate.secret}")
    assert gate.opens(OWN, f"mcpspy.tui,{gate.secret} ")
    assert not gate.opens([], f"mcpspy.tui, {gate.secret}")
    for offered in ("", "mcpspy.tui", "mcpspy.tui,", f"{gate.secret}x", gate.secret[:-1], "é", "\udcff"):
        assert not gate.opens(OWN, offered)


def test_each_start_has_a_secret_of_its_own():
    """A-15: an earlier link is worthless."""
    found = {WebGate(HERE).secret for _ in range(10)}
    assert len(found) == 10
    assert all(re.fullmatch(r"[\w-]{32}", secret) for secret in found)


# A real server


@pytest.fixture
def link(tmp_path, served):
    """The link to a capture."""
    return served(capture(tmp_path / "a.jsonl", '> {"jsonrpc":"2.0","id":1,"method":"ping"}'))[1]


def test_no_response_sets_a_cookie_or_names_the_secret(link):
    """A-15: a cookie would go to every port of 127.0.0.1. The secret is in the fragment, which no request contains."""
    page, fragment, secret = link.partition("#secret=")
    assert fragment
    for path in ("", "?fontsize=9", "static/js/textual.js", "ws", "missing", "download/x"):
        for method in ("GET", "HEAD", "POST", "OPTIONS"):
            for headers in ({}, {"Origin": page[:-1]}, {"Origin": "http://127.0.0.1:1"}, {"Host": "evil.example"}):
                _, body, received = fetch(page + path, method, **headers)
                assert received["Set-Cookie"] is None
                assert received["Access-Control-Allow-Origin"] is None
                assert secret not in body + str(received)
    with closing(Page(link)) as opened:
        assert opened.status == 101
        assert secret not in opened.head
        assert "set-cookie" not in opened.head.lower()


def test_the_page_and_its_assets_need_no_secret(link):
    page = f"http://{authority_of(link)}/"
    for own in ({}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}, {"Origin": page[:-1]}):
        status, body, _ = fetch(page, **own)
        assert status == 200
        assert "textual-terminal" in body
        assert "mcpspy needs JavaScript" in body
        assert fetch(f"{page}static/js/textual.js", **own)[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "localhost:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_no_other_page_gets_anything_from_any_path(link, headers):
    """A-15: Host and Origin are checked for every request."""
    for path in ("", "static/js/textual.js", "ws", "download/x", "missing"):
        status, body, received = fetch(f"http://{authority_of(link)}/{path}", **headers)
        assert status == 403
        assert re.fullmatch(r"mcpspy: .* (another Host|into the address bar)\n", body)
        assert received["Cache-Control"] == "no-store"


def test_there_are_no_downloads(link):
    """A-15: a page cannot send the secret with a download, and the application offers none."""
    assert fetch(f"http://{authority_of(link)}/download/x")[0] == 404


def test_a_websocket_is_refused_without_the_secret(link):
    """A-15: what another page on 127.0.0.1 can send opens no WebSocket; the page with the secret opens several."""
    protocol, secret = "Sec-WebSocket-Protocol", secret_of(link)
    for refused in (
        {protocol: None},
        {protocol: ""},
        {protocol: "mcpspy.tui"},
        {protocol: f"mcpspy.tui, {secret[:-1]}"},
        {protocol: f"mcpspy.tui, {secret}x"},
        {protocol: f"{secret}, mcpspy.tui"},
        {protocol: "mcpspy.tui, \udcff"},
        {protocol: None, "Cookie": f"secret={secret}"},
        {protocol: None, "Authorization": f"Bearer {secret}"},
        {"Host": "evil.example"},
        {"Host": authority_of(link).replace("127.0.0.1", "localhost")},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": f"http://localhost:{link.split(':')[2].partition('/')[0]}"},
        {"Origin": "null"},
        {"Origin": None},
        {"Origin": None, "Sec-Fetch-Site": "same-site"},
    ):
        with closing(Page(link, refused)) as page:
            assert page.status == 403, refused
    with closing(Page(link)) as first, closing(Page(link, {"Sec-Fetch-Site": "same-origin"})) as second:
        assert first.status == second.status == 101
        assert re.search(r"(?im)^Sec-WebSocket-Protocol: mcpspy\.tui\r?$", first.head)
        for page in (first, second):
            page.until(b"ping")


def test_the_page_may_fetch_from_its_own_origin_only(link):
    authority = authority_of(link)
    _, body, headers = fetch(f"http://{authority}/")
    rules = dict(rule.strip().split(" ", 1) for rule in headers["Content-Security-Policy"].split(";"))
    assert rules.pop("connect-src") == f"'self' ws://{authority}"
    assert rules["default-src"] == rules["frame-ancestors"] == "'none'"
    assert not re.search(r"https?:|\*", " ".join(rules.values()))
    own = set(re.findall(r"(?:src|-url)=\"([^\"]*)\"", body))
    assert own
    assert all(url.split("/")[2] == authority for url in own)
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
