"""Every action of a gate file over every transport: what both sides receive, and what the capture has.

There is one relay for each transport, with one gate for each case. A gate acts on calls of the tool with its name.
"""

import asyncio
import contextlib
import signal
import sys

import aiohttp
import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Release
from mcpspy.replay.script import load
from tests.peers import warm
from tests.relay import acting
from tests.relay.acting import CALL, PROGRESS, RESULT
from tests.relay.harness import PYTHON
from tests.relay.interception import intercepting, needs_mitmproxy
from tests.relay.stage import LIMIT

ANSWER = b'{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"down"}}'
RECORDED = b'{"jsonrpc":"2.0","id":7,"result":{"recorded":true}}'
REFUSAL = (
    b'{"jsonrpc": "2.0", "id": 7, "error": '
    b'{"code": -32000, "message": "mcpspy: gate status-request answers with this status"}}'
)
EDIT = '[{ op = "replace", path = "%s", value = %s }]'
CASES = {
    "untouched": None,
    "drop-request": "drop = true",
    "drop-result": "drop = true",
    "edit-request": f"edit = {EDIT % ('/params/arguments/n', 2)}",
    "edit-result": f"edit = {EDIT % ('/result/content/0/text', chr(34) + 'rain' + chr(34))}",
    "repeat-request": "repeat = 2",
    "repeat-result": "repeat = 2",
    "answer-request": 'answer = { error = { code = -32603, message = "down" } }',
    "recorded-request": 'answer-from = "recorded.jsonl"',
    "nearest-request": 'answer-from = "recorded.jsonl"\nmiss = "nearest"',
    "missing-request": 'answer-from = "recorded.jsonl"',
    "send-result": 'send = "oops"',
    "cut-result": "cut = 20",
    "not-json-result": 'garble = "not-json"',
    "invalid-utf8-result": 'garble = "invalid-utf8"',
    "bom-result": 'garble = "bom"',
    "delay-request": 'delay = "20ms"',
    "delay-result": 'delay = "20ms"',
    "throttle-result": 'throttle = "10kB/s"',
    "hold-request": 'hold = "30ms"',
    "hold-result": 'hold = "30ms"',
    "delayed-drop-request": 'drop = true\ndelay = "20ms"',
    "close-result": "close = true",
    "status-request": "status = 503",
}
WAITING = {"delay-request", "delay-result", "throttle-result", "hold-request", "hold-result", "delayed-drop-request"}
HTTP_ONLY = {"status-request"}


def gate_file(folder, *, http):
    """Write a file with a gate for each case."""
    gates = []
    for name, action in CASES.items():
        if action and (http or name not in HTTP_ONLY):
            kind = name.rpartition("-")[2]
            gates.append(f"[[gate]]\nname = \"{name}\"\nwhen = 'name:{name} kind:{kind}'\n{action}\n")
    path = folder / "gates.toml"
    path.write_text("\n".join(gates))
    recording(folder / "recorded.jsonl")
    return path


def recording(path):
    """Write a capture with calls of two of the tools."""
    lines = ['{"mcpspy":1,"id":"ab","started":"2026-11-20T19:15:00.000000Z","tool":"t","transport":"stdio","name":"n"}']
    for ch, sender, role in ((1, "client", "stdin"), (2, "server", "stdout")):
        lines.append(f'{{"kind":"open","ch":{ch},"t":0,"from":"{sender}","role":"{role}","framing":"lines"}}')
    for t, tool in enumerate((b"recorded-request", b"nearest-request")):
        call, result = CALL % tool, RECORDED.replace(b":7", b":%d" % t)
        call = call.replace(b":7", b":%d" % t).replace(b"1.10", b"1.10" if t == 0 else b"3")
        for ch, raw in ((1, call), (2, result)):
            text = raw.decode().replace('"', '\\"')
            lines.append(f'{{"kind":"frame","ch":{ch},"t":{2 * t + ch},"raw":"{text}"}}')
    lines.append('{"kind":"end","t":99,"exit":{"code":0}}')
    path.write_text("\n".join(lines) + "\n")
    assert load(str(path), print)


