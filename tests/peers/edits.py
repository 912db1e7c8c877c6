"""A client of the Python SDK, 1.x or 2.x: `edits.py COUNT FILE COMMAND…` edits its server's file while it is connected.

COMMAND is `mcpspy wrap --reload FILE -- SERVER…`. A call that never ends is running during each edit. After the edit
the client waits for `list_changed` and calls `version`. After half of the edits the file has a syntax error for a
while. The program prints a JSON object: the versions, the errors of the calls that did not end, and the error of the
call while the server could not run.
"""

import asyncio
import json
import os
import re
import sys
import threading
import time

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


class Inbox:
    """An event for each of the two awaited notifications of the server."""

    def __init__(self):
        self.came = {"notifications/message": asyncio.Event(), "notifications/tools/list_changed": asyncio.Event()}

    async def take(self, message):
        method = getattr(getattr(message, "root", message), "method", None)
        if method in self.came:
            self.came[method].set()

    async def next(self, method):
        await self.came[method].wait()
        self.came[method].clear()


def watching():
    """Return a file for the server's stderr, and an event that is set when mcpspy watches the files."""
    theirs, ours = os.pipe()
    begun, loop = asyncio.Event(), asyncio.get_running_loop()

    def read():
        with open(theirs, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if "watching" in line:
                    loop.call_soon_threadsafe(begun.set)

    threading.Thread(target=read, daemon=True).start()
    return os.fdopen(ours, "w"), begun


def save(path, version):
    with open(path, encoding="utf-8") as file:
        source = file.read()
    now, written = time.time(), 0
    while written <= now:  # the times of files lag; an edit that seems older than the server's start counts as its own
        with open(path + "~", "w", encoding="utf-8") as file:  # as editors do: replace the file by a new one
            file.write(re.sub(r"VERSION = .*", f"VERSION = {version}", source))
        written = os.stat(path + "~").st_mtime
    os.replace(path + "~", path)


async def fails(session, name):
    """Return the error of a call."""
    try:
        result = await session.call_tool(name, {})
    except Exception as error:
        return str(error)
    return None if name == "version" else f"it was answered: {result}"


async def main(count, path, command):
    inbox, refused, versions = Inbox(), [], []
    errors, begun = watching()
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with (
        stdio_client(parameters, errlog=errors) as streams,
        ClientSession(*streams, message_handler=inbox.take) as session,
    ):
        await session.initialize()
        await begun.wait()
        for number in range(2, count + 2):
            running = asyncio.ensure_future(fails(session, "hang"))
            await inbox.next("notifications/message")
            save(path, number)
            await inbox.next("notifications/tools/list_changed")
            refused.append(await running)
            versions.append((await session.call_tool("version", {})).content[0].text)
            if number == count // 2 + 1:
                save(path, "(")
                while not (broken := await fails(session, "version")):  # until mcpspy notices the change
                    pass
                save(path, number)
                await inbox.next("notifications/tools/list_changed")
    print(json.dumps({"versions": versions, "refused": refused, "broken": broken}))


asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
