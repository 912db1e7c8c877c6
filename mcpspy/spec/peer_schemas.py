"""The schemas that peers send, and the validation of arguments and results: hostile until proved otherwise.

The theory. A schema of a few hundred bytes can request a file of ours, a web page, or a year of computing. So nothing
is ever fetched, patterns run on an engine with linear time, and a schema that is too large or too deep is not
evaluated. A schema that needs more than a certain amount of work, or refers to itself, is evaluated by a separate
process. The kernel kills that process after a second of computing, so a busy machine gives the same findings as an idle
one. All these processes together have a budget. `jsonschema` never sees these schemas, because its patterns cannot be
bounded.

A judgement is a value, whatever the schema and the instance are.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from math import ceil, inf
from typing import Any

import jsonschema_rs
import orjson

from mcpspy.json_values import member, pointer, steps_of
from mcpspy.spec.definitions import DIALECT
from mcpspy.spec.schema import DEPTH, plain, refuse

SIZE = 256 * 1024
"""The size limit of a schema, in bytes of JSON."""
LEVELS = 64
"""The limit for the nesting of a schema."""
WEIGHT = 1000
"""The number of references, combinations and patterns, fully expanded, that are evaluated in this process."""
WORK = 10_000_000
"""The same, multiplied by the number of values in the instance: about a second."""
CPU_SECONDS = 1
"""The CPU time of the process for heavier schemas, after its start. The kernel counts whole seconds."""
SECONDS = 5.0
"""The time after which that process is abandoned: on a busy machine, or without a CPU limit (Windows)."""
BUDGET = 5.0
"""The seconds that all those processes together may take, for one capture."""
TRIES = 3
"""How often the same question is put to that process if the machine prevents a judgement. A judgement is final."""

_PR_SET_PDEATHSIG, _SIGKILL = 1, 9
_COMBINING = ("allOf", "anyOf", "oneOf", "prefixItems")
_APPLYING = ("$ref", "not", "if", "contains", "dependentSchemas", "enum")
_UNTOLD = ("$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems")
"""Keywords whose cost only the library could determine. It may double at every level."""
_RENAMING = ("$id", "id")
"""Keywords that, below the root, change the meaning of a reference by JSON Pointer."""
_VALUES = ("const", "default", "examples")
"""Keywords whose value is not a schema."""
_ELSEWHERE = re.compile(r"Resource '([A-Za-z][A-Za-z0-9+.-]*:[^']*)' is not present")  # the library's text
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=1 << 20)  # compiled size, in bytes
_PATTERN = 20  # the weight of a pattern: compiling one takes up to a millisecond
DRAFTS = {
    DIALECT: jsonschema_rs.Draft202012Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema_rs.Draft201909Validator,
    "http://json-schema.org/draft-07/schema": jsonschema_rs.Draft7Validator,
    "http://json-schema.org/draft-06/schema": jsonschema_rs.Draft6Validator,
    "http://json-schema.org/draft-04/schema": jsonschema_rs.Draft4Validator,
}
"""The validators, by dialect."""
DIALECTS = tuple(DRAFTS)
"""The known dialects, the latest first."""


class Validity(Enum):
    """The result of a validation."""

    VALID = "valid"
    INVALID = "invalid"
    """The instance does not satisfy the schema."""
    NO_SCHEMA = "no schema"
    """The schema is invalid in its own dialect."""
    UNKNOWN_DIALECT = "unknown dialect"
    UNRESOLVED = "unresolved"
    """It refers to something that is not in it."""
    EXTERNAL = "external"
    """It refers to an absolute URI. JSON Schema permits this, but nothing is fetched."""
    UNSUPPORTED = "unsupported"
    """A pattern that the linear engine cannot run (look-around, back-references) or that is too large."""
    TOO_LARGE = "too large"
    TOO_COSTLY = "too costly"
    """The evaluation took more than CPU_SECONDS, or crashed the process."""
    NOT_JUDGED = "not judged"
    """Unknown: BUDGET or SECONDS are used up, or the validator failed, which is not a fault of the schema."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of validating an instance, or why there is none."""

    outcome: Validity
    pointer: str = ""
    """JSON Pointer into the instance if that is invalid, or into the schema if the schema is invalid."""
    message: str = ""
    """One sentence, clipped. Empty if the outcome is enough."""


@dataclass(slots=True)
class Budget:
    """The seconds that are left for the processes of one capture."""

    left: float = BUDGET


