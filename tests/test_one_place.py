"""Ideas that stand in one place of the package, found again by a search in its syntax trees."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import mcpspy

PACKAGE = Path(mcpspy.__file__).parent


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax tree of each module of the package, by its path in the package."""
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_bytes()) for path in PACKAGE.rglob("*.py")}


def nodes(kind: type[ast.AST], folder: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield the nodes of a kind, each with its module."""
    for module, tree in trees().items():
        if module.startswith(folder):
            yield from ((module, node) for node in ast.walk(tree) if isinstance(node, kind))


def fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    """Return the declared fields of a class."""
    return [it for it in node.body if isinstance(it, ast.AnnAssign) and isinstance(it.target, ast.Name)]


def calls_of(name: str) -> list[str]:
    """Return the modules that call a function or class, once for each call."""
    called = ((module, node.func) for module, node in nodes(ast.Call))
    return [module for module, it in called if name in (getattr(it, "id", ""), getattr(it, "attr", ""))]


def importing(module: str) -> list[str]:
    """Return the modules that import names of a module."""
    return [it for it, node in nodes(ast.ImportFrom) if getattr(node, "module", "") == module]


def test_one_loop_feeds_the_judge():
    assert calls_of("Judge") == ["rules/judge.py"]
    assert set(calls_of("Conversation")) <= {
        "conversation/conversation.py",
        "rules/judge.py",
        "timeline.py",  # one record alone
        "exporters/har.py",  # channels and messages side by side
        "replay/script.py",
    }


def test_one_class_has_what_a_row_has():
    """A row of a viewer inherits it."""
    wanted = {"kind", "sender", "status", "latency"}
    found = []
    for module, node in nodes(ast.ClassDef):
        if wanted <= {it.target.id for it in fields(node)}:
            found.append((module, node.name))
    assert found == [("timeline.py", "Row")]


def test_how_much_a_session_remembers_is_told_in_one_module():
    """The tables of sessions are compared with no other number."""
    tables = {it.target.id for _, node in nodes(ast.ClassDef, "conversation/") for it in fields(node)}
    for module, node in nodes(ast.Compare, "conversation/"):
        measured = [
            it.args[0] for it in ast.walk(node) if isinstance(it, ast.Call) and getattr(it.func, "id", "") == "len"
        ]
        if any(isinstance(it, ast.Attribute) and it.attr in tables for it in measured):
            own = (it for it in ast.walk(node) if isinstance(it, ast.Name | ast.Constant))
            assert not [it for it in own if getattr(it, "id", "A").isupper()], (module, ast.unparse(node))


def test_servers_are_ended_in_one_module():
    """No other module signals a group, or first terminates a process and then kills it."""
    assert set(calls_of("killpg")) == {"process/ending.py"}
    both = []
    for module, node in nodes(ast.For):
        names = {getattr(it, "attr", getattr(it, "id", "")) for it in ast.walk(node)}
        if names & {"SIGTERM", "terminate"} and names & {"SIGKILL", "KILL", "kill"}:
            both.append(module)
    assert both == ["process/ending.py"]
    assert not set(calls_of("terminate")) & set(calls_of("kill"))
    enders = set(calls_of("end")) & set(importing("mcpspy.process.ending"))
    assert enders >= {"transport/link.py", "transport/http_link.py", "relay/reload/relay.py", "replay/growth.py"}


def keys(*wanted: str) -> set[str]:
    """Return the modules that write a dictionary with a member of one of these names, in lower case."""
    found = {module for module, node in nodes(ast.Dict) for it in getattr(node, "keys", ()) if named(it) in wanted}
    return {module for module in found if not module.startswith(("spec/", "rules/"))}


def named(key: ast.AST | None) -> str:
    return str(key.value).lower() if isinstance(key, ast.Constant) else ""


def test_one_client_introduces_itself():
    """The demo has a client of its own, as a person who uses an SDK."""
    introduced = keys("clientinfo", "io.modelcontextprotocol/clientinfo")
    assert introduced == {"demo/client.py", "transport/client.py"}
    assert set(calls_of("AskingClient")) == {"clients/probe.py", "contract/ask.py", "contract/verify/session.py"}


def test_one_client_speaks_http():
    """What listens at a port of this machine is asked by one plain GET."""
    assert set(calls_of("HTTPConnection")) == {"clients/probe.py"}
    assert set(calls_of("HTTPSConnection")) == set()
    assert set(calls_of("create_connection")) == {"network/dialer.py", "cli/mitm.py"}
    assert keys("mcp-protocol-version") - {"sharing/scrub/texts.py"} == {"transport/http_client.py"}


def test_the_pages_of_listings_are_requested_in_one_module():
    assert keys("cursor") - {"replay/issued_values.py", "agent/catalogue.py"} == {"transport/client.py"}
