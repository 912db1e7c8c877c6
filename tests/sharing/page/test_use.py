"""The page in use: keys, views, messages, filters, printing, phones, and screen readers."""

import json
import re
from pathlib import Path

import pytest

from tests import transcript
from tests.sharing.page import hostile, made
from tests.sharing.page.browsing import DOWN, ENTER, ESCAPE, requested
from tests.sharing.page.sources import PAGE
from tests.tui.web.browser import needs_chromium

CAPTURES = PAGE.parents[2] / "captures"
NARROW = (400, 800)
VIEWS = {"1": "timeline", "w": "problems", "2": "findings", "3": "tools", "4": "sequence", "5": "stderr"}


@pytest.fixture(scope="module")
def hostile_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "<img src=x onerror=window.hacked=1>.jsonl"
    path.write_bytes(hostile.capture())
    return path


pytestmark = needs_chromium


def recorded(path, *records):
    """Write a capture of some records behind its four first lines, and return its path."""
    lines = (CAPTURES / "everything-2025-11-25.jsonl").read_text().splitlines()[:4]
    path.write_text("".join(f"{line}\n" for line in [*lines, *map(json.dumps, records)]))
    return path


def test_the_head_tells_which_session_it_is_and_what_is_in_it(everything):
    assert everything.texts("#name") == ["everything"]
    counts = "64 frames · 26 exchanges · 2 failed · 2 errors · 2 findings"
    assert everything.texts("#counts") == [f" · stdio · ended · {counts}"]
    (gist,) = everything.texts("#gist")
    assert gist.startswith("node-client 1.0.0 → mcp-servers/everything 2.0.0 · 2025-11-25 · 2026-11-20 23:37:16 UTC · ")


def test_what_the_reader_must_know_stands_above_everything(page):
    page.open(
        CAPTURES / "probe-node-2025-11-25.jsonl", raw=True, live=True, filter="method:x", damage=["#17: a damaged line"]
    )
    raw, live, chosen, damage = page.texts("#notices > *")
    assert raw.startswith("Nothing was scrubbed (--raw).")
    assert "still running" in live
    assert "method:x" in chosen
    assert "#17: a damaged line" in damage


def test_what_was_replaced_is_a_table(page):
    token = {"kind": "GitHub token", "label": "redacted-github-token-1", "count": 3}
    page.open(CAPTURES / "probe-node-2025-11-25.jsonl", replaced=[token])
    assert page.texts("#replaced summary") == ["Scrubbed: 1 value replaced in 3 places"]
    assert page.texts("#replaced td") == ["GitHub token", "redacted-github-token-1", "3"]


def test_an_address_leads_to_its_frame_and_keys_lead_on(everything):
    assert everything.selected() == "#27"
    for keys, address in (
        ("j", "#28"),
        ("p", "#27"),
        ("k", "#26"),
        ("e", "#27"),
        ("e", "#28"),
        ("E", "#27"),
        ("g", "#5"),
    ):
        everything.press(keys)
        assert everything.selected() == address, keys
    everything.browser.script("location.hash = '#16'")
    assert everything.selected() == "#16"


@pytest.mark.parametrize(
    ("name", "address", "view", "row"),
    [
        ("everything-2025-11-25", "", "problems", "#27"),
        ("everything-2025-11-25", "#%zz", "problems", "#27"),
        ("everything-2025-11-25", "#30", "timeline", "#30"),
        ("everything-2025-11-25", "#tools", "tools", "#27"),
        ("field-sse", "", "timeline", "#2"),
        ("field-sse", "#problems", "problems", "#2"),
    ],
)
def test_a_page_opens_with_what_its_address_names_else_with_the_problems(page, name, address, view, row):
    page.open(CAPTURES / f"{name}.jsonl", address)
    assert page.value("document.body.dataset.view") == view
    page.until(f"document.querySelector('.card.selected .frame')?.textContent === '{row}'")


