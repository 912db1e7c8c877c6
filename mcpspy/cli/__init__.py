"""The command line: one module per command, imported only when that command runs.

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

        if sys.stdout is None:
            raise UsageError("there is no standard output to write to")
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        status = run(arguments)
        sys.stdout.flush()  # a failure can still be reported here
        return status
    except McpspyError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `mcpspy show … | head`
        _forget_output()
        return 141
    except OSError as error:  # reading a file raises its own errors, so this one comes from the output
        _forget_output()
        return _fail(f"cannot write the output: {error.strerror}")


def _fail(sentence: str, code: int = 2) -> int:
    from mcpspy.text import printable

    print(f"mcpspy: {printable(sentence, 2000)}", file=sys.stderr)
    return code


def _forget_output() -> None:
    """Discard buffered output, which the interpreter would otherwise write again at exit, with an error message."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
