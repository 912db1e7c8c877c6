"""A wrapper of stdio servers with a deliberate fault: `wrapper.py FAULT COMMAND [ARG...]`.

none        forwards everything
drop-in     drops the last byte of the client's name
drop-out    drops the last byte of the server's name
banner      writes a line to stdout first
chatter     writes a line to stderr first
variable    adds a variable to the environment
swallow     does not forward SIGTERM
status      ends with status 0, however the server ended
directory   starts the server in another directory
descriptor  leaves a descriptor open in the server
group       starts the server in a new process group
respell     parses each message and serialises it again
cut         cuts lines after 64 KiB
late        delays the server's output by 0.2 s
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

FAULT, *COMMAND = sys.argv[1:]


def environment():
    """Return the environment that this process was started with. Python may have added to `os.environ`."""
    with open("/proc/self/environ", "rb") as file:
        pairs = [entry.partition(b"=") for entry in file.read().split(b"\0") if entry]
    found = {name: value for name, _, value in pairs}
    return found | ({b"PLANTED": b"s3cr3t"} if FAULT == "variable" else {})


def spelled(line):
    """Return a line as a wrapper that parses lines writes it."""
    if FAULT == "cut":
        return line[:65536]
    try:
        return json.dumps(json.loads(line), separators=(",", ":"), ensure_ascii=False).encode()
    except ValueError:
        return line


def pump_lines(source, target):
    with open(source, "rb") as lines, open(target, "wb", 0) as written:
        written.writelines(spelled(line.removesuffix(b"\n")) + b"\n" for line in lines)


def pump(source, target, spoil):
    if FAULT in ("respell", "cut"):
        pump_lines(source, target)
        return
    try:
        while chunk := os.read(source, 65536):
            if FAULT == "late" and target == 1:
                time.sleep(0.2)
            os.write(target, chunk.replace(spoil, spoil[:-1], 1) if spoil else chunk)
    except OSError:
        pass
    for end in (source, target):
        os.close(end)


def main():
    kept = [os.open(os.devnull, os.O_RDONLY)] if FAULT == "descriptor" else []
    server = subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        cwd="/" if FAULT == "directory" else None,
        pass_fds=kept,
        process_group=0 if FAULT == "group" else None,
    )
    signal.signal(signal.SIGINT, lambda number, _: server.send_signal(number))
    if FAULT == "swallow":
        signal.signal(signal.SIGTERM, lambda *_: None)
    else:
        signal.signal(signal.SIGTERM, lambda number, _: server.send_signal(number))
    if FAULT == "banner":
        os.write(1, b"wrapper 1.0 ready\n")
    if FAULT == "chatter":
        os.write(2, b"wrapper 1.0 ready\n")
    ways = (
        (0, os.dup(server.stdin.fileno()), b"mcpspy-verify" if FAULT == "drop-in" else b""),
        (os.dup(server.stdout.fileno()), 1, b"small" if FAULT == "drop-out" else b""),
        (os.dup(server.stderr.fileno()), 2, b""),
    )
    for stream in (server.stdin, server.stdout, server.stderr):
        stream.close()
    threads = [threading.Thread(target=pump, args=way, daemon=True) for way in ways]
    for thread in threads:
        thread.start()
    code = server.wait()
    for thread in threads[1:]:
        thread.join(5)
    if FAULT == "status":
        os._exit(0)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


main()