class Foreign:
    """A schema of a peer, measured once and compiled when it is first needed. Heavy schemas use up `budget`."""

    def __init__(self, schema: Any, budget: Budget | None = None) -> None:
        self._raw = _raw(schema)
        self._budget = budget or Budget()
        self._weight = inf if self._raw is None else weight(self._raw)
        self._costly = False

    def check(self) -> Judgement:
        """Return VALID if the schema can be used, or why it cannot."""
        if self._raw is None:
            return _TOO_LARGE
        if self._weight <= WEIGHT:
            return _compiled(self._raw)[1]
        found = self._apart(None)
        return Judgement(Validity.VALID) if found.outcome is Validity.INVALID else found  # null may be invalid

    def judge(self, instance: Any) -> Judgement:
        """Validate an instance. A schema that was too costly once is not tried again."""
        if self._raw is None:
            return _TOO_LARGE
        if self._weight and (self._weight > WEIGHT or self._weight * _values(instance) > WORK):
            return self._apart(instance)
        return _judged(self._raw, instance)

    def _apart(self, instance: Any) -> Judgement:
        assert self._raw is not None
        if self._costly:
            return _TOO_COSTLY
        if self._budget.left <= 0:
            return _NOT_JUDGED
        begun = time.monotonic()
        found = judge_apart(self._raw, instance)
        self._budget.left -= time.monotonic() - begun
        self._costly = found.outcome is Validity.TOO_COSTLY
        return found


_TOO_LARGE = Judgement(Validity.TOO_LARGE, "", f"more than {SIZE // 1024} KiB, or more than {LEVELS} levels")
_TOO_COSTLY = Judgement(Validity.TOO_COSTLY, "", f"not judged within {CPU_SECONDS} s")
_NOT_JUDGED = Judgement(Validity.NOT_JUDGED, "", f"the schemas before it took {BUDGET:g} s")
_LATE = Judgement(Validity.NOT_JUDGED, "", f"this machine was too busy to evaluate it within {SECONDS:g} s")
_FAILED = Judgement(Validity.NOT_JUDGED, "", "the process that evaluates schemas failed, which is a bug of mcpspy")


def _raw(schema: Any) -> bytes | None:
    """Return the schema as JSON, or None if it is too large or too deep."""
    try:
        raw = orjson.dumps(schema)
    except orjson.JSONEncodeError:  # a lone surrogate, a long integer, a depth of hundreds
        raw = None
    brackets = LEVELS + 1 if raw is None else raw.count(b"{") + raw.count(b"[")
    if brackets > LEVELS and _depth(schema) > LEVELS:
        return None
    if raw is None:
        raw = json.dumps(plain(schema)).encode()
    return raw if len(raw) <= SIZE else None


def _depth(value: Any) -> int:
    """Return how deeply a value is nested, counted up to DEPTH and slightly beyond."""
    level, levels = [value], 0
    while level and levels <= DEPTH + 1:
        levels += 1
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ())
        ]
    return levels - 1


def _values(instance: Any) -> int:
    """Return the number of values in an instance."""
    count, stack = 0, [instance]
    while stack:
        value = stack.pop()
        count += 1
        if isinstance(value, dict | list):
            stack += value.values() if isinstance(value, dict) else value
    return count


@lru_cache(maxsize=256)
def weight(raw: bytes) -> float:
    """Return the work that a schema needs for one value, all references expanded. Infinite if it refers to itself."""
    try:
        return _Weighing(json.loads(raw)).weight()
    except RecursionError:
        return inf


class _Weighing:
    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._known: dict[int, float] = {}

    def weight(self) -> float:
        return self._of(self._schema)

    def _of(self, node: Any) -> float:
        if not isinstance(node, dict | list):
            return 0
        if id(node) not in self._known:
            self._known[id(node)] = inf  # a node that is found again below itself is recursive
            self._known[id(node)] = self._sum(node)
        return self._known[id(node)]

    def _sum(self, node: Any) -> float:
        if isinstance(node, list):
            return sum(map(self._of, node))
        own: float = 0
        for keyword, value in node.items():
            if keyword in _VALUES:
                continue
            renames = keyword in _RENAMING and isinstance(value, str) and node is not self._schema
            if keyword in _UNTOLD or renames:
                return inf
            own += keyword in _APPLYING
            own += _PATTERN * (keyword == "pattern")
            if isinstance(value, list) and keyword in (*_COMBINING, "enum"):
                own += len(value)
            elif isinstance(value, dict) and keyword == "patternProperties":
                own += _PATTERN * len(value)
            own += self._target(value) if keyword == "$ref" and isinstance(value, str) else self._of(value)
        return own

    def _target(self, reference: str) -> float:
        """Return the weight of the target of a reference. Infinite if only the library could find it."""
        if not reference.startswith("#/") and reference != "#":
            return inf
        node = member(self._schema, *steps_of(reference))
        return inf if node is None else self._of(node)


@lru_cache(maxsize=256)
def _compiled(raw: bytes) -> tuple[Any, Judgement]:
    """Return the validator of a schema, or None, and whether the schema is valid."""
    schema = json.loads(raw)
    if isinstance(schema, str):  # the library would parse it as JSON
        return None, Judgement(Validity.NO_SCHEMA, "", f"{_clipped(json.dumps(schema))} is not an object or a boolean")
    dialect = schema.get("$schema", DIALECT) if isinstance(schema, dict) else DIALECT
    draft = DRAFTS.get(dialect.removesuffix("#")) if isinstance(dialect, str) else DRAFTS[DIALECT]
    if draft is None:
        return None, Judgement(Validity.UNKNOWN_DIALECT, "/$schema", json.dumps(dialect[:200]))
    try:
        validator = draft(schema, validate_formats=False, retriever=refuse, pattern_options=_PATTERNS)
    except jsonschema_rs.ValidationError as error:
        return None, _refusal(error)
    except ValueError as error:  # an error of the library itself
        return None, Judgement(Validity.NOT_JUDGED, "", _clipped(f"the validator failed: {error}"))
    return validator, Judgement(Validity.VALID)


