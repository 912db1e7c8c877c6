"""The resource that telemetry is about."""

from dataclasses import replace
from functools import partial

from mcpspy.secrets.body import redacted_content
from mcpspy.secrets.redactor import Redactor
from mcpspy.telemetry.attributes import server_attributes
from mcpspy.telemetry.captured import CapturedTelemetry
from mcpspy.telemetry.resource import resource_attributes, start_of
from tests.telemetry.folded import STDIO


def test_the_resource_names_server_and_capture_and_the_client_once_it_is_known():
    known = resource_attributes(STDIO, "", str)
    assert (known["mcpspy.server"], known["service.instance.id"]) == ("weather", STDIO.id)
    assert "mcpspy.client" not in known
    assert resource_attributes(STDIO, "cursor 2", str)["mcpspy.client"] == "cursor 2"


def test_no_secret_of_the_header_leaves_in_the_telemetry():
    """A-13, also one that somebody wrote into a capture by hand."""
    token = "gh" + "p_" + "a1B2" * 9
    header = replace(STDIO, id=token, name=f"weather {token}", url=f"https://{token}.example/mcp")
    folded = CapturedTelemetry(header, partial(redacted_content, mark=Redactor().mark))
    left = {**folded.resource(), **server_attributes(header, partial(redacted_content, mark=Redactor().mark))}
    assert token.lower() not in str(left).lower()
    assert str(left["mcpspy.server"]).startswith("weather ")


def test_a_capture_began_at_its_start_to_the_microsecond():
    assert start_of(replace(STDIO, started="2026-11-20T19:15:00.123456Z")) == 1_795_202_100_123_456_000
