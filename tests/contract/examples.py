"""Short sessions that are checked against expectations, such as the examples of the rules."""

import tomllib

from mcpspy.capture.records import Header
from mcpspy.contract.expectations import expectations
from mcpspy.contract.watch import ExpectationWatch
from mcpspy.conversation.conversation import decided_events
from tests.rules.examples import records

EXPECTED = {
    "expect/called": '[[tool]]\nname = "echo"\ntimes = 1',
    "expect/never": '[[tool]]\nname = "other"\nnever = true',
    "expect/arguments": '[[tool]]\nname = "echo"\nschema = { properties = { text = { type = "string" } } }',
    "expect/call-duration": '[[tool]]\nname = "*"\nmax_duration = "2s"',
    "expect/order": 'order = ["echo", "other"]',
    "expect/duration": '[session]\nmax_duration = "5s"',
    "expect/tokens": "[session]\nmax_tokens = 20",
    "expect/no-error": "[session]\nno_errors = true",
    "expect/stderr": '[session]\nstderr_without = ["Traceback"]',
    "expect/start": '[session]\nstarted_within = "2s"',
}
"""The expectations for the examples of each rule, as TOML."""


def header(transport="stdio", name="weather"):
    return Header("x", "2026-01-01T00:00:00.000000Z", "mcpspy", transport, name)


def watched(text, toml, *, transport="stdio", name="weather", live=False):
    """Check a transcript against expectations; return the findings and the outcome of each expectation."""
    held = expectations(tomllib.loads(toml), "expect.toml")
    watch = ExpectationWatch(held.of_server(name), header(transport, name))
    found = [it.finding for event in decided_events(records(text), live=live) for it in watch.add(event)]
    return [*found, *(it.finding for it in watch.end(live=live))], watch.outcomes


def failures(text, toml, **options):
    """Return the findings of `watched` as frame, rule and sentence."""
    return [(it.frame, it.rule, it.message) for it in watched(text, toml, **options)[0]]
