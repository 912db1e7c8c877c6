"""The endpoint event of legacy HTTP+SSE (H-08; specification 2024-11-05).

The first event of the stream, `endpoint`, has the URL that the client must post to. An absolute URL at the upstream's
own origin would bypass the proxy, and the client would refuse it. A path would lack the prefix of a route. Only the URL
is changed; every other byte of the event stays.
"""

import re
from collections.abc import Callable

from mcpspy.gate.gate import PASS, Facts, Pass, Send
from mcpspy.wire.sse import parse_event

_DATA = re.compile(rb"(?m)(?<![^\r\n])(data: ?)([^\r\n]*)")


class EndpointGate:
    """Decides on the first event with data of one stream, and lets all others pass.

    `mapped` is `heads.mapped_reference` for the request.
    """

    by = "endpoint"
    follows = waits = False

    def __init__(self, mapped: Callable[[str], str | None]) -> None:
        self._mapped = mapped
        self._done = False

    def wants(self, facts: Facts) -> bool:  # noqa: ARG002 (as every gate has it)
        """Return False: this gate never needs the request of a response."""
        return False

    def decide(self, frame: bytes, facts: Facts, t: int) -> Pass | Send:  # noqa: ARG002 (as every gate has it)
        """Return the event with the URL that the client needs; Pass if the URL needs no change."""
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