def test_the_address_of_a_view_shows_it_and_that_of_a_row_keeps_the_view(everything):
    for address, view in (("problems", "problems"), ("29", "problems"), ("sequence", "sequence")):
        everything.browser.script(f"location.hash = '{address}'")
        everything.until(f"document.body.dataset.view === '{view}'")
    everything.press("1")
    everything.until("document.querySelector('#rows [aria-selected=true] .n').textContent === '#29'")


def test_a_problem_has_its_cause_what_to_do_and_its_rows(everything):
    everything.press("w")
    assert everything.texts("#tab-problems .badge") == ["2"]
    first, second = everything.texts("#view-problems .problem h3 :last-child")
    assert first.startswith("tools/call get-sum failed: MCP error -32602")
    assert second == "tools/call missing failed: MCP error -32602: Tool missing not found"
    assert everything.texts("#view-problems .problem:first-child p") == [
        'client, known: arguments of get-sum violate its inputSchema: "b" is a required property #27 #17',
        "also: the tool itself reported this error #28",
        'likely: the same tool succeeded in #25 with {"a":2,"b":3}; here it has {"a":"two"} #25',
        "do: Give the model the inputSchema unchanged, and validate the arguments before you call the tool.",
        "see #17 #25 #27 #28",
    ]
    everything.press("G" + ENTER)  # the last link
    everything.until("document.querySelector('.card.selected .frame').textContent === '#30'")
    assert everything.value("document.body.dataset.view") == "problems"
    everything.press("E")
    everything.until("document.querySelector('.card.selected .frame').textContent === '#29'")


def test_without_problems_the_view_says_where_else_to_look(page):
    page.open(CAPTURES / "field-sse.jsonl", "#problems")
    (text,) = page.texts("#view-problems > *")
    assert text.startswith("No request failed.")


def test_an_answer_shows_what_belongs_to_its_call(page):
    page.open(CAPTURES / "features-python1-2025-11-25.jsonl", "#21")
    assert page.texts(".card.selected .errlines") == ["#20 Tool 'missing' not listed, no validation will be performed"]
    assert len(page.texts(".finding")) == 1
    page.press("b")
    page.until("document.querySelectorAll('.card').length === 1")
    assert len(page.texts(".card.selected .finding")) == 1
    assert "the request #19 has:" in page.texts(".card.selected .facts")


def test_only_what_has_failed_looks_like_an_error_and_the_reason_why_it_has_not_is_there(page, tmp_path):
    page.open(CAPTURES / "probe-node-2025-11-25.jsonl", "#8")
    reason = "no failure: the client asked for a newer revision, and went on with initialize"
    assert reason in page.texts(".card.selected .facts p")
    bad = "[...document.querySelectorAll('#rows .bad')].map(it => it.querySelector('.n').textContent)"
    assert page.value(bad) == ["#19", "#20", "#21", "#22"]
    page.press("e")
    assert page.selected() == "#20"
    path = transcript.capture(
        tmp_path / "a.jsonl",
        """
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        @90 > notifications/cancelled {"requestId":2,"reason":"timed out"}
        @100 > 3 tools/call {"name":"last"}
        ! Traceback
        """,
    )
    page.open(Path(path))
    page.press("ge")
    assert page.selected() == "#8"
    assert page.texts(".card.selected strong.error") == ["timed-out"]
    page.press("e")
    assert page.selected() == "#10"
    assert page.texts("#rows .bad .status") == ["timed-out", "server-exit"]
    assert page.texts(".card.selected .errlines") == ["#11 Traceback"]


