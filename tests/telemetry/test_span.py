"""Trace contexts and ids."""

import pytest

from mcpspy.telemetry.span import TraceContext, bounded, nanoseconds, parse_traceparent, span_id, trace_id

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize("version", ["00", "01", "fe"])
def test_a_valid_traceparent_is_a_context(version):
    found = parse_traceparent(f"{version}-{TRACE}-{SPAN}-01")
    assert found == TraceContext(bytes.fromhex(TRACE), bytes.fromhex(SPAN))


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        "",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-",
        f"00-{TRACE}-{SPAN}-01-x",
        f"01-{TRACE}-{SPAN}-01x",
        f"01-{TRACE}-{SPAN}-01-\n",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_any_other_value_is_none(value):
    assert parse_traceparent(value) is None


def test_a_later_version_may_have_more_fields():
    assert parse_traceparent(f"01-{TRACE}-{SPAN}-01-what-comes") == parse_traceparent(f"00-{TRACE}-{SPAN}-01")


def test_a_secret_is_not_cut_in_two():
    text = "x" * 5 + "secret" + "y" * 100
    assert bounded(text, lambda it: it.replace("secret", "…"), 8) == "xxxxx…yy"


@pytest.mark.parametrize(("t", "found"), [(5, 12), (-8, 0), (10**30, (1 << 63) - 1)])
def test_times_fit_into_their_field(t, found):
    assert nanoseconds(7, t) == found


def test_ids_are_those_of_the_capture_and_the_line():
    """T-03."""
    assert span_id("a", 5, 0) == span_id("a", 5, 0)
    places = [("a", 5, 0), ("a", 5, 1), ("a", 6, 0), ("b", 5, 0)]
    assert len({span_id(*place) for place in places}) == len({trace_id(*place) for place in places}) == len(places)
    assert (len(span_id("a", 1, 0)), len(trace_id("a", 1, 0))) == (8, 16)
