"""`scripts/mutants`: which changes it makes, how it finds them again, and whether tests notice them."""

import sys
import time
from pathlib import Path

import pytest

from tests.limits import LIMIT

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "scripts"))
import forked_tests  # noqa: E402 (the line above makes it importable)
import mutation  # noqa: E402
import mutation_copy  # noqa: E402
import mutation_tests  # noqa: E402
import nearest_tests  # noqa: E402

FILE = "mcpspy/wire/lines.py"


def changes(line, before="def f(a, b):\n    "):
    """Return the kinds of changes in a function with this line, and what the line becomes by each."""
    text = (before + line).encode()
    for mutant in mutation.candidates(FILE, text):
        changed = mutant.apply(text).decode()
        assert mutation.compiles(changed.encode()), changed
        yield mutant.kind, changed.removeprefix(before)


@pytest.mark.parametrize(
    ("line", "kind", "changed"),
    [
        ("x = a < b", "comparison", ["x = a <= b"]),
        ("x = a != (b)", "comparison", ["x = a == (b)"]),
        ("x = a is not b", "comparison", ["x = a is b"]),
        ("x = a in b", "comparison", ["x = a not in b"]),
        ("x = 'é' < a >= b", "comparison", ["x = 'é' <= a >= b", "x = 'é' < a > b"]),
        ("x = a and not b and a", "and/or", ["x = a or not b or a"]),
        ("x = not (a or b)", "not", ["x = (a or b)"]),
        ("if a: pass", "condition", ["if True: pass", "if False: pass"]),
        ("x = [i for i in a if i]", "condition", ["x = [i for i in a if True]", "x = [i for i in a if False]"]),
        ("x = a + b", "arithmetic", ["x = a - b"]),
        ("a -= b", "arithmetic", ["a += b"]),
        ("a = 255", "integer", ["a = 256"]),
        ("a = True", "boolean", ["a = False"]),
        ("a = b'x'", "string", ["a = b'x~'"]),
        ("return a", "return", ["return None"]),
        ("a.b(); b()", "statement", ["pass; b()", "a.b(); pass"]),
        ("a.b = a", "statement", ["pass"]),
        ("await a", "statement", ["pass"]),
        ("raise a", "statement", ["pass"]),
        ("yield (\n        a\n    )", "yield", ["if False: yield (\n        a\n    )"]),
        ("def g(x=1, *, y=''): pass", "default", ["def g(x=2, *, y=''): pass", "def g(x=1, *, y='~'): pass"]),
    ],
)
def test_a_line_is_changed(line, kind, changed):
    before = "async def f(a, b):\n    " if "await" in line else "def f(a, b):\n    "
    assert [text for which, text in changes(line, before) if which == kind] == changed


@pytest.mark.parametrize(
    "line",
    [
        "'''A docstring.'''",
        "assert a < 1",
        "x: 'Literal[1]' = a",
        "x = cast('list[int]', a)",
        "x = f'{a + 1}'",
        "if sys.platform == 'win32': a()",
        "if TYPE_CHECKING: a()",
        "return None",
    ],
)
def test_what_no_test_can_notice_is_not_changed(line):
    assert list(changes(line)) == []
    assert list(changes("a()", "if TYPE_CHECKING:\n    def f(a): ")) == []
    assert list(changes("return 1", "class A:\n    def __repr__(self): ")) == []


SOURCE = b"""
def f(a):
    if a:
        return 1
    return 1

class A:
    def f(self): self.a = 1
"""


def test_a_mutant_is_found_again():
    """It may stand in another line, or in another file; it has gone if its node has."""
    mutants = mutation.candidates(FILE, SOURCE)
    assert len(set(mutants)) == len(mutants)
    second = next(mutant for mutant in mutants if mutant.source == "return 1" and mutant.occurrence == 1)
    wanted = mutation.named(second.name())
    for file, text in ((FILE, b"# a comment\n" + SOURCE), ("mcpspy/wire/sse.py", SOURCE)):
        (found,) = mutation.again([wanted], {file: text})
        assert found.apply(text) == text.replace(b"    return 1\n\n", b"    return None\n\n")
    assert mutation.again([wanted], {FILE: SOURCE.replace(b"    return 1\n\n", b"\n")}) == [None]


def test_the_choice_depends_on_the_seed_only():
    sources = {FILE: SOURCE, "mcpspy/wire/sse.py": SOURCE}
    first, again, other = (mutation.choose(sources, 5, seed) for seed in "112")
    assert len(set(first)) == 5
    assert first == again != other
    assert len(mutation.choose(sources, 1000, "1")) == 2 * len(mutation.candidates(FILE, SOURCE))


def test_each_unit_gets_some_mutants_and_the_others_by_their_lines():
    assert mutation.shares({"rules": 8000, "relay": 9000, "wire": 10}, 200) == {"rules": 87, "relay": 98, "wire": 15}
    assert mutation.shares({"rules": 8000, "wire": 10}, 4) == {"rules": 2, "wire": 2}


