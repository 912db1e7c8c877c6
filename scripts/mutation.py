"""Mutants: single changes of the package's source that its tests should notice.

A mutant changes one node of the syntax tree, in one function. It is named by its file, its function, the node's source
and the new text, and not by a line, so that it can be found again after other parts of the source have changed.
"""

import ast
import dataclasses
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

UNITS = ("rules", "wire", "capture", "secrets", "conversation", "recording", "relay")
LEAST = 15
"""Mutants that each unit gets, however short it is."""
_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
"""Operator -> how it is written, and what takes its place."""
_OTHER_SYSTEMS = re.compile(r"TYPE_CHECKING|sys\.platform|sys\.version_info|os\.name")
Result = dict[str, Any]
"""The fields of a mutant's name, and what its tests have found out."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of one node. `kind` is the kind of the change; without `span`, the fields are the mutant's name."""

    file: str
    function: str
    kind: str
    source: str
    replacement: str
    occurrence: int
    """How many nodes of the function with the same source come before this one."""
    span: tuple[int, int] = dataclasses.field(default=(0, 0), compare=False)
    """Where the node begins and ends in the file, in bytes. Only known for a mutant that `candidates` has found."""

    @property
    def unit(self) -> str:
        return self.file.split("/")[1].removesuffix(".py")

    def name(self) -> Result:
        """Return the mutant's name, as a result has it."""
        fields = dataclasses.asdict(self)
        del fields["span"]
        return fields

    def apply(self, text: bytes) -> bytes:
        """Return the text of the file with this change."""
        return text[: self.span[0]] + self.replacement.encode() + text[self.span[1] :]

    def __str__(self) -> str:
        before, after = (re.sub(r"\s+", " ", part) for part in (self.source, self.replacement))
        return f"{self.file} {self.function}: {before[:70]} -> {after[:70]}"


def named(fields: Result) -> Mutant:
    """Return the mutant with this name; its place in the source is not known."""
    return Mutant(**{field: fields[field] for field in Mutant.__dataclass_fields__ if field != "span"})


def candidates(file: str, text: bytes) -> list[Mutant]:
    """Return all mutants of a module. `file` is its path below the repository's root."""
    return [] if file.endswith("_windows.py") else _Finder(file, text).mutants


