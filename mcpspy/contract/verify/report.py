"""A proof as text and as JSON."""

import json
from collections.abc import Iterator
from typing import Any

from mcpspy.contract.verify.figures import Timing, figure_lines, middle, quantile
from mcpspy.contract.verify.proof import Proof
from mcpspy.text import plural, printable

_WIDTH = 20  # columns of a name


def text(proof: Proof, server: str, wrapper: str) -> str:
    """Return what was compared, the figures and the verdict. `server` and `wrapper` name the two."""
    lines = [f"{server}: bare and through {wrapper}, {plural(len(proof.plan.messages), 'message')}", ""]
    for check in proof.checks:
        lines += _check_lines(check.name, check.equal, check.detail, check.differences)
    lines += [f"  {'left out':<{_WIDTH}}  {printable(it, 300)}" for it in proof.plan.left_out]
    if proof.broke_off:
        lines.append(f"  {'broke off':<{_WIDTH}}  {printable(proof.broke_off, 300)}")
    figures = [f"  {name:<{_WIDTH}}  {found}" for name, found in figure_lines(proof.figures)]
    lines += [*([""] if figures else []), *figures, "", verdict(proof, wrapper)]
    return "\n".join(lines) + "\n"


def verdict(proof: Proof, wrapper: str) -> str:
    """Return the verdict as a sentence."""
    if proof.transparent:
        return f"transparent: neither the client nor the server can see {wrapper}"
    names = [check.name for check in proof.checks if not check.equal]
    return f"not transparent: {wrapper} differs in {', '.join(names)}"


def _check_lines(name: str, equal: bool, detail: str, differences: tuple[str, ...]) -> Iterator[str]:
    if equal:
        yield f"  {name:<{_WIDTH}}  equal    {detail}"
        return
    for place, difference in enumerate(differences):
        title, outcome = (name, "differs") if not place else ("", "")
        yield f"  {title:<{_WIDTH}}  {outcome:<7}  {printable(difference, 600)}"


def as_json(proof: Proof, server: str, wrapper: str) -> str:
    """Return one object (docs/json.md)."""
    figures = proof.figures
    found = {
        "verdict": "transparent" if proof.transparent else "different",
        "server": server,
        "through": wrapper,
        "messages": [message.label for message in proof.plan.messages],
        "left_out": [*proof.plan.left_out],
        "broke_off": proof.broke_off,
        "checks": [
            {"name": it.name, "equal": it.equal, "detail": it.detail, "differences": [*it.differences]}
            for it in proof.checks
        ],
        "figures": {
            "start": {side: _seconds(middle(values)) for side, values in _sides(figures.starts)},
            "request": figures.request,
            "latency": {side: _quantile_members(values) for side, values in _sides(figures.latencies)},
        },
    }
    return json.dumps(found, separators=(",", ":")) + "\n"


def _sides(timing: Timing) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "bare", timing.bare
    yield "through", timing.through


def _quantile_members(values: tuple[int, ...]) -> dict[str, Any]:
    return {
        "count": len(values),
        "p50": _seconds(quantile(values, 0.5)),
        "p99": _seconds(quantile(values, 0.99)),
    }


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9