def test_of_ten_thousand_rows_few_are_drawn_and_the_last_is_a_key_away(page, tmp_path):
    path = CAPTURES / "everything-2025-11-25.jsonl"
    data = made.session(path)
    notice = next(row for row in data["rows"] if row["kind"] == "notification")
    numbers = range(5, 10_005)
    data["rows"] = [notice | {"n": n, "t": n / 1e3, "method": f"m{n}"} for n in numbers]
    frame = b'{"kind":"frame","ch":2,"t":0,"raw":"{\\"method\\":\\"m%d\\"}"}'
    lines = path.read_bytes().splitlines()[:4] + [frame % n for n in numbers]
    page.visit(made.write(tmp_path / "many.html", data, b"\n".join([*lines, b""])) + "#timeline")
    page.press("G")
    assert page.selected() == "#10004"
    assert page.texts(".selected .line")[1] == '"method": "m10004"'
    assert page.value("document.querySelectorAll('#rows-body > *').length") < 100
    assert page.value("document.getElementById('rows').getAttribute('aria-rowcount')") == "10001"
    assert page.filter("m99") == "111 of 10,000"  # 99, 990 to 999, 9900 to 9999
    page.press(ENTER + ESCAPE)
    assert page.filter("method:m99*") == "111 of 10,000"


def test_the_request_stands_beside_its_response_until_that_is_turned_off(everything):
    assert everything.texts(".card h3") == ["→ #27 tools/call get-sum", "← #28 tools/call get-sum"]
    left, right = everything.value("[...document.querySelectorAll('.card')].map(it => it.getBoundingClientRect().left)")
    assert left < right
    everything.press("b")
    everything.until("document.querySelectorAll('.card').length === 1")
    assert everything.texts(".card h3") == ["→ #27 tools/call get-sum"]


def test_a_message_is_its_content_a_tree_its_text_or_its_bytes(everything):
    raw = '{"method":"tools/call","params":{"name":"get-sum","arguments":{"a":"two"}},"jsonrpc":"2.0","id":6}'
    assert everything.texts(".selected .line") == ["name: get-sum", "arguments  ◂ error", "a: two"]
    everything.press("r")
    everything.until("document.querySelector('.selected .tree:not(.content)')")
    assert '"a": "two"' in everything.texts(".selected .line")
    everything.press("r")
    everything.until("document.querySelector('.selected pre.raw')")
    assert everything.texts(".selected pre.raw") == [raw]
    everything.press("r")
    everything.until("document.querySelector('.selected pre.hex')")
    assert "7b 22 6d 65 74 68 6f 64" in everything.texts(".selected pre.hex")[0]
    everything.press("r")
    everything.until("document.querySelector('.selected .content')")


def test_a_tree_folds_by_keys(everything):
    everything.press("r" + ENTER)
    everything.until("document.activeElement.matches('.selected .tree:not(.content)')")
    before = everything.texts(".selected .line")
    everything.press("jj")  # params
    everything.press("h")
    folded = everything.texts(".selected .line")
    assert len(folded) == len(before) - 3
    everything.press("l")
    everything.press("-")
    assert len(everything.texts(".selected .line")) == 1
    everything.press("+")
    assert everything.texts(".selected .line") == before
    everything.press(ESCAPE)
    assert everything.value("document.activeElement.id") == "rows"


def test_a_finding_stands_at_its_message_with_explanation_and_at_its_place(everything):
    assert everything.texts(".selected .finding summary") == [
        '✗ error arguments of get-sum violate its inputSchema: "b" is a required property'
    ]
    assert any(text.startswith("How to fix: ") for text in everything.texts(".selected .finding p"))
    assert everything.texts(".selected .line .here") == ["◂ error"]


def test_each_view_has_a_tab_and_a_key(everything):
    for key, view in VIEWS.items():
        everything.press(key)
        assert everything.texts("[role=tab][aria-selected=true]")[0].lower().startswith(f"{key} {view}")
        shown = everything.value(
            "[...document.querySelectorAll('[role=tabpanel]')].filter(it => !it.hidden).map(it => it.id)"
        )
        assert shown == [f"view-{view}"]
        assert everything.value("document.activeElement.closest('[role=tabpanel]')?.id") == f"view-{view}"


def test_findings_lead_to_their_frames(everything):
    everything.press("2")
    assert [text.split(" ·")[0] for text in everything.texts("#view-findings summary b")] == [
        "tools/arguments",
        "tools/unknown-tool",
    ]
    everything.browser.script("[...document.querySelectorAll('#view-findings .found a')].pop().click()")
    everything.until("document.querySelector('.card.selected .frame').textContent === '#29'")
    everything.press("1")
    assert everything.selected() == "#29"


