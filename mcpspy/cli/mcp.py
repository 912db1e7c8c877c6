"""`mcpspy mcp`: an MCP server over captures, for agents."""

import argparse
import os
import signal
import sys

from mcpspy.capture.location import directory
from mcpspy.cli.installation import missing
from mcpspy.cli.output import say
from mcpspy.errors import UsageError
from mcpspy.moments import use_utc


def run(options: argparse.Namespace) -> int:
    """Serve until the client closes stdin."""
    folder = directory(options.directory, os.environ)
    if options.directory and not os.path.isdir(folder):
        raise UsageError(f"{options.directory} is not a directory; 'mcpspy mcp' takes the directory of the captures")
    use_utc()  # agents get all moments in UTC, so a filter without a time zone means UTC
    try:
        from mcpspy.agent.server import serve
    except ModuleNotFoundError as error:
        raise UsageError(missing("'mcpspy mcp' needs", error.name, "agent")) from None
    if sys.stdin is None or sys.stdin.isatty():
        say("serving MCP on stdin; 'mcpspy install CLIENT --agent' adds this to a client")
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # the SDK reads stdin in a thread, which an exception cannot interrupt
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve(folder)
    return 0