def test_tests_are_run_in_the_order_of_their_distance():
    tests = nearest_tests.Tests(
        {
            "tests/wire/test_lines.py": b"",
            "tests/wire/test_sse.py": b"from mcpspy.wire import lines, sse",
            "tests/wire/http/test_body.py": b"import tests.helper",
            "tests/wire/http/test_head.py": b"import mcpspy.wire.sse",
            "tests/capture/test_scan.py": b"def f(): from mcpspy.wire.lines import Lines",
            "tests/capture/test_reader.py": b"import tests.helper",
            "tests/helper.py": b"import mcpspy.wire.lines",
            "tests/oracle/test_oracle.py": b"",
            "tests/query/test_sql.py": b"",
        },
        also=["tests/query/"],
    )
    assert tests.nearest(FILE) == [
        ["tests/wire/test_lines.py", "tests/wire/test_sse.py"],
        ["tests/wire/http/test_body.py", "tests/capture/test_scan.py"],
        ["tests/wire/http/test_head.py", "tests/query/test_sql.py"],
        ["tests/oracle/test_oracle.py"],
    ]


def test_a_survivor_that_was_killed_before_is_named():
    mutants = mutation.candidates(FILE, SOURCE)[:4]
    outcomes = [("killed", "killed"), ("killed", "survived"), ("killed", "gone"), ("survived", "survived")]
    before, after = (
        [
            mutant.name() | {"unit": "wire", "outcome": pair[place], "by": "a test", "complete": False}
            for mutant, pair in zip(mutants, outcomes, strict=True)
        ]
        for place in (0, 1)
    )
    assert mutation.differences(before, after) == [
        f"survived, was killed by a test: {mutants[1]}",
        f"gone, was killed by a test: {mutants[2]}",
    ]
    table = mutation.summary(after)
    assert [line.split() for line in table[1:3]] == [["wire", "3", "1", "2", "33%"], ["all", "3", "1", "2", "33%"]]
    assert f"{mutants[3]} (not all tests: --limit)" in table


def test_a_test_may_take_ten_times_as_long_as_without_a_mutant():
    watch = forked_tests.Watch({"a": 5})
    for event, nodeid, seconds in (("begins", "a", 50), ("ends", "a", 60), ("begins", "new", 600)):
        watch.note(event, nodeid)
        assert 0 <= time.monotonic() + seconds + forked_tests.GRACE - watch.due < 5
    assert watch.seconds["a"] < 5


PACKAGE = """
def size(a):
    if a > 0:
        return a
    return 0

def endless(a):
    while a > 0:
        a = a - 1
"""
TESTS = """
import subprocess, sys
from mcpspy.wire.lines import endless, size

def test_it_is_the_copy():
    program = "import mcpspy.wire.lines as it; print(it.size(1))"
    command = [sys.executable, "-I", "-c", program]
    assert subprocess.run(command, cwd="/", env={}, stdout=-1, timeout=60).stdout == b"1\\n"

def test_endless():
    program = "print(flush=True); import time; time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=-1, start_new_session=True)
    child.stdout.readline()
    with open("child", "w") as file:
        file.write(str(child.pid))
    try:
        endless(1)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mutants are tested on Linux only")
def test_mutants_are_killed_in_a_copy_of_the_repository(tmp_path):
    """Also if the changed module is imported by a process that a test has started, without any variables."""
    copy = mutation_copy.Copy(tmp_path / "copy")
    for name, text in (
        (FILE, PACKAGE), ("tests/wire/test_lines.py", TESTS),
        ("tests/__init__.py", ""), ("mcpspy/__init__.py", ""), ("mcpspy/wire/__init__.py", ""),
        ("mcpspy/pytest_plugin/__init__.py", ""), ("mcpspy/pytest_plugin/plugin.py", ""),
    ):  # fmt: skip
        path = copy.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    mutation_copy.environments(ROOT, copy.folder)
    mutants = mutation.candidates(FILE, PACKAGE.encode())

    def outcome(source, replacement, limit):
        judge = mutation_tests.Judge(nearest_tests.Tests(nearest_tests.python_files(copy.folder, "tests")), limit)
        mutant = next(one for one in mutants if (one.source, one.replacement) == (source, replacement))
        found = judge.result(copy, mutant, "")
        assert (copy.folder / FILE).read_text() == PACKAGE
        return found["outcome"], found["by"], found["complete"]

    try:
        killed = outcome("return a", "return None", LIMIT)
        assert killed == ("killed", "tests/wire/test_lines.py::test_it_is_the_copy", True)
        assert outcome("return 0", "return None", LIMIT) == ("survived", "", True)
        assert outcome("a - 1", "a + 1", 1) == ("survived", "", False)
        child = (copy.folder / "child").read_text()
        assert not Path("/proc", child).exists(), "the test that was stopped had started it"
    finally:
        copy.close()