def test_tools_can_be_sorted(everything):
    everything.press("3")
    everything.browser.script("document.querySelectorAll('.tools th button')[1].click()")
    sizes = everything.texts(".tools tbody td:nth-child(2)")
    assert (sizes[0], sizes[-1]) == ("1.6 kB", "not listed")
    assert everything.value("document.querySelector('[aria-sort]').textContent") == "definition ↓"


def test_the_sequence_joins_requests_to_their_responses(everything):
    everything.press("4")
    assert everything.value("document.querySelectorAll('#arrows-body [data-at]').length") > 20
    assert everything.value("document.querySelectorAll('#arrows .lanes.right path').length") > 10
    assert everything.value("document.querySelectorAll('#arrows .lanes.left path').length") > 0
    everything.browser.script("document.querySelector('#arrows-16').click()")
    everything.until("document.querySelector('.card.selected .frame').textContent === location.hash")


def test_a_filter_leaves_rows_out_and_a_mistake_is_shown_with_its_place(everything):
    assert everything.filter("status:tool-error") == "4 of 67"
    assert len(everything.texts("#rows-body > *")) == 4
    everything.press(ENTER + ESCAPE)
    everything.until("document.getElementById('filter').dataset.done === ''")
    assert everything.texts("#count") == ["67 rows"]
    everything.press("/metod:x")
    everything.until("!document.getElementById('mistake').hidden")
    assert everything.texts("#mistake u") == ["metod:x"]
    assert "unknown key 'metod' at column 1" in everything.texts("#mistake")[0]


def test_matches_can_be_gone_through_among_all_rows(everything):
    everything.browser.script("document.getElementById('others').click()")
    assert everything.filter("status:tool-error") == "4 of 67"
    assert everything.value("document.getElementById('rows').getAttribute('aria-rowcount')") == "68"
    everything.press(ENTER + "gn")
    assert everything.selected() == "#27"
    everything.press("nN")
    assert everything.selected() == "#27"


def test_the_saved_capture_is_the_capture(everything):
    everything.browser.script(
        "URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text; }); return '#'; }"
    )
    everything.browser.script("document.getElementById('save-capture').click()")
    everything.until("window.saved !== undefined")
    assert everything.value("window.saved") == (CAPTURES / "everything-2025-11-25.jsonl").read_text()


def test_over_http_the_head_of_each_message_is_there(page):
    page.open(CAPTURES / "http-python2-2026-07-28.jsonl", "#36")
    assert page.texts(".card .http summary") == ["HTTP request: POST /mcp", "HTTP response: 400 Bad Request"]
    assert "mcp-method" in page.texts(".card .http th")


def test_what_a_gate_did_is_shown_and_each_message_of_a_batch_has_its_address(page, tmp_path):
    came = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}'
    edited = came.replace('"a"', '"b"')
    batch = '[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"tools/list"}]'
    answers = '[{"jsonrpc":"2.0","id":3,"result":{"tools":[]}},{"jsonrpc":"2.0","id":2,"result":{}}]'
    records = [
        {"kind": "frame", "ch": 1, "t": 1_000_000_000, "raw": came, "held": 1, "by": "gate slow"},
        {"kind": "release", "t": 3_000_000_000, "held": 1, "how": "edited", "sent": edited, "by": "gate slow"},
        {"kind": "frame", "ch": 1, "t": 4_000_000_000, "raw": batch},
        {"kind": "frame", "ch": 2, "t": 5_000_000_000, "raw": answers},
    ]
    page.open(recorded(tmp_path / "a.jsonl", *records), "#5")
    assert page.texts(".gate p") == ["edited by gate slow, held 2.00 s"]
    assert page.texts(".gate pre") == [edited]
    page.browser.script("location.hash = '#7.1'")
    assert page.selected() == "#7.1"
    assert page.texts(".card h3") == ["→ #7.1 tools/list", "← #8 tools/list"]
    page.press("k")
    assert page.selected() == "#7"
    assert page.texts(".card h3") == ["→ #7 ping", "← #8.1 ping"]


