"""`mcpspy mock`: serve a capture as a mock server, on stdin and stdout or over HTTP."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from mcpspy.cli.gates import compiled, recorded_answers
from mcpspy.cli.output import say
from mcpspy.cli.recording_mock import refuse, serve_recording
from mcpspy.replay.differences import excerpt
from mcpspy.replay.match import STRATEGIES
from mcpspy.replay.mock import Mock, Wrong, serve
from mcpspy.replay.script import load


def run(options: argparse.Namespace) -> int:
    """Serve until the client disconnects, or over HTTP until a signal.

    Returns 1 if a request was not recorded, if an answer of the client is missing or differs from the capture, or if
    the real server did not answer a request (`--record-missing`).
    """
    refuse(options)
    gates = compiled(options.gate, "http" if options.listen else "stdio")
    if gates and not options.listen:
        from mcpspy.cli.gated_mock import relay_stdio

        return relay_stdio(_command(options), gates, recorded_answers(gates))
    mocks = [serve_recording(options)] if options.record_missing else _serve(options, gates)
    for mock in mocks:
        for miss in mock.misses:
            say(str(miss))
        for wrong in mock.wrong:
            say(_told(wrong))
    return 1 if any(mock.misses or mock.wrong or mock.failed for mock in mocks) else 0


def _serve(options: argparse.Namespace, gates: list[dict[str, Any]] | None) -> Sequence[Mock]:
    """Serve only what the captures contain."""
    scripts = [load(path, say) for path in options.captures]
    strategies = [it for it in STRATEGIES if it is STRATEGIES[0] or it.name in options.strategies]

    def make() -> Mock:
        return Mock(scripts, recorded_pace=options.pace == "recorded", strategies=strategies)

    return _serve_web(make, options.listen, gates) if options.listen else [_serve_stdio(make())]


def _serve_stdio(mock: Mock) -> Mock:
    sink = os.dup(1)
    os.dup2(2, 1)  # stdout carries only messages; all other output goes to stderr
    serve(mock, 0, sink, say)
    return mock


def _command(options: argparse.Namespace) -> list[str]:
    """Return the command line of the same mock on stdio, without gates."""
    strategies = [f"--{name}" for name in options.strategies]
    return [
        sys.executable,
        "-m",
        "mcpspy",
        "mock",
        "--pace",
        options.pace,
        *strategies,
        *map(_as_path, options.captures),
    ]


def _as_path(path: str) -> str:
    """Return a path that cannot be mistaken for an option."""
    return os.path.join(".", path) if path.startswith("-") else path


def _serve_web(make: Callable[[], Mock], where: str, gates: list[dict[str, Any]] | None) -> Sequence[Mock]:
    from mcpspy.replay.http_mock import serve_web  # aiohttp takes 0.2 s to import

    if not gates:
        return serve_web(make, where, say)
    from mcpspy.cli.gated_mock import relay_in_front

    return serve_web(make, "127.0.0.1:0", say, relay_in_front(where, gates, recorded_answers(gates)))


def _told(wrong: Wrong) -> str:
    answer = f"the client's answer to {wrong.question.body.value['method']} (#{wrong.question.n})"
    if wrong.difference is None:
        return f"{answer} is missing"
    recorded, observed = excerpt(wrong.difference.recorded), excerpt(wrong.difference.observed)
    where = f" at {wrong.difference.pointer}" if wrong.difference.pointer else ""
    return f"{answer} differs from the capture: expected {recorded}{where}, got {observed}"
