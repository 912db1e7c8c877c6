"""The state that the parts of an exchange share."""

import time

from mcpspy.recording.recording import Clock, Recording
from mcpspy.relay.http.heads import Address
from mcpspy.relay.http.route import HttpRoute
from mcpspy.relay.http.upstream import Upstream


def test_the_time_of_a_route_counts_from_the_start_of_its_capture():
    address = Address("http://h/")
    started = time.monotonic_ns() - 5_000_000_000
    route = HttpRoute(address, Upstream(address), Recording(print, Clock(started)))
    assert 5_000_000_000 <= route.now() <= time.monotonic_ns() - started
