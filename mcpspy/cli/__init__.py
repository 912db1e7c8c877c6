"""The command line: one module for each command, imported only when it is the one.

`wrap` stands in front of a server that a client is waiting for, so its way from here to the first byte imports nothing
that it does not need; the other commands may take their time.
"""

import sys

from mcpspy.errors import Error


def main() -> int:
    """The console script: returns the exit status."""
    arguments = sys.argv[1:]
    try:
        if arguments[:1] == ["wrap"]:
            from mcpspy.cli.wrap import wrap

            return wrap(arguments[1:])
        from mcpspy.cli.commands import run

        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        return run(arguments)
    except Error as error:
        from mcpspy.printable import printable

        print(f"mcpspy: {printable(str(error), 2000)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `mcpspy show … | head`
        return 141
