"""A scripted relay: it writes a live capture and reads the orders of a viewer."""

import time

from mcpspy.capture.live import LiveFolder
from tests.transcript import begin, finish, record
from tests.tui.screen import until

SESSION = """
> 0 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"%s","version":"1"}}
< 0 = {"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"weather","version":"1"}}
> notifications/initialized
> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_forecast","arguments":{"city":"Bergen","d":1.50}}}
< 1 = {"content":[{"type":"text","text":"rain"}]}
"""
"""Frames #5 to #9, without the client's name."""
CALL = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_forecast","arguments":{"city":"Oslo"}}}'
RESULT = b'{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'
CLIENT, SERVER = 1, 2


class ScriptedRelay:
    """A session that runs as long as this object. Times are seconds since its start, by default 100 s ago."""

    def __init__(self, path, client="opencode", ago=100, wall=None, **fields):
        """Start the session at `wall`, in nanoseconds since the epoch, or without it `ago` seconds ago."""
        wall = time.time_ns() - ago * 10**9 if wall is None else wall
        self.writer = begin(path, wall=wall, **({"control": True} | fields))
        self.path = str(path)
        self.ago = ago
        self.folder = LiveFolder(self.writer.live_path)
        self.orders = []
        record(self.writer, SESSION % client)

    def now(self):
        return self.ago * 10**9

    def frame(self, raw=CALL, channel=CLIENT, at=None, **rest):
        """Record a frame. `rest` holds the other members of the record."""
        self.writer.frame(channel, self.now() if at is None else round(at * 1e9), raw, more=False, cut=False, rest=rest)

    def hold(self, number, gate, raw=CALL, channel=CLIENT, at=None):
        self.frame(raw, channel, at, held=number, by=f"gate {gate}")

    def release(self, held, how, **rest):
        self.writer.release(self.now(), held, how, rest)

    def look(self):
        """Return the gates that viewers have set, and add the viewers' orders to `orders`."""
        gates, orders, faults = self.folder.read()
        assert not faults
        self.orders += orders
        return gates

    async def gates(self, pilot, count):
        """Wait for `count` gates and return them."""
        await until(pilot, lambda: len(self.look()) == count, f"{count} gates")
        return self.look()

    async def order(self, pilot):
        """Wait for the next order and return it."""
        await until(pilot, lambda: self.look() is not None and self.orders, "an order")
        return self.orders.pop(0)

    def end(self):
        self.folder.remove()
        finish(self.writer, self.now())