def compiles(text: bytes) -> bool:
    """Return whether a text is a Python module, which the text of a mutant need not be."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


class _Finder:
    """The mutants of one module."""

    def __init__(self, file: str, text: bytes) -> None:
        self.file, self.text = file, text
        self.mutants: list[Mutant] = []
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._seen: Counter[tuple[str, str, str]] = Counter()
        self._definitions(ast.parse(text).body, [])

    def _definitions(self, body: Iterable[ast.stmt], names: list[str]) -> None:
        """Find the functions of a module or a class. What stands outside of functions is not changed."""
        for statement in body:
            if isinstance(statement, _Function):
                self._function(statement, [*names, statement.name])
            elif isinstance(statement, ast.ClassDef):
                self._definitions(statement.body, [*names, statement.name])
            elif isinstance(statement, ast.If):
                taken = _always(statement.test)
                self._definitions(statement.body if taken is not False else [], names)
                self._definitions(statement.orelse if taken is not True else [], names)

    def _function(self, node: _Function, names: list[str]) -> None:
        if node.name == "__repr__":
            return
        function = ".".join(names)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if isinstance(default, ast.Constant):
                self._constant(default, function, "default")
        for statement in node.body:
            self._visit(statement, function)

    def _visit(self, node: ast.AST, function: str) -> None:
        """Add the mutants of a node and of what it contains."""
        if isinstance(node, _Function):
            self._function(node, [*function.split("."), node.name])
            return
        if isinstance(node, ast.ClassDef):
            self._definitions(node.body, [*function.split("."), node.name])
            return
        if isinstance(node, ast.Assert | ast.JoinedStr) or (isinstance(node, ast.Expr) and _is_text(node.value)):
            return  # asserts are for mypy; Python 3.11 does not know where the parts of an f-string begin
        if isinstance(node, ast.If | ast.IfExp) and (taken := _always(node.test)) is not None:
            branch = node.body if taken else node.orelse
            for child in branch if isinstance(branch, list) else [branch]:
                self._visit(child, function)
            return
        if isinstance(node, ast.Compare) and _OTHER_SYSTEMS.search(ast.unparse(node)):
            return
        self._changes(node, function)
        for child in _changeable_children(node):
            self._visit(child, function)

    def _changes(self, node: ast.AST, function: str) -> None:
        """Add the mutants that change this node itself."""
        match node:
            case ast.Compare():
                for before, operator, after in zip(
                    [node.left, *node.comparators], node.ops, node.comparators, strict=False
                ):
                    written, other = _COMPARISONS[type(operator)]
                    self._operator(node, [(before, after)], written, other, function, "comparison")
            case ast.BoolOp():
                written, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                pairs = list(zip(node.values, node.values[1:], strict=False))
                self._operator(node, pairs, rf"\b{written}\b", other, function, "and/or")
            case ast.BinOp(op=ast.Add() | ast.Sub()) if not (_is_text(node.left) or _is_text(node.right)):
                written, other = ("+", "-") if isinstance(node.op, ast.Add) else ("-", "+")
                self._operator(node, [(node.left, node.right)], re.escape(written), other, function, "arithmetic")
            case ast.AugAssign(op=ast.Add() | ast.Sub()):
                written, other = ("+=", "-=") if isinstance(node.op, ast.Add) else ("-=", "+=")
                self._operator(node, [(node.target, node.value)], re.escape(written), other, function, "arithmetic")
            case ast.UnaryOp(op=ast.Not()):
                self._add(node, f"({self._source(node.operand)})", function, "not")
            case ast.Constant():
                self._constant(node, function)
            case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
                self._add(node, "return None", function, "return")
            case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
                self._add(node, f"if False: {self._source(node)}", function, "yield")
        if _can_be_dropped(node):
            self._add(node, "pass", function, "statement")
        for test in _conditions(node):
            if not isinstance(test, ast.Constant):
                self._add(test, "True", function, "condition")
                self._add(test, "False", function, "condition")

    def _constant(self, node: ast.Constant, function: str, kind: str = "") -> None:
        match node.value:
            case bool() as value:
                self._add(node, str(not value), function, kind or "boolean")
            case int() as value:
                self._add(node, str(value + 1), function, kind or "integer")
            case str() as value:
                self._add(node, repr(f"{value}~"), function, kind or "string")
            case bytes() as value:
                self._add(node, repr(value + b"~"), function, kind or "string")

    def _operator(
        self,
        node: ast.stmt | ast.expr,
        pairs: list[tuple[ast.expr, ast.expr]],
        written: str,
        other: str,
        function: str,
        kind: str,
    ) -> None:
        """Add the mutant that has another operator between each of the pairs of operands."""
        start, end = self._span(node)
        new, done = b"", start
        for left, right in pairs:
            gap = slice(self._span(left)[1], self._span(right)[0])
            changed, count = re.subn(written.encode(), other.encode(), self.text[gap], count=1)
            if not count or b"#" in self.text[gap]:
                return
            new += self.text[done : gap.start] + changed
            done = gap.stop
        self._add(node, (new + self.text[done:end]).decode(), function, kind)

    def _add(self, node: ast.stmt | ast.expr, replacement: str, function: str, kind: str) -> None:
        source = self._source(node)
        name = (function, source, replacement)
        span = self._span(node)
        self.mutants.append(Mutant(self.file, function, kind, source, replacement, self._seen[name], span))
        self._seen[name] += 1

    def _source(self, node: ast.stmt | ast.expr) -> str:
        start, end = self._span(node)
        return self.text[start:end].decode()

    def _span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _always(test: ast.expr) -> bool | None:
    """Return the value of a condition that only depends on the system, on Python or on TYPE_CHECKING, or None."""
    text = ast.unparse(test)
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    if not _OTHER_SYSTEMS.search(text) or names - {"TYPE_CHECKING", "sys", "os"}:
        return None
    return bool(eval(text, {"TYPE_CHECKING": False, "sys": sys, "os": os}))  # noqa: S307 (a line of our own source)


def _changeable_children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node, without annotations and the types in casts."""
    left_out: list[ast.AST] = []
    if isinstance(node, ast.AnnAssign):
        left_out.append(node.annotation)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast":
        left_out += node.args[:1]
    return (child for child in ast.iter_child_nodes(node) if child not in left_out)