def expected(name, *, progress, joined):
    """Return the frames that the server and the client receive; with `joined`, frames of one body are concatenated."""
    call, before = CALL % name.encode(), [PROGRESS] if progress else []
    server, client = [call], [*before, RESULT]
    if name in ("drop-request", "delayed-drop-request"):
        server, client = [], []
    elif name == "status-request":
        server, client = [], [REFUSAL]
    elif name == "answer-request":
        server, client = [], [ANSWER]
    elif name in ("recorded-request", "nearest-request"):
        server, client = [], [RECORDED]
    elif name == "edit-request":
        server = [call.replace(b"1.10", b"2")]
    elif name == "repeat-request":
        server, client = ([call + call], []) if joined else ([call, call], client + client)
    elif name == "repeat-result":
        client = [RESULT + RESULT] if joined and not progress else [*client, RESULT]
    elif name in ("drop-result", "close-result"):
        client = before
    elif name in CHANGED:
        client = [*before, CHANGED[name]]
    return server, client


CHANGED = {
    "edit-result": RESULT.replace(b"sunny", b"rain"),
    "send-result": b"oops",
    "cut-result": RESULT[:20],
    "not-json-result": RESULT[:-1],
    "invalid-utf8-result": RESULT[:-1] + b"\xff}",
    "bom-result": b"\xef\xbb\xbf" + RESULT,
}
STATUSES = {"drop-request": 202, "delayed-drop-request": 202, "status-request": 503}


@contextlib.asynccontextmanager
async def proxy(folder, port):
    """Run `mcpspy proxy` in front of a port; yield its URL and a function that returns the path of the capture."""
    capture = folder / "capture.jsonl"
    command = [sys.executable, "-m", "mcpspy", "proxy", "--gate", str(gate_file(folder, http=True))]
    command += ["--listen", "127.0.0.1:0", "-o", str(capture), f"http://127.0.0.1:{port}/json"]
    if warm.CAN:
        process = await warm.proxy(command[1:])
    else:
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        url = (await process.stdout.readline()).decode()
        yield url.removesuffix("/json\n"), lambda: capture
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


@contextlib.asynccontextmanager
async def mitm(folder, port):
    """Run `mcpspy mitm` in front of a port; yield its URL and a function that returns the path of the capture."""
    options = ["--mode", f"reverse:http://127.0.0.1:{port}", "--gate", str(gate_file(folder, http=True))]
    with intercepting(folder, *options) as running:
        yield f"http://{running.place}", lambda: running.captures()[0]


async def over_web(folder, relay, transport, headers):
    """Run each case over HTTP; return the frames that the server and the client received, and the capture."""
    found = {}
    async with acting.upstream() as (server, port), relay(folder, port) as (base, capture):
        for name in CASES:
            before, message = len(server.got), CALL % name.encode()
            async with aiohttp.ClientSession(headers=headers) as session:
                if transport == "legacy":
                    came = await acting.over_legacy(session, base, message)
                elif transport == "ws":
                    count = len(expected(name, progress=True, joined=False)[1])
                    came = await acting.over_websocket(session, base, message, count)
                else:
                    came = await acting.post(session, f"{base}/{transport}", message)
            found[name] = server.got[before:], came
    return found, capture()


async def over_stdio(folder):
    """Run each case through one `wrap`; return the same as `over_web`. The case that ends the stream comes last."""
    found, got, path = {}, folder / "got", str(gate_file(folder, http=False))
    got.touch()
    capture = folder / "capture.jsonl"
    names = [name for name in CASES if name not in HTTP_ONLY and name != "close-result"] + ["close-result"]
    command = [sys.executable, "-m", "mcpspy", "wrap", "--gate", path, "-o", str(capture), "--"]
    command += [*PYTHON, acting.stdio_server(), str(got)]
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*command, **pipes)
    try:
        for name in names:
            before = len(got.read_bytes().splitlines())
            count = len(expected(name, progress=True, joined=False)[1])
            came = await acting.over_stdio(process, CALL % name.encode(), count)
            found[name] = got.read_bytes().splitlines()[before:], came
        process.stdin.close()
        assert await process.wait() in (0, 120)  # 120: Python could not write its last line to the closed stream
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return found, capture


