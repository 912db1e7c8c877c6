"""100,000 randomly patched files: captures, and now and then gate files, lock files and HARs.

Each reader ends with a result or with an error of the package, soon. A block of cases is one test; a failure names its
seed: `patched(seed)` makes the bytes again.
"""

import contextlib
import os
import random
import time

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.contract import lock
from mcpspy.contract.lock import offers
from mcpspy.errors import McpspyError
from mcpspy.gate_files.file import compile_file
from mcpspy.importers.forms import bring
from mcpspy.report.checked import ReportOptions, check
from mcpspy.report.findings import FORMATS
from mcpspy.timeline import final_rows, to_json
from tests.damage import patches
from tests.peers.serving import each
from tests.test_hostile import GOLDEN, exported, run
from tests.timelines import CAPTURES

BLOCK = 250
CASES = 100_000
LINES = 16  # of a golden capture, besides its header
SLOW = 5  # seconds of the processor for one case; most take some milliseconds
OPENED = 50  # one case of so many is opened as in the TUI, and one is read by commands
GATES = b"""seed = 7
[[gate]]
name = "slow"
when = 'method:tools/call name:search* from:client latency:>1s'
delay = "2s"
chance = 0.2
after = 1
[[gate]]
name = "fails"
when = '(kind:request or kind:notification) -"text"'
answer = { error = { code = -32603, message = "Internal error" } }
times = 3
[[gate]]
name = "edit"
when = 'kind:result'
edit = [{ op = "replace", path = "/result/a", value = { b = [1, 2.5, "c"] } }]
"""
HAR = (
    b'{"log":{"version":"1.2","creator":{"name":"x","version":"1"},"entries":[{"startedDateTime":"2025-11-24T16:00:00.1Z",'
    b'"time":12.5,"request":{"method":"POST","url":"http://127.0.0.1:1/mcp","httpVersion":"HTTP/1.1","headers":[{"name":'
    b'"content-type","value":"application/json"}],"postData":{"mimeType":"application/json","text":"{\\"jsonrpc\\":'
    b'\\"2.0\\",\\"id\\":1,\\"method\\":\\"ping\\"}"}},"response":{"status":200,"statusText":"OK","headers":[{"name":'
    b'"content-type","value":"text/event-stream"}],"content":{"size":40,"mimeType":"text/event-stream","encoding":'
    b'"base64","text":"ZGF0YTogeyJqc29ucnBjIjoiMi4wIiwiaWQiOjEsInJlc3VsdCI6e319Cgo="}},"timings":{"wait":1,"receive":2}}]}}'
)


def patched(seed, locked):
    """Return the kind of file of a case, and its bytes."""
    chance = random.Random(f"patch {seed}")  # noqa: S311 (no secret)
    kind = chance.choices(["capture", "gates", "lock", "har"], [85, 5, 5, 5])[0]
    if kind == "capture":
        header, *rest = chance.choice(GOLDEN)
        first = chance.choice([0, chance.randrange(len(rest))])
        if chance.random() < 0.9:  # a damaged header is an error at once
            return kind, header + b"\n" + patches(b"\n".join(rest[first : first + LINES]) + b"\n", chance)
        return kind, patches(b"\n".join([header, *rest[first : first + LINES]]) + b"\n", chance)
    return kind, patches({"gates": GATES, "lock": locked, "har": HAR}[kind], chance)


def read(path, kind, seed):
    """Read a file in every way for its kind."""
    if kind == "gates":
        compile_file(path, "stdio")
    elif kind == "lock":
        lock.read(path)
    elif kind == "har":
        bring(path, os.environ, f"{path}.captures", lambda size: None)
    else:
        checked = check(path, show=True)
        assert not checked.failed, "a rule raised an exception"
        for form in FORMATS.values():
            "".join(form.write([checked], ReportOptions()))
        capture = Capture(path)
        for row in final_rows(capture.records, live=False):
            assert to_json(row, capture.header)
        if seed % OPENED == 0:
            exported(path)
        if seed % OPENED == 1:
            for command in (["show", path], ["show", path, "--json"], ["stats", path]):
                status, err = run(command)
                assert status in (0, 2), err
                assert "bug of mcpspy" not in err, err


@pytest.fixture(scope="module")
def locked():
    """Return a lock file of a golden capture."""
    [offer, *_] = offers(Capture(str(CAPTURES / "features-python2-2026-07-28.jsonl")))
    return lock.as_text({"features": lock.locked(offer)}).encode()


@pytest.mark.parametrize("block", each(range(CASES // BLOCK), usual=[0]))
def test_no_patch_breaks_a_reader(tmp_path, monkeypatch, locked, block):
    """A-07."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = str(tmp_path / "patched")
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        kind, data = patched(seed, locked)
        with open(path, "wb") as file:
            file.write(data)
        begun = time.process_time()
        try:
            with contextlib.suppress(McpspyError):
                read(path, kind, seed)
        except BaseException as error:
            error.add_note(f"seed {seed}: {kind}")
            raise
        taken = time.process_time() - begun
        assert taken < SLOW, f"seed {seed}: {taken:.1f} s"