def test_an_event_of_a_stream_shows_its_message(page):
    page.open(CAPTURES / "sse-python1-2024-11-05.jsonl", "#9")
    events = made.session(CAPTURES / "sse-python1-2024-11-05.jsonl")["rows"]
    result = next(row["n"] for row in events if row["kind"] == "result")
    page.browser.script(f"location.hash = '#{result}'")
    assert page.selected() == f"#{result}"
    page.press("r")
    page.until("document.querySelector('.selected .tree:not(.content)')")
    assert '"jsonrpc": "2.0"' in page.texts(".selected .line")


def test_hostile_text_runs_nothing_and_is_shown_as_text(page, hostile_path):
    """Markup and scripts are in every place that a peer or a path controls; every view and row is opened."""
    requested(page.browser)
    page.open(hostile_path)
    elements = "[document.scripts.length, document.images.length, document.querySelectorAll('#main b b').length]"
    before = page.value(elements)
    rows = int(page.value("document.getElementById('rows').getAttribute('aria-rowcount')")) - 1
    for _ in range(rows):
        for _ in range(4):
            page.press("r")
        assert page.texts(".card.selected :is(.tree, pre)")
        page.press("j")
    for view in "w23451":
        page.press(view)
    page.browser.script("document.getElementById('about').open = true; document.getElementById('help-button').click()")
    assert page.value(elements) == before
    assert page.value("[window.hacked ?? null, document.images.length]") == [None, 0]
    assert page.value("document.querySelectorAll('[onerror], [onload], [style*=expression]').length") == 0
    asked = {address for address in requested(page.browser) if not address.startswith(("data:", "about:"))}
    assert asked == {page.value("location.href.split('#')[0]")}
    assert page.browser.log() == []
    assert {"\\u202e", "\\u200b\\x00\\e", "\\ufeff"} <= set(page.texts("#facts .escape"))
    everywhere = page.value("document.body.innerText")
    assert "<img src=x onerror=" in everywhere
    assert not re.search("[\u202e\u200b\x00\x1b\ufeff]", everywhere)


def test_what_is_long_is_clipped_and_what_is_deep_unfolds_a_level_at_a_time(page, hostile_path):
    rows = page.open(hostile_path)["rows"]
    large = max(rows, key=lambda row: row["size"])
    deep = max((row for row in rows if row["kind"] == "invalid"), key=lambda row: row["size"])
    page.browser.script(f"location.hash = '#{large['n']}'")
    page.selected()
    page.press("r")
    page.until("document.querySelector('.selected .tree:not(.content)')")
    assert page.texts(".selected .line button") == [f"show 262,144 more of {hostile.LONG + 2:,} characters"]
    page.browser.script("document.querySelector('.selected .line button').click()")
    assert page.texts(".selected .line button") == [f"show 262,144 more of {hostile.LONG + 2:,} characters"]
    assert 262_144 < page.value("document.querySelector('.selected .tree').textContent.length") < 300_000
    words = next(row for row in rows if row["status"] == "tool-error" and row["kind"] == "result")
    page.browser.script(f"location.hash = '#{words['n']}'")
    page.selected()
    assert re.fullmatch(r"show all [0-9],[0-9]{3} characters", page.texts(".selected .line button")[0])
    page.browser.script("document.querySelector('.selected .line button').click()")
    assert page.texts(".selected .line button") == []
    assert page.value("document.querySelectorAll('.selected .tree img').length") == 0
    page.browser.script(f"location.hash = '#{large['request']}'")
    page.selected()
    assert any(text.startswith('"n": 12345678901234567890') for text in page.texts(".selected .line"))
    assert '"e": 1.0' in page.texts(".selected .line")
    page.browser.script(f"location.hash = '#{deep['n']}'")
    page.selected()
    page.press(ENTER + "+")
    assert page.value("document.querySelectorAll('.selected .line').length") == 5000
    assert page.browser.log() == []


