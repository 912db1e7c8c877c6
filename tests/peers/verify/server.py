"""A small MCP server on stdio for `mcpspy verify`, without an SDK: `server.py [HABIT...]`.

random      writes a random number into a tool's result, and to stderr
stubborn    stays after SIGTERM, SIGINT and the end of stdin
daemon=FILE starts a process in a new session at a call, and writes its pid into FILE
dies        exits with status 3 at the call of a tool
exits       exits at once, with a line on stderr
hangs       never answers
garbage     writes lines that are not messages
floods      writes without end
mute        does not answer tool calls
once=FILE   answers only in its first run, which creates FILE
stateless   supports server/discover, but not initialize
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

LIFE = 60  # seconds; a server exits soon after its test
HABITS = sys.argv[1:]
READS = {"readOnlyHint": True}
TOOLS = [
    {"name": "look", "inputSchema": {"type": "object"}, "annotations": READS},
    {"name": "find", "inputSchema": {"type": "object", "required": ["text"]}, "annotations": READS},
    {"name": "write", "inputSchema": {"type": "object"}},
]


def answer(method, params):
    if method == "initialize" and "stateless" not in HABITS:
        info = {"name": "small", "version": "1"}
        return {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "server/discover" and "stateless" in HABITS:
        return {"result": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}}
    if method == "tools/list":
        return {"result": {"tools": TOOLS}}
    if method == "tools/call":
        return {"result": {"content": [{"type": "text", "text": called(params)}]}}
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": f"no {method}"}}


def called(params):
    if "dies" in HABITS:
        sys.exit(3)
    for habit in HABITS:
        if habit.startswith("daemon="):
            process = subprocess.Popen(
                [sys.executable, "-c", f"import time; time.sleep({LIFE})"], start_new_session=True
            )
            with open(habit.partition("=")[2], "a") as file:
                file.write(f"{process.pid}\n")
    if "random" in HABITS:
        print(f"drew {os.urandom(9).hex()}", file=sys.stderr, flush=True)
        return f"drawn: {os.urandom(9).hex()}"
    return f"{params['name']} {json.dumps(params.get('arguments'))} é"


def exit_at_interrupt():
    signal.sigwait({signal.SIGINT})
    os._exit(7)


def main():
    if "exits" in HABITS:
        print("no such table", file=sys.stderr)
        sys.exit(4)
    if "stubborn" in HABITS:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    else:
        # a handler would not be called if the signal comes just before the read of stdin begins to wait
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        threading.Thread(target=exit_at_interrupt, daemon=True).start()
    while "floods" in HABITS:
        print("x" * 1000)
    times = [habit.partition("=")[2] for habit in HABITS if habit.startswith("once=")]
    if times and os.path.exists(times[0]):
        HABITS.append("hangs")
    for path in times:
        open(path, "w").close()
    for line in sys.stdin:
        if "hangs" in HABITS or ("mute" in HABITS and '"tools/call"' in line):
            continue
        if "garbage" in HABITS:
            print("this is no message", flush=True)
            continue
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if "id" in message:
            said = {"jsonrpc": "2.0", "id": message["id"]} | answer(message["method"], message.get("params"))
            print(json.dumps(said, ensure_ascii=False), flush=True)
    if "stubborn" in HABITS:
        time.sleep(LIFE)


sys.stdin.reconfigure(encoding="utf-8")
sys.stdout.reconfigure(encoding="utf-8")
main()
