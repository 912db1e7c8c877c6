"""A viewer of a running session, as the terminal application is one: it sets gates, and decides on what they hold."""

import asyncio
from contextlib import contextmanager

from mcpspy.capture.live import LiveViewer
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Gates, Release
from tests.relay.harness import until

HOLD = {"hold": 60_000_000_000}


class Viewer(LiveViewer):
    """A viewer of the capture at a path, which it reads."""

    def __init__(self, path):
        self.capture = str(path)
        super().__init__(self.capture, Capture(self.capture).header.id)

    def records(self, kind):
        return [record for record in Capture(self.capture).records(1 << 62) if isinstance(record, kind)]

    def gate(self, action, name="g", **when):
        """Have one gate in force, once the relay says so."""
        gates = [{"name": name, "when": when, "action": action}]
        self.set_gates(gates)
        return gates

    def in_force(self):
        """The gates that the relay has recorded last."""
        found = self.records(Gates)
        return list(found[-1].gates) if found else []

    def held(self, count=1):
        """Wait for frames that are held, and return them."""

        def there():
            gone = {release.held for release in self.records(Release)}
            frames = [frame for frame in self.records(Frame) if frame.held is not None and frame.held not in gone]
            return frames if len(frames) >= count else None

        return until(there, f"{count} held frames")

    def gone(self):
        """Wait until nothing is held any more."""
        until(lambda: len(self.records(Release)) == len([it for it in self.records(Frame) if it.held is not None]))

    async def holds(self, count=1):
        """The same where an event loop runs."""
        return await asyncio.to_thread(self.held, count)


@contextmanager
def viewing(path):
    """A viewer that takes its gates back in the end."""
    viewer = Viewer(path)
    try:
        yield viewer
    finally:
        viewer.close()
