"""The endpoint event of legacy HTTP+SSE (H-08; specification 2024-11-05).

The first event of the stream, `endpoint`, names the URL that the client shall post to. An absolute URL at the
upstream's own origin would lead past us, and the client would refuse it; a path would miss the prefix of a route. The
URL alone changes; every other byte of the event stays.
"""

import re
from collections.abc import Callable

from mcpspy.gate.facts import Facts
from mcpspy.gate.verdicts import PASS, Pass, Send
from mcpspy.wire.sse import parse_event

_DATA = re.compile(rb"(?m)(?<![^\r\n])(data: ?)([^\r\n]*)")


class EndpointGate:
    """Decides on the first event of one stream that has data, and lets all others pass.

    `mapped` is `heads.mapped_reference` for the request.
    """

    by = "endpoint"
    follows = waits = False

    def __init__(self, mapped: Callable[[str], str | None]) -> None:
        self._mapped = mapped
        self._done = False

    def wants(self, facts: Facts) -> bool:  # noqa: ARG002 (as every gate has it)
        """It never asks for the request of a response."""
        return False

    def decide(self, frame: bytes, facts: Facts, t: int) -> Pass | Send:  # noqa: ARG002 (as every gate has it)
        """The event with the URL that the client needs; Pass where it has that."""
        if self._done:
            return PASS
        event = parse_event(frame)
        self._done = event.data is not None
        if event.name != "endpoint" or event.data is None:
            return PASS
        mapped = self._mapped(event.data.decode("utf-8", "surrogateescape"))
        if mapped is None:
            return PASS
        url = mapped.encode("utf-8", "surrogateescape")
        return Send((_DATA.sub(lambda line: line[1] + url, frame, count=1),), self.by)
