"""Checks of the package's structure. docs/architecture.md has its tables and rules."""

import ast
import collections
import os
import pathlib
import re
import subprocess
import sys
import sysconfig

import pytest

import mcpspy
from tests.each import each
from tests.limits import LIMIT

ROOT = os.path.dirname(mcpspy.__file__)

ARCHITECTURE = os.path.join(os.path.dirname(ROOT), "docs", "architecture.md")


def tables(text):
    """Read the tables of docs/architecture.md: the layer of each unit, and the pairs in one layer that may import.

    A unit is a module or a package directly below `mcpspy`. Modules of one package may import each other.
    """
    layers, siblings = {}, {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 3:
            continue
        if re.fullmatch(r"L\d", cells[0]):
            layers |= dict.fromkeys(re.findall(r"`(\w+)/?`", cells[1]), int(cells[0][1]))
        elif all(re.fullmatch(r"`\w+`", cell) for cell in cells[:2]):
            siblings[cells[0].strip("`"), cells[1].strip("`")] = cells[2]
    return layers, siblings


with open(ARCHITECTURE, encoding="utf-8") as page:
    LAYER, SIBLINGS = tables(page.read())
ONLY = {"gate": {"wire", "json_values"}}  # the units that a unit may import, if fewer than its layer allows
PLACES = {
    "aiohttp": ("relay", "replay", "tui"),
    "mitmproxy": ("relay",),
    "anyio": ("agent",),
    "duckdb": ("query",),
    "mcp": ("agent",),
    "mcp_types": ("agent",),
    "opentelemetry": ("telemetry",),
    "ruamel": ("clients",),
    "textual": ("tui",),
    "textual_serve": ("tui",),
    "pytest": ("pytest_plugin",),
    "rich": ("cli", "tui"),
    "watchfiles": ("relay",),
}
PRIVATE_OF_AIOHTTP = set(
    "_ErrInfo _message _messages _current_request _read_nowait _factory _payload_parser _parser".split()
)
EXTENDED_OF_AIOHTTP = {"RequestHandler", "ResponseHandler", "Server", "TCPConnector", "StreamReader", "ClientRequest"}
KNOWS_AIOHTTP = "relay.http.http1"
WITHOUT_SCREEN = {"tui.model": ("textual", "textual_serve", "rich")}
"""Packages that compute what others display, and the display libraries that they must not import."""
POSIX = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog"}
POSIX_MODULES = {"process.child", "process.pipes"}  # `child_windows` has their interface on Windows
WRITER = "capture.writer"
MAY_WRITE = "recording"
LONGEST = 700  # lines in a module
OUTSIDE = re.compile(r"\b(?:DESIGN|REQUIREMENTS|PERFORMANCE|FIELD-TRAFFIC)\b")  # not in the repository


def faults(module, source):
    """Return the forbidden imports of a module. `module` is its name below `mcpspy`."""
    unit = module.split(".")[0]
    if unit not in LAYER:
        return [f"{unit} has no layer"]
    found = []
    for name, guarded in imports(ast.parse(source)):
        top, *rest = name.split(".")
        if top == "mcpspy":
            own = next((package for package in WITHOUT_SCREEN if module.startswith(f"{package}.")), "")
            if own and name.startswith("mcpspy.tui.") and not f"{name}.".startswith(f"mcpspy.{own}."):
                found.append(f"{module} imports {name.removeprefix('mcpspy.')}")
            other = rest[0] if rest and rest[0] in LAYER else "__init__"
            above = LAYER[other] > LAYER[unit] or (LAYER[other] == LAYER[unit] and (unit, other) not in SIBLINGS)
            if other != unit and above and LAYER[other] > 0:
                found.append(f"{unit} imports {other}, which is not below it")
            elif other not in {unit, *ONLY.get(unit, {other})}:
                found.append(f"{unit} imports {other}")
            elif f"{name}.".startswith(f"mcpspy.{WRITER}.") and unit not in (MAY_WRITE, "capture"):
                found.append(f"{unit} imports {WRITER}, which {MAY_WRITE} alone may")
        elif top == "asyncio" and LAYER[unit] <= 2:
            found.append(f"{unit} imports asyncio")
        elif unit not in PLACES.get(top, (unit,)):
            found.append(f"{unit} imports {top}")
        elif any(module.startswith(f"{package}.") and top in names for package, names in WITHOUT_SCREEN.items()):
            found.append(f"{module} imports {top}")
        elif top in POSIX and not guarded and module not in POSIX_MODULES:
            found.append(f"{unit} imports {top}, which Windows does not have")
    return found


def private_of_aiohttp(module, source):
    """Return the private parts of aiohttp that a module uses: names, members of objects, members through subclasses."""
    tree = ast.parse(source)
    if module == KNOWS_AIOHTTP or not any(name.split(".")[0] == "aiohttp" for name, _ in imports(tree)):
        return []
    found = [name for name, _ in imports(tree) if name.startswith("aiohttp") and "._" in name]
    from_aiohttp = {name.split(".")[-1] for name, _ in imports(tree) if name.startswith("aiohttp")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in PRIVATE_OF_AIOHTTP:
            own = isinstance(node.value, ast.Name) and node.value.id == "self"
            found += [] if own else [node.attr]
        elif isinstance(node, ast.ClassDef):
            bases = [base for base in map(ast.unparse, node.bases) if base.split(".")[0] in from_aiohttp]
            found += [base for base in bases if base.split(".")[-1] in EXTENDED_OF_AIOHTTP]
    return found


def imports(tree, guarded=False):
    """Yield every import of a module, and whether it is guarded: inside a function, a `try` or an `if`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, guarded) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.{alias.name}", guarded) for alias in node.names)
        else:
            inside = isinstance(node, ast.Try | ast.If | ast.FunctionDef | ast.AsyncFunctionDef)
            yield from imports(node, guarded or inside)


def sources():
    """Return the text of each module by its name below `mcpspy`."""
    found = {}
    for folder, _, files in os.walk(ROOT):
        for file in files:
            if file.endswith(".py"):
                path = os.path.join(folder, file)
                name = os.path.relpath(path, ROOT)[:-3].replace(os.sep, ".")
                with open(path, encoding="utf-8") as source:
                    found[name.removesuffix(".__init__")] = source.read()
    return found


SOURCES = sources()


@each("module", sorted(SOURCES))
def test_imports_point_downwards_only(module):
    assert faults(module, SOURCES[module]) == []


@pytest.mark.parametrize(
    ("module", "source", "fault"),
    [
        ("wire.lines", "from mcpspy.recording.recording import Tap", "wire imports recording"),
        ("wire.lines", "import mcpspy.recording.recording", "wire imports recording"),
        ("wire.lines", "from mcpspy import recording", "wire imports recording"),
        ("recording.stream", "from mcpspy.spec.revisions import Era", "recording imports spec"),
        ("conversation.conversation", "from mcpspy.recording.recording import Tap", "conversation imports recording"),
        ("wire.jsonrpc", "from mcpspy.capture import reader", "wire imports capture"),
        ("gate.gate", "from mcpspy.capture.writer import Writer", "gate imports capture"),
        ("gate.order", "def f():\n    from mcpspy.recording.recording import Tap", "gate imports recording"),
        ("gate.gate", "from mcpspy.errors import Error", "gate imports errors"),
        ("text", "from mcpspy.wire.jsonrpc import Id", "text imports wire"),
        ("relay.stdio.pump", "def f():\n    from mcpspy.cli import main", "relay imports cli"),
        ("wire.jsonrpc", "import asyncio", "wire imports asyncio"),
        ("recording.stream", "from asyncio import Queue", "recording imports asyncio"),
        ("cli.show", "import textual.app", "cli imports textual"),
        ("timeline", "import aiohttp", "timeline imports aiohttp"),
        ("relay.stdio.pump", "from textual.app import App", "relay imports textual"),
        ("tui.app", "import mitmproxy", "tui imports mitmproxy"),
        ("capture.reader", "import fcntl", "Windows"),
        ("capture.reader", "from termios import FIONREAD", "Windows"),
        ("relay.stdio.relay", "from mcpspy.capture.writer import create", "relay imports capture.writer"),
        ("importers.captures", "from mcpspy.capture import writer", "importers imports capture.writer"),
        ("transport.link", "def f():\n    import mcpspy.capture.writer", "transport imports capture.writer"),
        ("tui.model.lanes", "from textual.app import App", "tui.model.lanes imports textual"),
        ("tui.model.lanes", "def f():\n    import rich.cells", "tui.model.lanes imports rich"),
        ("tui.model.lanes", "from mcpspy.tui.widgets.rows import Rows", "tui.model.lanes imports tui.widgets.rows"),
        ("browse.timeline", "import rich.cells", "browse imports rich"),
        ("browse.timeline", "from mcpspy.tui.app import run", "browse imports tui, which is not below it"),
        ("utilities", "", "has no layer"),
    ],
)
def test_a_planted_violation_is_found(module, source, fault):
    assert fault in " ".join(faults(module, source))


@each("module", sorted(SOURCES))
def test_private_names_of_aiohttp_stand_in_one_module(module):
    assert private_of_aiohttp(module, SOURCES[module]) == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("from aiohttp.web_protocol import _ErrInfo", "aiohttp.web_protocol._ErrInfo"),
        ("def f():\n    from aiohttp.web_protocol import _MsgType", "aiohttp.web_protocol._MsgType"),
        ("from aiohttp import web\nchunked = request._message.chunked", "_message"),
        ("import aiohttp\nself.connector._factory = None", "_factory"),
        ("import aiohttp\nbody._read_nowait(-1)", "_read_nowait"),
        ("from aiohttp import web\nclass Connection(web.RequestHandler): pass", "web.RequestHandler"),
        ("from aiohttp.client_proto import ResponseHandler\nclass X(ResponseHandler): pass", "ResponseHandler"),
    ],
)
def test_a_planted_private_name_of_aiohttp_is_found(source, fault):
    assert private_of_aiohttp("relay.http.forward", source) == [fault]
    assert private_of_aiohttp(KNOWS_AIOHTTP, source) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("capture.reader", "try:\n    import fcntl\nexcept ImportError:\n    fcntl = None"),
        ("capture.reader", "if sys.platform != 'win32':\n    import fcntl"),
        ("capture.location", "def home():\n    import pwd"),
        ("relay.http.forward", "import asyncio, aiohttp"),
        ("tui.app", "from textual.app import App\nfrom mcpspy.timeline import Row"),
        ("timeline", "from mcpspy import __version__\nfrom mcpspy.errors import Error"),
    ],
)
def test_what_is_allowed_is_let_through(module, source):
    assert faults(module, source) == []


def test_every_named_exception_is_one_that_the_code_has():
    found = {
        (module.split(".")[0], name.split(".")[1])
        for module, source in SOURCES.items()
        for name, _ in imports(ast.parse(source))
        if name.startswith("mcpspy.")
    }
    assert found >= set(SIBLINGS)


def cycles(sources):
    """Return the import cycles: sorted lists of modules that import each other, directly or indirectly.

    All imports count, also those in functions and those for type checkers only.
    """
    edges = {module: set() for module in sources}
    for module, source in sources.items():
        for name, _ in imports(ast.parse(source)):
            below = name.removeprefix("mcpspy.")
            edges[module] |= {other for other in (below, below.rpartition(".")[0]) if other in sources} - {module}
    found = {module: reached(edges, module) for module in sources}
    return sorted({tuple(sorted(b for b in found[a] if a in found[b])) for a in sources if a in found[a]})


def reached(edges, start):
    """Return the modules that `start` imports, directly or indirectly, with `start` only if it is in a cycle."""
    found, todo = set(), [start]
    while todo:
        new = edges[todo.pop()] - found
        found |= new
        todo += new
    return found


def twice(sources):
    """Return the class names that occur more than once. Names with an underscore are private to their modules."""
    classes = collections.Counter(
        node.name
        for source in sources.values()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, count in classes.items() if count > 1)


def too_long(sources):
    """Return the modules that have too many lines."""
    return sorted(module for module, source in sources.items() if source.count("\n") > LONGEST)


def citations(sources):
    """Return, by module, the citations of documents that are not in the repository."""
    return {module: found for module, source in sources.items() if (found := OUTSIDE.findall(source))}


@pytest.mark.parametrize("broken", [cycles, twice, too_long])
def test_the_package_keeps_to_the_rule(broken):
    assert not broken(SOURCES)


def test_nothing_cites_what_is_not_in_the_repository():
    here = pathlib.Path(__file__)
    texts = {
        str(path): path.read_text(encoding="utf-8")
        for folder in ("tests", "benchmarks", "scripts", "docs")
        for path in (here.parents[1] / folder).rglob("*")
        if path.suffix in (".py", ".md", ".sh", "") and path.is_file() and path != here
    }
    assert len(texts) > len(SOURCES) / 2
    assert not citations(SOURCES | texts)


@pytest.mark.parametrize(
    ("broken", "planted", "found"),
    [
        (
            cycles,
            {"wire.a": "from mcpspy.wire import b", "wire.b": "def f():\n    from mcpspy.wire.a import X"},
            [("wire.a", "wire.b")],
        ),
        (
            cycles,
            {
                "gate.a": "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from mcpspy.gate.b import X",
                "gate.b": "import mcpspy.gate.c",
                "gate.c": "from mcpspy.gate.a import Y",
                "gate.d": "from mcpspy.gate.a import Y",
            },
            [("gate.a", "gate.b", "gate.c")],
        ),
        (
            twice,
            {"wire.a": "class Lines: ...\nclass _Own: ...", "relay.b": "class Lines: ...\nclass _Own: ..."},
            ["Lines"],
        ),
        (twice, {"wire.a": "class A:\n    class Lines: ...", "wire.b": "class Lines: ..."}, ["Lines"]),
        (too_long, {"wire.a": "x = 1\n" * (LONGEST + 1), "wire.b": "x = 1\n" * LONGEST}, ["wire.a"]),
        (citations, {"cli.a": '"""A command (' + "DESIGN" + ' section 2)."""', "cli.b": ""}, {"cli.a": ["DESIGN"]}),
    ],
)
def test_a_planted_fault_of_structure_is_found(broken, planted, found):
    assert broken(planted) == found


def test_the_tables_name_the_units_that_there_are():
    assert set(LAYER) == {module.split(".")[0] for module in SOURCES}
    assert all(reason for reason in SIBLINGS.values())
    assert all(LAYER[unit] == LAYER[other] for unit, other in SIBLINGS)


def test_a_planted_change_of_the_tables_is_read():
    layers, siblings = tables("| L1 | `wire/`, `text` | x |\n| `wire` | `text` | y |\n| you | `text` | `wire` |")
    assert (layers, siblings) == ({"wire": 1, "text": 1}, {("wire", "text"): "y"})


def test_the_files_that_the_page_names_exist():
    with open(ARCHITECTURE, encoding="utf-8") as page:
        named = set(re.findall(r"`((?:[a-z_0-9]+/)+(?:[a-z_0-9]+\.py)?)`", page.read())) - {
            "mcpspy/a/b.py",
            "tests/a/test_b.py",
        }
    roots = (ROOT, os.path.dirname(ROOT))
    assert not {name for name in named if not any(os.path.exists(os.path.join(root, name)) for root in roots)}


PRIVATE = {
    "textual": (
        "tui.textual_internals",
        "_app _compositor _context _debug _driver _file _filters _invoke _running _scroll_update _timers",
    ),
    "textual_serve": (
        "tui.textual_serve_internals",
        "_build_environment _download_manager _make_app _open_app_process _process _stdin _stdout",
    ),
}
"""For each library, the one module that may use its private names, and the known private names."""


def private_names(source, library):
    """Yield the private names of a library in a module, each with its line. Of attributes, only the known ones."""
    known = PRIVATE[library][1].split()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == library:
            names = [*node.module.split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for it in node.names if it.name.split(".")[0] == library for part in it.name.split(".")]
        elif isinstance(node, ast.Attribute) and node.attr in known:
            names = [node.attr]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in known:
            names = [node.name]
        yield from (f"{name} in line {node.lineno}" for name in names if name.startswith("_"))


@pytest.mark.parametrize("library", PRIVATE)
def test_private_names_of_a_library_stand_in_one_module(library):
    """They may change with any release, so it must be clear where they are used."""
    tui = {module: source for module, source in SOURCES.items() if module.startswith("tui.")}
    found = {module: list(private_names(source, library)) for module, source in tui.items()}
    assert found.pop(PRIVATE[library][0]), "the module has no private names any more"
    assert not {module: names for module, names in found.items() if names}


@pytest.mark.parametrize(
    ("library", "source", "names"),
    [
        ("textual", "from textual._xterm_parser import XTermParser", 1),
        ("textual", "import textual._compositor as compositor", 1),
        ("textual", "from textual.app import _T", 1),
        ("textual", "view._scroll_update(size)", 1),
        ("textual", "def f(self): self._app.exit()", 1),
        ("textual", "class A(Driver):\n    def _invoke(self): ...", 1),
        ("textual", "from textual.app import App\nself._own = textual.app", 0),
        ("textual_serve", "from textual_serve._binary_encode import load", 1),
        ("textual_serve", "await super()._make_app()", 1),
        ("textual_serve", "from textual._xterm_parser import XTermParser", 0),
    ],
)
def test_a_planted_private_name_is_found(library, source, names):
    assert len(list(private_names(source, library))) == names


def unasked(sources, tests):
    """Return the public functions and classes of some modules that no test reaches, as `module.name`.

    A test reaches the names in it, and those in the code of each name that it reaches; what a decorator registers is
    reached with the decorator. This is about names, so it finds code that nothing uses, and not all that is untested:
    `scripts/mutants` finds that. pytest itself calls pytest_addoption.
    """
    defined = collections.defaultdict(list)
    for module, source in sources.items():
        for node in ast.parse(source).body:
            names = (
                [node.name] if hasattr(node, "name") else [it.id for it in ast.walk(node) if isinstance(it, ast.Name)]
            )
            words = set(re.findall(r"\w+", ast.unparse(node)))
            decorators = [re.match(r"\w+", ast.unparse(it))[0] for it in getattr(node, "decorator_list", [])]
            for name in [*names, *(it for it in decorators if it != "dataclass")]:
                defined[name].append((module, words, name == getattr(node, "name", None)))
    reached, todo = set(), set(re.findall(r"\w+", tests))
    while todo:
        reached |= todo
        todo = {word for name in todo for _, words, _ in defined.get(name, ()) for word in words} - reached
    return sorted(
        f"{module}.{name}"
        for name, places in defined.items()
        for module, _, public in places
        if public and not name.startswith("_") and name not in reached
    )


def test_tests_reach_every_public_name():
    tests = "\n".join(path.read_text(encoding="utf-8") for path in pathlib.Path(__file__).parent.rglob("*.py"))
    assert unasked(SOURCES, tests) == []


def test_a_planted_name_that_no_test_reaches_is_found():
    sources = {"wire.a": "class Lines:\n    x = of\ndef of(): ...\ndef lone(): ...\ndef _own(): ..."}
    assert unasked(sources, "from mcpspy.wire.a import Lines") == ["wire.a.lone"]


# "The wrap path is light." What Python itself needs to start is not counted.

LIGHT = set(
    "os sys time errno binascii _thread _signal fcntl select resource _ctypes _json _blake2 itertools stat".split()
)
BEFORE_THE_SERVER = set(
    "_ctypes errno mcpspy mcpspy.errors mcpspy.cli mcpspy.cli.wrap mcpspy.cli.options"
    " mcpspy.process mcpspy.process.child".split()
)
"""Modules that `wrap` imports before it starts the server. It imports all others while the server starts."""
HEAVY = (
    "asyncio aiohttp textual re json dataclasses typing enum orjson argparse subprocess signal ctypes pathlib secrets"
    " logging threading collections functools importlib inspect contextlib socket tempfile shutil base64 hashlib"
)
LIBRARIES = sysconfig.get_path("purelib")


def imported(home, *arguments):
    """Return the modules that `mcpspy ARGUMENTS` imports, in order, without those of a program that imports `os`.

    Those of orjson are left out, too, which `wrap` imports last.
    """
    paths = [os.path.dirname(ROOT), LIBRARIES]
    bare = f"import os, sys; sys.path[:0] = {paths!r}; sys.argv = ['mcpspy', *{arguments!r}]"
    full = f"{bare}\nfrom mcpspy.cli import main\nsys.exit(main())"
    before = names(home, bare)
    found = [name for name in names(home, full) if name not in before]
    late = set(names(home, f"{bare}\nimport orjson")) - LIGHT
    first = next((at for at, name in enumerate(found) if name in late), len(found))
    rest = {"mcpspy.capture.writer", "mcpspy.capture.format", "mcpspy.process.witness"}
    assert {name for name in found[first:] if name not in late and name not in LIGHT} <= rest
    return [name for name in found if name not in late]


def names(home, program):
    run = subprocess.run(
        [sys.executable, "-S", "-X", "importtime", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
        env={"HOME": home, "PATH": os.defpath},
        timeout=LIMIT,
    )
    return [line.rpartition("|")[2].strip() for line in run.stderr.splitlines() if line.startswith("import time:")]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other ways to end with a process")
def test_the_wrap_path_imports_only_what_is_light(tmp_path):
    """S-13."""
    found = imported(str(tmp_path), "wrap", "--", "true")
    assert "mcpspy.relay.stdio.relay" in found, "the list is that of a relay that ran"
    assert {name for name in found if not name.startswith("mcpspy")} <= LIGHT
    assert not {name.split(".")[0] for name in found} & set(HEAVY.split())
    assert os.listdir(tmp_path / ".mcpspy" / "captures")
    assert set(found[: found.index("mcpspy.relay")]) <= BEFORE_THE_SERVER
    ours = {name.split(".")[1] for name in found if name.startswith("mcpspy.")}
    light = "cli errors foreign_file relay capture secrets recording wire process gate json_values"
    assert ours <= set(light.split())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other ways to end with a process")
def test_the_wrap_path_stays_light_with_a_gate(tmp_path):
    """Another process compiles the gate file."""
    file = tmp_path / "gates.toml"
    file.write_text("[[gate]]\nwhen = 'name:a*'\ndelay = '1s'\n")
    found = imported(str(tmp_path), "wrap", "--gate", str(file), "--", "true")
    assert "mcpspy.gate.compiled" in found
    assert not {name.split(".")[0] for name in found} & set(HEAVY.split())
    ours = {name.split(".")[1] for name in found if name.startswith("mcpspy.")}
    assert not ours & {"filters", "gate_files", "replay", "conversation", "timeline"}


def test_other_commands_are_imported_only_when_they_are_called(tmp_path):
    script = (
        f"import sys; sys.path.insert(0, {os.path.dirname(ROOT)!r}); sys.argv = ['mcpspy', 'ls']\n"
        "from mcpspy.cli import main\nmain()\nprint(*sys.modules)"
    )
    command = [sys.executable, "-c", script]
    run = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"HOME": str(tmp_path)}, timeout=LIMIT
    )
    found = set(run.stdout.splitlines()[-1].split())
    assert "mcpspy.cli.ls" in found
    assert not {"mcpspy.cli.check", "mcpspy.cli.show", "mcpspy.relay.stdio.relay", "asyncio"} & found


PROC = "files below /proc, which the kernel writes"
OWN = "a file that belongs to the package"
MADE = "a file that this process has just made"
DIRECTORY = "a directory, for its lock"
READING = {
    "foreign_file": "the reader of all files of others",
    "process.child": PROC,
    "process.ports": PROC,
    "process.ancestry": PROC,
    "contract.verify.launch": PROC,
    "contract.verify.probe": f"{PROC}; it runs in place of a server and imports nothing of the package",
    "cli.complete": OWN,
    "cli.tui": "the terminal",
    "sharing.page.sources": OWN,
    "cli.gates": "the stdout of a process that was started here",
    "cli.sql": MADE,
    "sharing.selection": MADE,
    "sharing.page.writer": MADE,
    "clients.routes": DIRECTORY,
    "replay.growth": DIRECTORY,
    "telemetry.followed": "a file of locks, which is not read",
    "relay.mitm.authority": "the key that mitmproxy has made, and the certificates of the system",
    "network.access": "certificates and keys, after foreign_file has read them",
    "relay.stdio.pump": "the null device",
    "relay.reload.server": "the null device",
}
"""The modules that may open files for reading without `foreign_file`, and what they read."""
OPENING = {"open", "os.open", "io.open", "io.open_code", "open_code", "os.fdopen", "codecs.open"}
LOADING = {"tomllib.load", "json.load", "ssl.SSLContext.load_cert_chain", "shutil.copyfile", "shutil.copy"}
METHODS = {"read_text", "read_bytes", "load_verify_locations", "load_cert_chain"}
WRITES = {"O_WRONLY", "_FLAGS"}
"""In the flags of `os.open`: it writes. The constants `_FLAGS` outside foreign_file have it."""


def readings(source):
    """Return the calls in a module that open a file for reading, or load one, without `foreign_file`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        words = [ast.unparse(it) for it in (*node.args[1:], *(keyword.value for keyword in node.keywords))]
        writes = any(re.fullmatch(r"'[wxa][bt]?'", word) for word in words[:1])
        writes = writes or (called == "os.open" and any(it in word for it in WRITES for word in words[:1]))
        if (called in OPENING and not writes) or called in LOADING:
            found.append(f"{called} in line {node.lineno}")
        elif isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            found.append(f"{node.func.attr} in line {node.lineno}")
    return found


def test_files_of_others_are_read_in_one_module_only():
    """A-18: any other reading is listed above with its reason; nothing is listed in vain."""
    found = {module: calls for module, source in SOURCES.items() if (calls := readings(source))}
    assert {module: calls for module, calls in found.items() if module not in READING} == {}
    assert set(READING) - set(found) == set()


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("open(path)", 1),
        ("with open(path, 'rb') as file: pass", 1),
        ("open(path, mode='rb')", 1),
        ("os.open(path, os.O_RDONLY | os.O_CLOEXEC)", 1),
        ("os.open(path, os.O_RDWR | os.O_CREAT)", 1),
        ("tomllib.load(file)", 1),
        ("Path(path).read_text()", 1),
        ("folder.joinpath(name).read_bytes()", 1),
        ("context.load_verify_locations(path)", 1),
        ("def f():\n    shutil.copyfile(a, b)", 1),
        ("open(path, 'w', encoding='utf-8')", 0),
        ("open(fd, 'wb')", 0),
        ("os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)", 0),
        ("os.fdopen(fd, 'wb')", 0),
        ("captures.open(entry)", 0),
        ("open_foreign(path)", 0),
    ],
)
def test_a_planted_reading_is_found(source, count):
    assert len(readings(source)) == count