@pytest.mark.parametrize("name", ["everything-2025-11-25", "hostile"])
def test_nothing_is_wider_than_a_phone(page, hostile_path, name):
    page.open(hostile_path if name == "hostile" else CAPTURES / f"{name}.jsonl")
    page.size(*NARROW)
    for view in VIEWS:
        page.press(view)
        widths = "[document.documentElement, document.body, document.getElementById('views')].map(it => it.scrollWidth)"
        assert max(page.value(widths)) <= NARROW[0]
    page.press("1")
    assert page.value("getComputedStyle(document.getElementById('rows')).getPropertyValue('--row').trim()") == "44px"


@pytest.mark.parametrize("width", [400, 700, 1000, 1150, 1400])
def test_a_row_has_room_for_its_message(everything, width):
    everything.size(width, 800)
    everything.until("document.querySelector('#rows-body [aria-selected=true] .subject').clientWidth >= 200")
    wide = everything.value("[...document.querySelectorAll('#rows, #rows-body .row')].map(it => it.scrollWidth)")
    assert max(wide) <= everything.value("document.getElementById('views').clientWidth")


def test_paper_gets_the_findings_the_tools_and_the_rows(everything):
    assert everything.texts("#print *") == []
    everything.command("Emulation.setEmulatedMedia", media="print", features=[])
    everything.until("document.querySelectorAll('#print .timeline tbody tr').length === 67")
    assert everything.texts("#print h2") == ["Problems", "Findings", "Tools", "Timeline"]
    assert everything.value("getComputedStyle(document.getElementById('main')).display") == "none"
    everything.command("Emulation.setEmulatedMedia", media="", features=[])
    everything.until("document.getElementById('print').childElementCount === 0")


def test_assistive_technology_is_told_what_things_are(everything):
    everything.press("j")
    everything.selected()
    active = everything.value(
        "document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).textContent"
    )
    assert active.startswith("#28")
    tree = everything.command("Accessibility.getFullAXTree")["nodes"]
    roles = {node["role"]["value"] for node in tree if not node["ignored"]}
    assert {
        "grid",
        "row",
        "gridcell",
        "columnheader",
        "tablist",
        "tab",
        "tabpanel",
        "tree",
        "treeitem",
        "searchbox",
    } <= roles
    for node in tree:
        if not node["ignored"] and node["role"]["value"] in ("button", "tab", "searchbox", "checkbox", "grid", "tree"):
            assert node["name"]["value"], node


