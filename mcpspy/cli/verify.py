"""`mcpspy verify`: prove that mcpspy changes nothing that a client or a server can observe."""

import argparse
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mcpspy.cli.access import access_to_url
from mcpspy.cli.output import ProgressBar, say
from mcpspy.cli.targets import existing_path
from mcpspy.errors import UsageError
from mcpspy.json_values import parsed
from mcpspy.network.access import Access
from mcpspy.secrets.redactor import shown
from mcpspy.text import printable
from mcpspy.transport.link import signals_interrupt

if TYPE_CHECKING:
    from mcpspy.contract.verify.http import HttpBench
    from mcpspy.contract.verify.session import SessionPlan
    from mcpspy.contract.verify.stdio import StdioBench


def run(options: argparse.Namespace) -> int:
    """Run, compare and print. Returns 1 if there is a difference."""
    if sys.platform == "win32":
        raise UsageError("verify needs the signals and descriptors of POSIX: it does not run on Windows")
    if bool(options.server) == bool(options.url):
        raise UsageError("give the server's command after '--', or --url URL")
    access = access_to_url(options)
    calls = _calls(options.call, from_capture=bool(options.capture))
    recorded_plan = _recorded(options.capture, calls) if options.capture else None
    with signals_interrupt(), tempfile.TemporaryDirectory(prefix="mcpspy-verify-") as folder:
        return _verified(options, access, folder, calls, recorded_plan)


def _verified(
    options: argparse.Namespace, access: Access, folder: str, calls: Mapping[str, Any], plan: "SessionPlan | None"
) -> int:
    from mcpspy.contract.verify.launch import orphans_adopted
    from mcpspy.contract.verify.proof import as_json, found_out, proof, runs_of, text

    with orphans_adopted(), _bench(options, access, folder) as bench:
        plan = plan or found_out(bench.connect, options.timeout, calls)
        with ProgressBar("verifying", runs_of(bench)) as bar:
            done = proof(bench, plan, bar.advance)
    server = shown(options.url) if options.url else os.path.basename(options.server[0])
    wrapper = "mcpspy proxy" if options.url else "mcpspy wrap"
    if options.through:
        wrapper = shown(options.through) if options.url else shlex.split(options.through)[0]
    server, wrapper = printable(server, 200), printable(wrapper, 200)
    print((as_json if options.json else text)(done, server, wrapper), end="")
    return 0 if done.transparent else 1


def _bench(options: argparse.Namespace, access: Access, folder: str) -> "StdioBench | HttpBench":
    from mcpspy.contract.verify.http import HttpBench
    from mcpspy.contract.verify.stdio import StdioBench
    from mcpspy.process.child import environment
    from mcpspy.transport.http_client import parsed_header, reach

    environ = environment()
    if options.url:
        headers = dict(parsed_header(header) for header in options.header)
        for url in filter(None, (options.url, options.through)):
            reach(url, access if url == options.url else Access())
        return HttpBench(options.url, options.through, headers, environ, folder, options.timeout, access)
    through = _words(options.through) if options.through else [
        sys.executable, "-P", "-m", "mcpspy", "wrap", "--capture-dir", folder, "--"
    ]  # fmt: skip
    return StdioBench(options.server, through, environ, folder, options.timeout)


def _words(command: str) -> list[str]:
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--through cannot be read as a command line: {error}") from None
    if not found:
        raise UsageError("--through needs a command, such as 'mcpspy wrap --'")
    return found


def _recorded(path: str, calls: Mapping[str, Any]) -> "SessionPlan":
    from mcpspy.contract.verify.session import recorded
    from mcpspy.replay.script import load

    return recorded(load(existing_path(path), say), calls)


def _calls(named: Sequence[str], *, from_capture: bool) -> dict[str, Any]:
    """Return the tools of `--call` with their arguments."""
    found = {}
    for text in named:
        name, equals, value = text.partition("=")
        if equals and from_capture:
            raise UsageError(f"--call {name!r} takes no arguments with --capture, which has them")
        try:
            found[name] = parsed(value) if equals else {}
        except ValueError as error:
            raise UsageError(f"--call {name!r}: the arguments are not JSON: {error}") from None
        if not isinstance(found[name], dict):
            raise UsageError(
                f'--call {name!r}: the arguments must be a JSON object, such as {name}=\'{{"city":"Oslo"}}\''
            )
    return found
