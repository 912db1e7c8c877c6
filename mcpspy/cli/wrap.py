"""`mcpspy wrap`: parse its few options without `argparse`, which costs 8 ms, and run the relay.

This module is on the `wrap` path, so it has no heavy imports.
"""

import _signal  # type: ignore[import-not-found]  # `signal` imports `enum`: 7 ms
import os
import sys

from mcpspy.cli.options import WRAP
from mcpspy.errors import SpawnError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

if sys.platform == "win32":
    from mcpspy.process.child_windows import environment, spawn
else:
    from mcpspy.process.child import environment, spawn


def wrap(arguments: list[str]) -> int:
    """Run the command. `arguments` are the words after `wrap`."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # no traceback for Ctrl-C in these first milliseconds
    options, argv = _parsed(iter(arguments))
    if options is None:
        from mcpspy.cli.arguments import Parser

        os.write(1, Parser(WRAP).format_help().encode())
        return 0
    if not argv:
        raise UsageError("wrap needs the server's command after '--': mcpspy wrap -- COMMAND [ARG...]")
    if options["output"] and options["output"].endswith(".gz"):
        from mcpspy.capture.location import refuse_compressed  # only for an error

        refuse_compressed(options["output"])
    if options["output"] and options["folder"]:
        raise UsageError("-o names the file and --capture-dir its directory: give one of them")
    limit = _limit(options["limit"])
    if options["reload"] or options["after"]:
        return _reload(argv, options, limit)
    gates, answerers = None, None
    if options["gate"]:
        from mcpspy.cli.gates import compiled_apart, recorded_answers

        gates = compiled_apart(options["gate"])
        if gates is None:
            return 2
        answerers = recorded_answers(gates)
    environ = environment()
    try:
        server = spawn(argv, environ)
    except SpawnError as error:  # no process could be started; imports may fail too, if no file descriptor is free
        sentence = "".join(character if character.isprintable() else "?" for character in str(error))
        os.write(2, f"mcpspy: {sentence}\n".encode())
        return error.status
    from mcpspy.relay.stdio.relay import run  # while the server starts

    # No finalisation: there is nothing to clean up, and the pumps may still block in a read.
    name, output, folder = options["name"], options["output"], options["folder"]
    status = run(
        server,
        argv,
        environ,
        name=name,
        output=output,
        folder=folder,
        limit=limit,
        check=options["check"],
        gates=gates,
        answerers=answerers,
        control=options["control"],
    )
    os._exit(status)


def _parsed(words: "Iterator[str]") -> "tuple[dict[str, Any] | None, list[str]]":
    """Return the values of the options, and the command of the server; None instead of values if the help is wanted.

    The options end at the word `--`, or before the first word without a dash: the MCP Inspector with `--cli` removes
    each `--` from the command that it starts. Choices and converters are not known here: the table has none.
    """
    known = WRAP.named_options
    found: dict[str, Any] = {it.dest: [] if it.many else it.default for it in WRAP.options}
    for word in words:
        if word == "--":
            break
        if not word.startswith("-"):
            return found, [word, *words]
        option = known.get(word)
        if option is WRAP.help:
            return None, []
        if option is not None and not option.placeholder:
            found[option.dest] = option.const
            continue
        name, equals, value = word.partition("=")
        option = known.get(name)
        if option is None or not option.placeholder:
            raise UsageError(_unknown(word))
        chosen = value if equals else next(words, None)
        if not chosen or chosen == "--":
            raise UsageError(f"{name} needs a value; see 'mcpspy wrap --help'")
        if option.many:
            found[option.dest].append(chosen)
        else:
            found[option.dest] = chosen
    return found, list(words)


def _reload(argv: list[str], options: "dict[str, Any]", limit: int | None) -> int:
    """Run the relay that replaces the server when files change."""
    check_reload(options["reload"], options["after"], gate=options["gate"] is not None)
    from mcpspy.relay.reload.relay import run

    name, output, folder, after_idle = options["name"], options["output"], options["folder"], bool(options["after"])
    status = run(
        argv,
        environment(),
        options["reload"],
        name=name,
        output=output,
        folder=folder,
        limit=limit,
        check=options["check"],
        after_idle=after_idle,
    )
    os._exit(status)


_AFTER = ("idle",)


def check_reload(paths: list[str], after: str | None, *, gate: bool) -> None:
    """Raise UsageError if these paths cannot be watched, or if other options conflict."""
    from importlib.util import find_spec  # only these options need the imports

    from mcpspy.cli.installation import missing
    from mcpspy.text import printable

    if not paths:
        raise UsageError("--reload-after needs --reload PATH: which files to watch")
    if sys.platform == "win32":
        raise UsageError("--reload works on Linux and macOS only")
    if after is not None and after not in _AFTER:
        raise UsageError(f"--reload-after takes 'idle' (wait for running calls), not {printable(after, 60)!r}")
    if gate:
        raise UsageError("--reload and --gate cannot be used together: give one of them")
    for path in paths:
        if not os.path.exists(path):
            raise UsageError(f"--reload {printable(path, 1000)}: no such file or directory")
    if find_spec("watchfiles") is None:
        raise UsageError(missing("'mcpspy wrap --reload' needs", "watchfiles", "reload"))


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    from mcpspy.text import capture_limit

    return capture_limit(text)


def _unknown(word: str) -> str:
    from mcpspy.text import suggestion

    hint = suggestion(word.partition("=")[0], WRAP.named_options, "see 'mcpspy wrap --help'")
    return f"wrap has no option {word!r}; {hint}"
