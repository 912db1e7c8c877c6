"""`python -m mcpspy.gate_files FILE --transport T`: print the gates as JSON, or one line on stderr and exit with 2.

`wrap` runs this before it starts the server.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from mcpspy.errors import GateError
from mcpspy.gate_files.file import TRANSPORTS, compile_file
from mcpspy.text import printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile one file; `arguments` are those of the command line by default. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m mcpspy.gate_files", description="Compile a gate file to JSON.")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--transport", choices=TRANSPORTS, required=True, help="what carries the frames")
    options = parser.parse_args(arguments)
    try:
        print(json.dumps(compile_file(options.file, options.transport)))
    except GateError as error:
        print(f"mcpspy: {printable(str(error), 2000)}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
