"""Run `mcpspy` and write down what it imports, opens and compiles: in which thread, and when.

    python -I -S late.py LOG PATHS MARK ARGUMENT...

PATHS are the directories of modules. A relay is ready when it opens a file with MARK in its name, which is its capture,
or prints a text with MARK. A line of LOG is `early` or `late`, `main` or `thread`, the kind of the event, and a detail.

The program itself imports nothing more than Python does at its start.
"""

import builtins
import os
import sys

KINDS = {"import", "open", "compile", "exec"}


def program(log, mark):
    """Return the arguments of Python for a relay whose events go to the file `log`."""
    import sysconfig  # not in the program

    paths = [
        os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
        sysconfig.get_path("purelib"),
    ]
    return ("-I", "-S", __file__, str(log), os.pathsep.join(paths), mark)


def unwanted(log, folder):
    """Return the events after the relay was ready, and all of other threads; files in `folder` may be opened."""
    events = log.read_text().splitlines()
    assert any(event.startswith("late ") for event in events), "the relay was never ready"
    return [it for it in events if not it.startswith("early main ") and not _is_open(it.split(" ", 2)[2], str(folder))]


def _is_open(event, folder):
    """Return whether a file of the session is opened: one in `folder`, the null device, or a descriptor as a file."""
    kind, _, path = event.partition(" ")
    return kind == "open" and (path.startswith(folder) or path == os.devnull or path.isdecimal())


def main(log, paths, mark, *arguments):
    from _thread import get_ident

    fd, first, when = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), get_ident(), ["early"]

    def note(kind, detail):
        thread = "main" if get_ident() == first else "thread"
        os.write(fd, f"{when[0]} {thread} {kind} {detail!s:.200}\n".encode("utf-8", "replace"))

    def ready():
        when[0] = "late"
        note("open", os.devnull)  # shows that it was ready
        if "re" in sys.modules:
            patterns = sys.modules["re"]._compiler
            compile_pattern = patterns.compile
            patterns.compile = lambda *it: (note("pattern", it[0]), compile_pattern(*it))[1]

    def hook(event, arguments):
        if event in KINDS:
            note(event, arguments[0])
            if event == "open" and mark in str(arguments[0]) and when[0] == "early":
                ready()

    def printed(*texts, show=print, **options):
        show(*texts, **options)
        if mark in str(texts) and when[0] == "early":
            ready()

    sys.addaudithook(hook)
    builtins.print = printed
    sys.path[:0] = paths.split(os.pathsep)
    sys.argv = ["mcpspy", *arguments]
    from mcpspy.cli import main

    sys.exit(main())


if __name__ == "__main__":
    main(*sys.argv[1:])