def test_the_colours_can_be_turned(everything):
    page = everything
    page.command("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "light"}])
    light = page.value("getComputedStyle(document.body).backgroundColor")
    page.press("d")
    assert page.value("getComputedStyle(document.body).backgroundColor") != light
    page.command("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page.press("d")
    assert page.value("getComputedStyle(document.body).backgroundColor") == light


def test_the_help_has_every_key_and_closes(everything):
    everything.press("?")
    assert everything.value("document.getElementById('help').open")
    assert {"request/response", "content/tree/raw/hex", "fold/unfold"} <= set(everything.texts("#keys td"))
    everything.press(ESCAPE)
    assert not everything.value("document.getElementById('help').open")


def test_a_damaged_page_says_so(page, tmp_path):
    path = CAPTURES / "probe-node-2025-11-25.jsonl"
    url = tmp_path / "damaged.html"
    made.write(url, made.session(path), path.read_bytes())
    whole = url.read_text()
    url.write_text(re.sub(r'(id="session">.{400})', r"\1AAAA", whole))
    page.browser.ask("/url", url=url.as_uri())
    page.until("document.getElementById('loading').classList.contains('error')")
    assert "This page is damaged" in page.texts("#loading")[0]
    url.write_text(re.sub(r'(id="capture">.{400})', r"\1AAAA", whole))
    page.visit(url.as_uri())
    assert "The capture in this page is damaged" in page.texts("#cards")[0]
    assert len(page.texts("#rows-body > *")) > 5


@pytest.mark.parametrize("address", ["#%", "#%zz", "#9999"])
def test_an_address_that_leads_nowhere_selects_the_first_row(page, address):
    page.open(CAPTURES / "field-sse.jsonl", address)  # it has no problems
    assert page.value("document.querySelector('#rows [aria-selected=true]').id") == "rows-0"
    assert page.browser.log() == []


def test_the_focus_stays_in_the_message_when_its_form_changes_and_a_text_scrolls(everything):
    page = everything
    page.browser.script("location.hash = '#17'")  # a long list of tools
    page.selected()
    page.press(ENTER)
    for form in (".tree:not(.content)", "pre.raw", "pre.hex", ".content"):
        page.press("r")
        page.until(f"document.activeElement.matches('.card.selected {form}')")
        if "pre" not in form:
            continue
        for key, pixels in ((DOWN, 40), ("j", 80)):
            page.press(key)
            page.until(f"document.getElementById('cards').scrollTop === {pixels}")
        page.press("g")
        page.until("document.getElementById('cards').scrollTop === 0")
        assert page.value("location.hash") == "#17"


def test_what_stands_for_a_held_frame_may_be_damaged(page, tmp_path):
    frame = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    records = [
        {"kind": "frame", "ch": 1, "t": 1_000_000_000, "raw": frame, "held": 1, "by": "gate slow"},
        {"kind": "release", "t": 3, "held": 1, "how": "edited", "sent": {"b64": "!"}, "by": "gate slow"},
    ]
    page.open(recorded(tmp_path / "a.jsonl", *records), "#5")
    assert page.selected() == "#5"
    assert page.texts(".gate") == ["still held by gate slow"]
    assert page.browser.log() == []


def test_a_byte_order_mark_is_seen_and_the_message_behind_it_is_read(page, tmp_path):
    frame = {"kind": "frame", "ch": 2, "t": 0, "raw": '\ufeff{"jsonrpc":"2.0","method":"m"}'}
    page.open(recorded(tmp_path / "a.jsonl", frame), "#5")
    assert page.texts(".selected .line")[1:] == ['"jsonrpc": "2.0"', '"method": "m" ◂ warning']
    page.press("r")
    page.until("document.querySelector('.selected pre.raw')")
    assert page.texts(".selected pre.raw") == ['\\ufeff{"jsonrpc":"2.0","method":"m"}']


def test_a_damaged_line_ends_a_frame_in_pieces_as_mcpspy_reads_it(page, tmp_path):
    piece = {"kind": "frame", "ch": 1, "t": 1, "raw": '{"jsonrpc":', "more": True}
    records = [piece, {"kind": "frame", "ch": 1, "t": "late", "raw": "?"}, piece | {"raw": '"2.0"}', "more": False}]
    page.open(recorded(tmp_path / "a.jsonl", *records), "#7")
    assert page.texts(".card pre.raw") == ['"2.0"}']


def test_a_batch_of_thousands_is_drawn_at_once(page, tmp_path):
    calls = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(5000)]
    answers = [{"jsonrpc": "2.0", "id": number, "result": {}} for number in reversed(range(5000))]
    frames = [
        {"kind": "frame", "ch": channel, "t": channel, "raw": json.dumps(messages)}
        for channel, messages in ((1, calls), (2, answers))
    ]
    page.open(recorded(tmp_path / "a.jsonl", *frames), "#5.4999")
    assert page.texts(".card h3") == ["→ #5.4999 ping", "← #6 ping"]
    taken = "const start = performance.now(); document.getElementById('tab-sequence').click();"
    assert page.browser.script(f"{taken} return performance.now() - start") < 1000  # a linear search takes 3000 ms
    page.press("1p")
    assert page.selected() == "#6"


def test_without_scripts_the_page_says_only_why_it_is_empty(page):
    page.open(CAPTURES / "probe-node-2025-11-25.jsonl")
    page.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.browser.ask("/url", url=page.value("location.href.split('#')[0]"))
        shown = page.value("document.body.innerText")
    finally:
        page.command("Emulation.setScriptExecutionDisabled", value=False)
    assert shown.startswith("This page needs JavaScript.")
    assert "Unpacking" not in shown