@lru_cache(maxsize=256)
def linear_pattern(text: str) -> Callable[[str], bool]:
    """Return a function that looks for a regular expression in a text, in linear time.

    Raises ValueError if the engine refuses it: look-around, back-references, too large.
    """
    try:
        validator = jsonschema_rs.Draft202012Validator({"pattern": text}, pattern_options=_PATTERNS)
    except jsonschema_rs.ValidationError:
        raise ValueError("not a regular expression of linear time") from None

    def is_found(value: str) -> bool:
        return validator.is_valid(value.encode(errors="replace").decode())  # the library refuses lone surrogates

    return is_found


def _refusal(error: jsonschema_rs.ValidationError) -> Judgement:
    """Return why a schema could not be compiled."""
    kind = error.kind.name
    elsewhere = _ELSEWHERE.match(error.message) if kind == "$ref" else None
    if elsewhere:
        what = _clipped(f"it refers to {elsewhere[1]}, which clients must not fetch")
        return Judgement(Validity.EXTERNAL, pointer(*error.instance_path), what)
    outcome = {"$ref": Validity.UNRESOLVED, "format": Validity.UNSUPPORTED}.get(kind, Validity.NO_SCHEMA)
    return Judgement(outcome, pointer(*error.instance_path), _clipped(error.message))


def _judged(raw: bytes, instance: Any) -> Judgement:
    validator, compiled = _compiled(raw)
    if validator is None:
        return compiled
    try:
        if validator.is_valid(instance):
            return compiled
    except ValueError:
        instance = plain(instance)
    try:
        validator.validate(instance)
    except jsonschema_rs.ValidationError as error:
        return Judgement(Validity.INVALID, pointer(*error.instance_path), _clipped(error.message))
    except ValueError as error:  # too deep to quote or to validate
        return _unquoted(validator, instance, error)
    return compiled


def _unquoted(validator: Any, instance: Any, error: ValueError) -> Judgement:
    """Return the verdict alone, if the library cannot describe the error."""
    try:
        return Judgement(Validity.VALID if validator.is_valid(instance) else Validity.INVALID)
    except ValueError:
        return Judgement(Validity.NOT_JUDGED, "", _clipped(f"the validator failed: {error}"))


def _clipped(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= 200 else line[:199] + "…"


WORKER = """\
import sys
sys.path[:] = sys.argv[1:]
from mcpspy.spec.peer_schemas import work
work()
"""
"""The program of the separate process."""


def judge_apart(raw: bytes, instance: Any) -> Judgement:
    """Evaluate in a separate process, which is killed when its time is up."""
    if _depth(instance) > DEPTH:
        return _TOO_COSTLY
    known = _known(json.dumps({"schema": raw.decode(), "instance": plain(instance)}).encode())
    if known.judgement is None or (known.judgement.outcome is Validity.NOT_JUDGED and known.tries < TRIES):
        known.tries += 1
        known.judgement = _run(known.question)
    return known.judgement


@dataclass(slots=True)
class _Known:
    """A question for the process, and the last judgement about it."""

    question: bytes
    judgement: Judgement | None = None
    tries: int = 0


@lru_cache(maxsize=64)
def _known(question: bytes) -> _Known:
    """Return what is known about a question. Many repeat: a call without arguments, a listing per session."""
    return _Known(question)


def _run(question: bytes) -> Judgement:
    """Run the process."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", WORKER, *sys.path],
            input=question,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return _TOO_COSTLY if sys.platform == "win32" else _LATE
    except subprocess.CalledProcessError as error:
        return _TOO_COSTLY if error.returncode < 0 else _FAILED  # ended by the kernel, or by Python
    except OSError as error:  # no more processes, descriptors or memory
        return Judgement(Validity.NOT_JUDGED, "", f"the process that evaluates schemas did not start: {error.strerror}")
    outcome, where, message = json.loads(done.stdout)
    return Judgement(Validity(outcome), where, message)


def work() -> None:
    """The task of the process: read a question from stdin, write a judgement to stdout. It must end with its parent."""
    _bound()
    question = json.loads(sys.stdin.buffer.read())
    judgement = _judged(question["schema"].encode(), question["instance"])
    print(json.dumps([judgement.outcome.value, judgement.pointer, judgement.message]))


def _bound() -> None:
    """Let the kernel end this process with its parent, if it can, and after too much CPU time."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    if sys.platform != "win32":
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = ceil(used.ru_utime + used.ru_stime + CPU_SECONDS)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