def judge(found, capture, *, progress, joined, waits=True, statuses=True):
    """Compare the received frames with the gate file and with the capture."""
    told = {name: (server, came.frames) for name, (server, came) in found.items()}
    wanted = {name: expected(name, progress=progress, joined=joined) for name in found}
    assert told == wanted
    if statuses:
        assert {name: came.status for name, (_, came) in found.items() if name in STATUSES} == STATUSES
    assert [name for name, (_, came) in found.items() if came.closed] == ["close-result"]
    records = list(Capture(str(capture)).records())
    frames = [record for record in records if isinstance(record, Frame)]
    acted = {frame.by for frame in frames if frame.by}
    acting_gates = {name for name in found if CASES[name] and name != "missing-request"}
    passing = set() if waits else {name for name in WAITING if name.endswith("result")}
    assert acted >= {f"gate {name}" for name in acting_gates - passing}
    assert not any(b'"untouched"' in frame.raw and frame.by for frame in frames)
    if waits:
        released = [record.how for record in records if isinstance(record, Release)]
        assert set(released) >= {"delayed", "expired"}


async def within(coroutine):
    return await asyncio.wait_for(coroutine, 3 * LIMIT)


def test_stdio(tmp_path):
    found, capture = asyncio.run(within(over_stdio(tmp_path)))
    judge(found, capture, progress=True, joined=False, statuses=False)


MODERN = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}


@pytest.mark.parametrize("headers", [{}, MODERN], ids=["handshake", "2026-07-28"])
@pytest.mark.parametrize("transport", ["json", "sse"])
def test_streamable_http(tmp_path, transport, headers):
    found, capture = asyncio.run(within(over_web(tmp_path, proxy, transport, headers)))
    judge(found, capture, progress=transport == "sse", joined=True)


def test_legacy_sse(tmp_path):
    found, capture = asyncio.run(within(over_web(tmp_path, proxy, "legacy", {})))
    _, refused = found.pop("status-request")
    assert (refused.status, refused.frames) == (503, [])
    _, broken = found["close-result"]
    broken.frames = [PROGRESS]  # aiohttp discards what it has read when the stream breaks off
    judge(found, capture, progress=True, joined=True, statuses=False)


def test_websocket(tmp_path):
    found, capture = asyncio.run(within(over_web(tmp_path, proxy, "ws", {})))
    _, spoilt = found.pop("invalid-utf8-result")
    assert not any(came.compressed for _, came in found.values())
    assert (spoilt.frames, spoilt.closed) == ([PROGRESS], True), "clients end such a connection (RFC 6455, 8.1)"
    found = {name: it for name, it in found.items() if name not in HTTP_ONLY}
    judge(found, capture, progress=True, joined=False, statuses=False)


@needs_mitmproxy
@pytest.mark.parametrize("transport", ["json", "sse"])
def test_mitm(tmp_path, transport):
    found, capture = asyncio.run(within(over_web(tmp_path, mitm, transport, {})))
    judge(found, capture, progress=transport == "sse", joined=True, waits=transport == "json")


@needs_mitmproxy
def test_websocket_of_mitm(tmp_path):
    found, capture = asyncio.run(within(over_web(tmp_path, mitm, "ws", {})))
    _, spoilt = found.pop("invalid-utf8-result")
    assert spoilt.frames[-1] == RESULT[:-1] + "\ufffd}".encode(), "mitmproxy sends no text that is not UTF-8"
    found = {name: it for name, it in found.items() if name not in HTTP_ONLY}
    judge(found, capture, progress=True, joined=False, statuses=False)
