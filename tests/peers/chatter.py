"""A client and a server that keep talking until they are killed, and log what each of them sent and received.

    chatter.py client FOLDER SEED COMMAND...    start COMMAND and talk to it over its pipes, until stdin ends
    chatter.py server FOLDER SEED               the server, on stdin and stdout
    chatter.py http-client FOLDER SEED PORT     the same over HTTP, on three connections
    chatter.py http-server FOLDER SEED          print the port and serve, until stdin ends

A line is logged before it is sent, and after it was received. So the logs of a killed process, in FOLDER, contain all
that it sent, and nothing that it did not receive. Lines have 20 bytes to 200 KiB.
"""

import http.client
import json
import os
import random
import select
import signal
import socketserver
import subprocess
import sys
import threading
import time

MOST = 400  # requests of a connection
WINDOW = 8  # requests that are open at the same time
LARGEST = 17.6  # as a power of two: 200 KiB
PAUSE = 0.03  # seconds between two bursts, at most
TEXTS = ("x", 'a "quoted\\" \u202e é', "0123456789abcdef", "{[,]}\t ")
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}}
ME = {"name": "chatter", "version": "1"}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "slow")]


class Log:
    """A file of lines."""

    def __init__(self, folder, name):
        self._fd = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add(self, data):
        """Append bytes with one write, so that the lines of several threads do not mix."""
        assert os.write(self._fd, data) == len(data)


def message(chance, **members):
    """Return a message as a line; a text makes it as long as chance wants."""
    size = int(2 ** chance.uniform(4, LARGEST))
    text = (chance.choice(TEXTS) * size)[:size]
    if "params" in members and "arguments" in members["params"]:
        members["params"]["arguments"]["text"] = text
    elif "content" in members.get("result", {}):
        members["result"]["content"][0]["text"] = text
    return json.dumps({"jsonrpc": "2.0"} | members, ensure_ascii=chance.random() < 0.5).encode() + b"\n"


def request(chance, number):
    """Return request `number` of a client, the first of which is `initialize`."""
    if number == 1:
        return message(chance, id=1, method="initialize", params=HANDSHAKE | {"clientInfo": ME})
    if number == 2:
        return message(chance, id=2, method="tools/list")
    name = "slow" if chance.random() < 0.1 else "echo"
    return message(chance, id=number, method="tools/call", params={"name": name, "arguments": {}})


def reply(chance, asked):
    """Return the response to a request."""
    if asked["method"] == "initialize":
        result = HANDSHAKE | {"capabilities": {"tools": {}}, "serverInfo": ME}
    else:
        called = asked["method"] == "tools/call"
        result = {"content": [{"type": "text", "text": ""}]} if called else {"tools": TOOLS}
    return message(chance, id=asked["id"], result=result)


def notification(chance, method):
    """Return a notification of any size."""
    return message(chance, method=method, params={"arguments": {}})


def write(fd, data):
    """Write all bytes to a pipe."""
    while data:
        data = data[os.write(fd, data) :]


def ended():
    """Return whether stdin has ended."""
    return bool(select.select([0], [], [], 0)[0])


def client(folder, chance, *command):
    """Start the command and talk to it; stdin ends the conversation in order."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    sent, got = Log(folder, "client.sent"), Log(folder, "client.got")
    window, over = threading.Semaphore(WINDOW), threading.Event()

    def read():
        while piece := os.read(process.stdout.fileno(), 65536):
            got.add(piece)
            for _ in range(piece.count(b"\n")):
                window.release()
        over.set()
        window.release(WINDOW)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    sink = process.stdin.fileno()
    try:
        for number in range(1, MOST):
            window.acquire()
            if over.is_set() or ended():
                break
            line = request(chance, number)
            if number == 2:
                line = notification(chance, "notifications/initialized") + line
            elif chance.random() < 0.1:
                line += notification(chance, "notifications/dropped")
            sent.add(line)
            write(sink, line)
            if number % WINDOW == 0:
                time.sleep(chance.uniform(0, PAUSE))
    except BrokenPipeError:
        pass
    process.stdin.close()
    reader.join()
    process.wait()


def server(folder, chance):
    """Answer what comes on stdin."""
    sent, got, log = Log(folder, "server.sent"), Log(folder, "server.got"), Log(folder, "server.log")
    rest = b""
    while piece := os.read(0, 65536):
        got.add(piece)
        *lines, rest = (rest + piece).split(b"\n")
        for asked in map(json.loads, lines):
            if "id" not in asked:
                continue
            line = reply(chance, asked)
            if chance.random() < 0.1:
                line = notification(chance, "notifications/message") + line
            if chance.random() < 0.1:
                log.add(b"busy\n")
                write(2, b"busy\n")
            sent.add(line)
            write(1, line)


def http_client(folder, chance, port):
    """Send requests on three connections until stdin ends."""
    sent, got = Log(folder, "client.sent"), Log(folder, "client.got")
    over = threading.Event()
    seeds = [chance.random() for _ in range(3)]

    def talk(first, seed):
        own = random.Random(seed)  # noqa: S311 (no secret)
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
        for number in range(1, MOST):
            if over.is_set():
                return
            body = request(own, number if number < 3 else first + number).removesuffix(b"\n")
            sent.add(body + b"\n")
            try:
                connection.request("POST", "/mcp", body, {"Content-Type": "application/json", "Accept": "*/*"})
                answer = connection.getresponse()
                content = answer.read()
            except ConnectionRefusedError:
                return
            except (OSError, http.client.HTTPException):
                connection.close()
                continue
            if answer.status == 200:
                got.add(content.removeprefix(b"data: ").strip() + b"\n")
            time.sleep(own.uniform(0, PAUSE))

    threads = [threading.Thread(target=talk, args=(n * 10**6, seed), daemon=True) for n, seed in enumerate(seeds, 1)]
    for thread in threads:
        thread.start()
    while not ended() and any(thread.is_alive() for thread in threads):
        time.sleep(0.01)
    over.set()
    for thread in threads:
        thread.join()


def http_server(folder, chance):
    """Answer POST requests with JSON or with an event stream."""
    sent, got = Log(folder, "server.sent"), Log(folder, "server.got")

    class Connection(socketserver.StreamRequestHandler):
        def handle(self):
            own = random.Random(chance.random())  # noqa: S311 (no secret)
            while self.rfile.readline():
                size = 0
                while (field := self.rfile.readline()) not in (b"", b"\r\n"):
                    if field.lower().startswith(b"content-length:"):
                        size = int(field.partition(b":")[2])
                body = self.rfile.read(size)
                if len(body) < size:
                    return
                got.add(body + b"\n")
                answer = reply(own, json.loads(body)).removesuffix(b"\n")
                sent.add(answer + b"\n")
                if own.random() < 0.5:
                    head = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer)
                    self.wfile.write(b"HTTP/1.1 200 OK\r\n" + head + answer)
                    continue
                event = b"data: " + answer + b"\n\n"
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
                self.wfile.write(b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(event) + event + b"\r\n0\r\n\r\n")

    class Quiet(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 50

        def handle_error(self, *_):
            pass

    with Quiet(("127.0.0.1", 0), Connection) as listening:
        print(listening.server_address[1], flush=True)
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        select.select([0], [], [])


if __name__ == "__main__":
    role, place, seed, *rest = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # it ends without a traceback
    if role == "server":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    roles = {"client": client, "server": server, "http-client": http_client, "http-server": http_server}
    chosen = random.Random(f"{role} {seed}")  # noqa: S311 (no secret)
    roles[role](place, chosen, *rest)
