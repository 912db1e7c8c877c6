"""The command line. The module of a command is imported only when the command runs.

`wrap` starts a server that a client is waiting for, so it imports only what it needs up to the first byte. The other
commands are not time-critical.
"""

import os
import sys

from mcpspy.errors import McpspyError, UsageError


def main() -> int:
    """Run the command line and return the exit status."""
    arguments = sys.argv[1:]
    try:
        if arguments[:1] == ["wrap"]:
            from mcpspy.cli.wrap import wrap

            return wrap(arguments[1:])
        if arguments[:1] == ["__complete"]:
            from mcpspy.cli.complete import complete

            return complete(arguments[1:])
        from mcpspy.cli.commands import run
        from mcpspy.cli.output import guard, prepare_streams

        if sys.stdout is None:
            raise UsageError("there is no standard output to write to")
        prepare_streams()
        guard()
        status = run(arguments)
        sys.stdout.flush()  # a failure can still be reported here
        return status
    except McpspyError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        return _failed(error, arguments)


def _failed(error: OSError, arguments: list[str]) -> int:
    """Report an error of the operating system."""
    from mcpspy.cli.faults import system_error  # imported here: the start of `wrap` does not need these
    from mcpspy.output_file import OutputClosed, WriteError

    if isinstance(error, WriteError):
        _forget_output(1)
    if isinstance(error, OutputClosed):  # `mcpspy show … | head`
        return 141
    return _fail(system_error(error, arguments[0] if arguments else "tui"))


def _fail(sentence: str, code: int = 2) -> int:
    from mcpspy.text import printable

    if sys.stderr is not None:  # `print` would write to stdout
        try:
            print(f"mcpspy: {printable(sentence, 2000)}", file=sys.stderr)
        except OSError:  # the exit status still says that it failed
            _forget_output(2)
    return code


def _forget_output(fd: int) -> None:
    """Discard buffered output, which the interpreter would otherwise write again at exit, with an error message."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, fd)
    os.close(null)
