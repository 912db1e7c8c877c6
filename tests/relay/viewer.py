"""A viewer of a running session, like the terminal application: it sets gates and decides on held frames."""

import asyncio
from contextlib import contextmanager

from mcpspy.capture.live import LiveViewer
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Gates, Release
from tests.relay.harness import until

HOLD = {"hold": 60_000_000_000}


class Viewer(LiveViewer):
    """A viewer of the capture at a path."""

    def __init__(self, path):
        self.capture = str(path)
        super().__init__(self.capture, Capture(self.capture).header.id)

    def records(self, kind):
        return [record for record in Capture(self.capture).records(1 << 62) if isinstance(record, kind)]

    def gate(self, action, name="g", **when):
        """Set one gate, and return the gates that the relay records when they are in force."""
        gates = [{"name": name, "when": when, "action": action}]
        self.set_gates(gates)
        return gates

    def in_force(self):
        """Return the gates that the relay recorded last."""
        found = self.records(Gates)
        return list(found[-1].gates) if found else []

    def held(self, count=1):
        """Wait for `count` held frames, and return them."""

        def there():
            gone = {release.held for release in self.records(Release)}
            frames = [frame for frame in self.records(Frame) if frame.held is not None and frame.held not in gone]
            return frames if len(frames) >= count else None

        return until(there, f"{count} held frames")

    def gone(self):
        """Wait until nothing is held any more."""
        until(lambda: len(self.records(Release)) == len([it for it in self.records(Frame) if it.held is not None]))

    async def holds(self, count=1):
        """Do the same as `held` without blocking the event loop."""
        return await asyncio.to_thread(self.held, count)


@contextmanager
def viewing(path):
    """Create a viewer that removes its gates at the end."""
    viewer = Viewer(path)
    try:
        yield viewer
    finally:
        viewer.close()
