"""A server without an SDK that logs what happens to it: `plain_server.py LOG [OPTION...]`, or with `--http` on a port.

Each event is one JSON line `{"t": seconds, "pid": number, "event": text}` in the file LOG: `start`, `< METHOD` for a
message that came, `eof`, `signal NAME`, `alive` while the server stays after one of these, `cleaned`, `end`. A server
without `end` was killed.

    --slow-initialize S   answer `initialize` after S seconds
    --noise               write a line that is not JSON before each answer
    --clean-up S          take S seconds to clean up after the first signal, or the end of stdin
    --stubborn            stay after signals and the end of stdin, for 6 seconds
    --http                serve Streamable HTTP; prints the port
    --tls CERT KEY        the same over TLS
"""

import argparse
import json
import os
import signal
import ssl
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
LIFE = 300  # seconds; a server exits soon after its test
STUBBORN = 6  # seconds
PULSE = 0.02  # seconds between two `alive`
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
TOOLS = [
    {
        "name": "echo",
        "description": "Return the text.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
    {
        "name": "slow",
        "description": "Answer after some seconds.",
        "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]},
    },
    {"name": "crash", "description": "End the server.", "inputSchema": {"type": "object", "properties": {}}},
]


def reply(message):
    """Return the answer to a message and its delay in seconds. If the message is not a request, the answer is None."""
    if "id" not in message or "method" not in message:
        return None, 0
    params, seconds = message.get("params") or {}, 0
    head = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        asked = params.get("protocolVersion")
        result = {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "plain", "version": "1"},
        }
    elif message["method"] == "ping":
        result = {}
    elif message["method"] == "tools/list":
        result = {"tools": TOOLS}
    elif message["method"] == "tools/call":
        arguments = params.get("arguments") or {}
        seconds = arguments.get("seconds", 0)
        result = {"content": [{"type": "text", "text": f"echo: {arguments.get('text', seconds)}"}]}
    else:
        return head | {"error": {"code": -32601, "message": "Method not found"}}, 0
    return head | {"result": result}, seconds


class Log:
    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def __call__(self, event, **more):
        line = json.dumps({"t": round(time.monotonic(), 4), "pid": os.getpid(), "event": event} | more)
        os.write(self._file, line.encode() + b"\n")

    def message(self, message):
        self(f"< {message.get('method', 'answer')}", message=message)
        if message.get("method") == "tools/call" and (message.get("params") or {}).get("name") == "crash":
            self("end")
            os._exit(1)

    def end(self):
        self("end")
        os._exit(0)


class Leaving:
    """The behaviour after a signal or the end of stdin: exit, clean up and exit, or stay for a while."""

    def __init__(self, log, options):
        self._log = log
        self._seconds = STUBBORN if options.stubborn else options.clean_up
        self._begun = threading.Lock()

    def watch(self):
        for name in SIGNALS:
            signal.signal(getattr(signal, name), lambda number, _: self(f"signal {signal.Signals(number).name}"))

    def __call__(self, event):
        self._log(event)
        if self._begun.acquire(blocking=False):
            threading.Thread(target=self._leave, daemon=True).start()

    def _leave(self):
        until = time.monotonic() + self._seconds
        while time.monotonic() < until:
            self._log("alive")
            time.sleep(PULSE)
        if self._seconds:
            self._log("cleaned")
        self._log.end()


def on_stdio(log, options):
    leaving, writing = Leaving(log, options), threading.Lock()
    leaving.watch()

    def write(answer):
        try:
            with writing:
                noise = b"Working ...\n" if options.noise else b""
                sys.stdout.buffer.write(noise + json.dumps(answer).encode() + b"\n")
                sys.stdout.buffer.flush()
        except OSError:
            log("client is gone")

    def read():
        for line in sys.stdin.buffer:
            try:
                message = json.loads(line)
            except ValueError:
                log("< not json", text=line.decode(errors="replace"))
                continue
            log.message(message)
            answer, seconds = reply(message)
            if message.get("method") == "initialize":
                seconds = options.slow_initialize
            if answer and seconds:
                timer = threading.Timer(seconds, write, [answer])
                timer.daemon = True
                timer.start()
            elif answer:
                write(answer)
        leaving("eof")

    threading.Thread(target=read, daemon=True).start()
    until = time.monotonic() + LIFE
    while time.monotonic() < until:  # this thread handles the signals
        time.sleep(1)


class Endpoint(BaseHTTPRequestHandler):
    """Streamable HTTP without streams: each request has one JSON body as its answer."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.log.message(message)
        session = self.headers.get("Mcp-Session-Id")
        if session is not None and session not in self.server.sessions:
            self._send(404, None, {})
            return
        answer, seconds = reply(message)
        time.sleep(seconds)
        headers = {"Content-Type": "application/json"} if answer else {}
        if message.get("method") == "initialize":
            headers["Mcp-Session-Id"] = str(uuid.uuid4())
            self.server.sessions.add(headers["Mcp-Session-Id"])
        self._send(200 if answer else 202, answer, headers)

    def do_GET(self):
        self._send(405, None, {"Allow": "POST, DELETE"})

    def do_DELETE(self):
        self.server.log("delete")
        self.server.sessions.discard(self.headers.get("Mcp-Session-Id"))
        self._send(200, None, {})

    def _send(self, status, answer, headers):
        body = json.dumps(answer).encode() if answer else b""
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            self.server.log("client is gone")


def on_http(log, options):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.log, server.sessions, server.daemon_threads = log, set(), True
    if options.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*options.tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    signal.signal(signal.SIGTERM, lambda *_: log.end())
    print(server.server_port, flush=True)
    timer = threading.Timer(LIFE, log.end)
    timer.daemon = True
    timer.start()
    server.serve_forever()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("log")
    parser.add_argument("--slow-initialize", type=float, default=0)
    parser.add_argument("--noise", action="store_true")
    parser.add_argument("--clean-up", type=float, default=0)
    parser.add_argument("--stubborn", action="store_true")
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--tls", nargs=2)
    options = parser.parse_args()
    log = Log(options.log)
    log("start")
    (on_http if options.http or options.tls else on_stdio)(log, options)


if __name__ == "__main__":
    main()
