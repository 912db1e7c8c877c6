"""The resource that telemetry is about."""

from dataclasses import replace

from mcpspy.telemetry.resource import resource_attributes, start_of
from tests.telemetry.folded import STDIO


def test_the_resource_names_server_and_capture_and_the_client_once_it_is_known():
    known = resource_attributes(STDIO, "")
    assert (known["mcpspy.server"], known["service.instance.id"]) == ("weather", STDIO.id)
    assert "mcpspy.client" not in known
    assert resource_attributes(STDIO, "cursor 2")["mcpspy.client"] == "cursor 2"


def test_a_capture_began_at_its_start_to_the_microsecond():
    assert start_of(replace(STDIO, started="2026-11-20T19:15:00.123456Z")) == 1_795_202_100_123_456_000
