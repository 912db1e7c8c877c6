"""The command line: `python -m benchmarks.validate`, from the root of the repository."""

import argparse
import sys
from statistics import median
from time import perf_counter

import jsonschema
import orjson
import referencing

from benchmarks.relay.figures import Row, Target
from benchmarks.relay.report import machine, summary
from benchmarks.validate.frames import big_list, of_sessions, tool_result
from mcpspy.spec import schema
from mcpspy.spec.definitions import definitions
from mcpspy.spec.members import bad_formats, elsewhere, outdated
from mcpspy.spec.revisions import Revision
from mcpspy.spec.schema import verdict
from mcpspy.spec.shapes import R2025_11_25

TOOLS = 2000


def main() -> int:
    options = _options()
    rounds = 1 if options.quick else 5
    rows = [
        *_faster(rounds, 1 if options.quick else 20),
        *_decoded(rounds, 2_000 if options.quick else 100_000),
        *_compiled(rounds),
        *_listed(rounds),
    ]
    facts = machine()
    summary(rows, options, facts, f"{rounds} rounds")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validate", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a second, to see that all of it works; judges nothing")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", metavar="FILE", help="write every figure there")
    return parser.parse_args()


def _faster(rounds: int, repeats: int) -> list[Row]:
    """Compare jsonschema_rs with jsonschema on the frames of the captures; each is validated once before."""
    frames = of_sessions()
    explainers = {
        (revision, name): jsonschema.Draft202012Validator(
            schema.self_contained(revision, name),
            registry=referencing.Registry(),
        )
        for revision, name, _ in frames
    }
    for revision, name, value in frames:
        verdict(revision, name, value)
        explainers[revision, name].is_valid(value)
    quotients, ours = [], []
    for _ in range(rounds):
        fast = _taken(lambda: [verdict(*frame) for _ in range(repeats) for frame in frames]) / repeats
        slow = _taken(lambda: [explainers[revision, name].is_valid(value) for revision, name, value in frames])
        quotients.append(slow / fast)
        ours.append(fast / len(frames) * 1e6)
    return [
        Row("speed of jsonschema_rs / jsonschema", quotients, Target(50, at_least=True)),
        Row("one frame of a real session", ours, Target(20, unit="µs")),
    ]


def _decoded(rounds: int, number: int) -> list[Row]:
    raw = orjson.dumps(tool_result(1024))

    def decode_and_judge() -> None:
        for _ in range(number):
            verdict(R2025_11_25, "CallToolResult", orjson.loads(raw)["result"])

    values = [number / _taken(decode_and_judge) / 1e3 for _ in range(rounds)]
    return [Row(f"decoded and judged, {len(raw)} B", values, Target(200, unit="thousand/s", at_least=True))]


def _compiled(rounds: int) -> list[Row]:
    values, slowest = [], []
    for _ in range(rounds):
        taken = []
        for revision in Revision:
            for name in definitions(revision):
                schema._validator.cache_clear()  # noqa: SLF001
                taken.append(_taken(lambda revision=revision, name=name: schema._validator(revision, name)))  # noqa: SLF001
        values.append(median(taken) * 1e3)
        slowest.append(max(taken) * 1e3)
    return [
        Row("compiling a definition, median", values, Target(0.8, unit="ms")),
        Row("compiling a definition, slowest", [], text=f"{median(slowest):.1f} ms"),
    ]


def _listed(rounds: int) -> list[Row]:
    raw = orjson.dumps(big_list(TOOLS))

    def judge() -> None:
        result = orjson.loads(raw)
        verdict(R2025_11_25, "ListToolsResult", result)
        for look in (bad_formats, elsewhere, outdated):
            look(R2025_11_25, "ListToolsResult", result)

    values = [_taken(judge) for _ in range(rounds)]
    return [Row(f"tools/list, {TOOLS} tools, {len(raw) / 1e6:.1f} MB: all of it", values, Target(1, unit="s"))]


def _taken(what) -> float:
    start = perf_counter()
    what()
    return perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