def _conditions(node: ast.AST) -> list[ast.expr]:
    """Return the conditions that a node has."""
    match node:
        case ast.If() | ast.While() | ast.IfExp():
            return [node.test]
        case ast.comprehension():
            return node.ifs
        case ast.match_case(guard=ast.expr() as guard):
            return [guard]
    return []


def _can_be_dropped(node: ast.AST) -> bool:
    """Return whether a statement is a call, a change of an object, or a jump."""
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Continue() | ast.Break() | ast.Raise():
            return True
        case ast.Assign(targets=targets):
            return all(isinstance(target, ast.Attribute | ast.Subscript) for target in targets)
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
            return isinstance(target, ast.Attribute | ast.Subscript)
    return False


def shares(lines: dict[str, int], count: int) -> dict[str, int]:
    """Return how many of `count` mutants each unit gets: a few each, the others in proportion to its lines."""
    given = dict.fromkeys(lines, min(LEAST, count // len(lines)))
    for _ in range(count - sum(given.values())):
        given[max(lines, key=lambda unit: lines[unit] / (given[unit] + 1))] += 1
    return given


def choose(sources: dict[str, bytes], count: int, seed: str) -> list[Mutant]:
    """Return `count` mutants of some modules, or all if there are fewer. The same seed chooses the same.

    A function is chosen in proportion to how many mutants it has, then a kind of change, so that constants, which are
    in the majority, do not displace the other kinds.
    """
    chosen: list[Mutant] = []
    rest = [mutant for file, text in sorted(sources.items()) for mutant in candidates(file, text)]
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    while rest and len(chosen) < count:
        one = chance.choice(rest)
        same = [mutant for mutant in rest if (mutant.file, mutant.function) == (one.file, one.function)]
        kind = chance.choice(sorted({mutant.kind for mutant in same}))
        mutant = chance.choice([mutant for mutant in same if mutant.kind == kind])
        rest.remove(mutant)
        if compiles(mutant.apply(sources[mutant.file])):
            chosen.append(mutant)
    return chosen


def again(wanted: Iterable[Mutant], sources: dict[str, bytes]) -> list[Mutant | None]:
    """Find mutants by their names. It is None for one whose source has gone.

    A function may have moved to another file, if only one of that name has such a node.
    """
    there = {mutant: mutant for file, text in sources.items() for mutant in candidates(file, text)}
    elsewhere: dict[Mutant, list[Mutant]] = {}
    for mutant in there:
        elsewhere.setdefault(dataclasses.replace(mutant, file=""), []).append(mutant)
    found = []
    for mutant in wanted:
        moved = elsewhere.get(dataclasses.replace(mutant, file=""), [])
        found.append(there.get(mutant) or (moved[0] if len(moved) == 1 else None))
    return found


def summary(results: list[Result]) -> list[str]:
    """Return a table with a line for each unit, and the mutants that survived."""
    lines = [f"{'unit':<14}{'mutants':>8}{'killed':>8}{'survived':>10}{'score':>7}"]
    for unit in [unit for unit in UNITS if any(result["unit"] == unit for result in results)] + ["all"]:
        outcomes = Counter(result["outcome"] for result in results if unit in (result["unit"], "all"))
        killed, survived = outcomes["killed"], outcomes["survived"]
        score = f"{killed / (killed + survived):.0%}" if killed + survived else "-"
        lines.append(f"{unit:<14}{killed + survived:>8}{killed:>8}{survived:>10}{score:>7}")
    survivors = [result for result in results if result["outcome"] == "survived"]
    lines += ["", "survived:"] if survivors else []
    return lines + [
        f"{named(result)}{'' if result['complete'] else ' (not all tests: --limit)'}" for result in survivors
    ]


def differences(before: list[Result], after: list[Result]) -> list[str]:
    """Return a line for each mutant that was killed before and is not now, from two lists of results of the same."""
    return [
        f"{now['outcome']}, was killed by {old['by']}: {named(old)}"
        for old, now in zip(before, after, strict=True)
        if old["outcome"] == "killed" != now["outcome"]
    ]
