"""`scripts/test --changed`: the tests that are nearest to a change, and those that fit into some seconds."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "scripts"))
import changed_tests  # noqa: E402 (the line above makes it importable)
import nearest_tests  # noqa: E402

SOURCES = {
    "tests/wire/test_lines.py": b"from mcpspy.wire.lines import Lines\nfrom tests.pieces import cut",
    "tests/wire/test_sse.py": b"import mcpspy.wire.sse",
    "tests/relay/test_pump.py": b"from mcpspy.wire.lines import Lines",
    "tests/test_page.py": b"PAGE = 'docs/filters.md'",
    "tests/pieces.py": b"",
}


@pytest.mark.parametrize(
    ("paths", "files"),
    [
        (["mcpspy/wire/lines.py"], ["tests/wire/test_lines.py", "tests/wire/test_sse.py", "tests/relay/test_pump.py"]),
        (["tests/wire/test_sse.py", "tests/wire/test_gone.py"], ["tests/wire/test_sse.py"]),
        (["tests/pieces.py"], ["tests/wire/test_lines.py"]),
        (["docs/filters.md"], ["tests/test_page.py"]),
        (["docs/other.md", "LICENSE"], []),
    ],
)
def test_the_nearest_tests_of_a_change(paths, files):
    assert changed_tests.nearest(paths, SOURCES) == files


def test_files_that_take_too_long_are_left_out_but_never_all():
    seconds = {"a": 3, "b": 5, "c": 3}
    assert changed_tests.fitting(["a", "b", "c", "new"], seconds, 7) == (["a", "c", "new"], ["b"])
    assert changed_tests.fitting(["b"], seconds, 2) == (["b"], [])


def test_there_are_near_tests_for_every_module():
    sources = nearest_tests.python_files(ROOT, "tests")
    tests = nearest_tests.Tests(sources)
    paths = [str(path.relative_to(ROOT)) for path in (ROOT / "mcpspy").rglob("*.py") if path.name != "__init__.py"]
    assert [path for path in paths if not changed_tests.nearest([path], sources, tests)] == []
