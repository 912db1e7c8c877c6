"""Shared code of the Python clients: their command line, the steps of a scenario, and the document that they print.

A client passes a peer object with one method for each verb of `scenarios.json` that its SDK supports. Each method
returns a JSON value. The result is "unsupported" if the peer lacks the verb, the server does not offer the capability,
or the revision lacks the feature.
"""

import argparse
import asyncio
import hashlib
import json
import os
import sys

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
ELICITATION = {"2025-06-18", "2025-11-25", "2026-07-28"}
UNSUPPORTED = "unsupported"
PATIENCE = 10  # seconds until an expected notification counts as missing

with open(os.path.join(os.path.dirname(__file__), "scenarios.json"), encoding="utf-8") as file:
    SCENARIOS = json.load(file)
ANSWERS = SCENARIOS["answers"]


def parse_arguments(revisions):
    usage = "%(prog)s [--scenario NAME] [--revision R] (--http URL | --sse URL | --ws URL | -- COMMAND ARG...)"
    parser = argparse.ArgumentParser(usage=usage)
    parser.add_argument("--scenario", default="basic", choices=["basic", "features", "full", "everything"])
    parser.add_argument("--revision", choices=revisions, help="ask for this revision instead of the client's newest")
    parser.add_argument("--http", metavar="URL", help="a server over Streamable HTTP")
    parser.add_argument("--sse", metavar="URL", help="a server over HTTP+SSE")
    parser.add_argument("--ws", metavar="URL", help="a server over WebSocket (python1), the URL as the others'")
    parser.add_argument("command", nargs="*")
    return parser.parse_args()


def steps_of(scenario):
    parts = {"features": ["basic", "features"], "full": ["basic", "large", "features"]}.get(scenario, [scenario])
    return [step for part in parts for step in SCENARIOS[part]]


class Inbox:
    """The notifications of the server, and an event for the arrival of the next one."""

    def __init__(self):
        self.messages = []
        self.arrived = asyncio.Event()

    def append(self, message):
        self.messages.append({key: message[key] for key in ("method", "params") if key in message})
        self.arrived.set()

    async def take(self, method):
        """Return the first notification of a method, waiting for it if necessary, or None if it does not arrive."""
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    for index, message in enumerate(self.messages):
                        if message["method"] == method:
                            return self.messages.pop(index)
                    self.arrived.clear()
                    await self.arrived.wait()
        except TimeoutError:
            return None


class Progress:
    """The progress reports of a call. The SDK may deliver the last report after the result."""

    def __init__(self, expected):
        self.expected = expected
        self.reports = []
        self.arrived = asyncio.Event()

    async def __call__(self, done, total, message):
        self.reports.append([done, total, message])
        if len(self.reports) == self.expected:
            self.arrived.set()

    async def all(self):
        """Return all reports, or those that arrived in time."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self.arrived.wait()
        except TimeoutError:
            pass
        return self.reports


def offers(capabilities, path):
    """Return whether the server offers a capability, which is a path into its capabilities (`resources.subscribe`)."""
    value = capabilities
    for member in path.split("."):
        value = value.get(member) if isinstance(value, dict) else None
    return value is not None and value is not False


def shortened(value):
    """Replace long strings by their length and digest, so that a document stays readable."""
    if isinstance(value, dict):
        return {key: shortened(member) for key, member in value.items()}
    if isinstance(value, list):
        return [shortened(member) for member in value]
    if isinstance(value, str) and len(value) > 500:
        return f"{len(value)} characters, sha256 {hashlib.sha256(value.encode()).hexdigest()}"
    return value


async def run_step(step, peer, revision, capabilities, inbox):
    verb = getattr(peer, step["verb"], None)
    if verb is None or revision not in step.get("revisions", REVISIONS):
        return {"result": UNSUPPORTED}
    if "needs" in step and not offers(capabilities, step["needs"]):
        return {"result": UNSUPPORTED}
    outcome = {}
    try:
        outcome["result"] = await verb(**step.get("params", {}))
        if "expect" in step and outcome["result"] != UNSUPPORTED:
            outcome["notification"] = await inbox.take(step["expect"])
    except Exception as error:  # any exception of the SDK is this step's outcome
        outcome["error"] = peer.describe(error)
    return outcome


async def run_scenario(scenario, peer, connected, inbox):
    """Run every step and return the document. `connected` is the outcome of the handshake or the discovery."""
    steps = [{"name": "connect", "result": connected}]
    for step in steps_of(scenario):
        outcome = await run_step(step, peer, connected["revision"], connected["capabilities"], inbox)
        steps.append({"name": step["name"], **outcome})
    return shortened({"scenario": scenario, "steps": steps})


def print_document(document):
    json.dump(document, sys.stdout, indent=1, ensure_ascii=True, sort_keys=True)
    sys.stdout.write("\n")
