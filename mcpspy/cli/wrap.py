"""`mcpspy wrap`: parse its few options without `argparse`, which costs 8 ms, and run the relay.

This module is on the `wrap` path, so it has no heavy imports.
"""

import _signal  # type: ignore[import-not-found]  # `signal` imports `enum`: 7 ms
import os
import sys

from mcpspy.errors import SpawnError, UsageError

if sys.platform == "win32":
    from mcpspy.process.child_windows import environment, spawn
else:
    from mcpspy.process.child import environment, spawn

HELP = """\
usage: mcpspy wrap [--name NAME] [-o FILE | --capture-dir DIR]
                   [--max-capture SIZE] [--check] [--gate FILE] [--no-control]
                   [--reload PATH]... [--reload-after idle]
                   -- COMMAND [ARG...]

Run COMMAND as an MCP server on stdio, forward every byte unchanged, and record
the traffic.

  client  <-- stdin, stdout, stderr -->  mcpspy wrap  <-- the same -->  COMMAND
                                             |
                                          capture

options:
  -h, --help          show this help message and exit
  --name NAME         name of the server in captures (default: from COMMAND)
  -o FILE             write the capture to FILE. If FILE is a finished
                      capture, replace it; if it is any other file, keep it
                      and use a similar name, which is printed
  --capture-dir DIR   write the capture into DIR (default:
                      $MCPSPY_CAPTURE_DIR, else ~/.mcpspy/captures)
  --max-capture SIZE  continue in a new file at this size, such as 500MB
  --check             print protocol errors to stderr as they happen, one line
                      for each
  --gate FILE         hold, change or drop messages, as the gates in FILE say
                      (TOML, docs/gate.md)
  --no-control        do not let viewers hold or change frames of this session
  --reload PATH       when files below PATH change, replace the server and keep
                      the client connected; may be repeated
  --reload-after idle
                      wait for running calls first, at most 30 seconds

The exit status is that of the server; 127 if COMMAND is not found, 126 if it
cannot be executed.
"""

_OPTIONS = {
    "--name": "name",
    "-o": "output",
    "--output": "output",
    "--capture-dir": "folder",
    "--max-capture": "limit",
    "--gate": "gate",
    "--reload-after": "after",
}
_RELOAD = "--reload"
_FLAGS = ("--check", "--no-control")


def wrap(arguments: list[str]) -> int:
    """Run the command. `arguments` are the words after `wrap`."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # no traceback for Ctrl-C in these first milliseconds
    options: dict[str, str | None] = dict.fromkeys(_OPTIONS.values())
    flags = set()
    watched: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            break
        if word in ("-h", "--help"):
            os.write(1, HELP.encode())
            return 0
        if word in _FLAGS:
            flags.add(word)
            continue
        option, equals, value = word.partition("=")
        if option not in _OPTIONS and option != _RELOAD:
            raise UsageError(_unknown(word))
        chosen = value if equals else next(words, None)
        if not chosen or chosen == "--":
            raise UsageError(f"{option} needs a value; see 'mcpspy wrap --help'")
        if option == _RELOAD:
            watched.append(chosen)
        else:
            options[_OPTIONS[option]] = chosen
    argv = list(words)
    if not argv:
        raise UsageError("wrap needs the server's command after '--': mcpspy wrap -- COMMAND [ARG...]")
    if options["output"] and options["folder"]:
        raise UsageError("-o names the file and --capture-dir its directory: give one of them")
    limit = _limit(options["limit"])
    if watched or options["after"]:
        return _reload(argv, watched, options, limit, check="--check" in flags)
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
        check="--check" in flags,
        gates=gates,
        answerers=answerers,
        control="--no-control" not in flags,
    )
    os._exit(status)


def _reload(
    argv: list[str], paths: list[str], options: "dict[str, str | None]", limit: int | None, *, check: bool
) -> int:
    """Run the relay that replaces the server when files change."""
    from mcpspy.cli.reloading import check_reload

    check_reload(paths, options["after"], gate=options["gate"] is not None)
    from mcpspy.relay.reload.relay import run

    name, output, folder, after_idle = options["name"], options["output"], options["folder"], bool(options["after"])
    status = run(
        argv,
        environment(),
        paths,
        name=name,
        output=output,
        folder=folder,
        limit=limit,
        check=check,
        after_idle=after_idle,
    )
    os._exit(status)


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    from mcpspy.text import capture_limit

    return capture_limit(text)


def _unknown(word: str) -> str:
    if not word.startswith("-"):
        return f"put '--' before the server's command: mcpspy wrap -- {word} ..."
    from difflib import get_close_matches

    near = get_close_matches(word.partition("=")[0], [*_OPTIONS, *_FLAGS, _RELOAD], n=1)
    return f"wrap has no option {word!r}" + (f"; did you mean {near[0]!r}?" if near else "; see 'mcpspy wrap --help'")
