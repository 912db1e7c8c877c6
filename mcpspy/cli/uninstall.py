"""`mcpspy uninstall`: take mcpspy away from the servers of an MCP client."""

import argparse

from mcpspy.cli.install import changed_servers, check_servers, declare, existing, print_changes, print_plan
from mcpspy.clients import routes
from mcpspy.clients.drafts import uninstalls, write
from mcpspy.clients.machine import Machine
from mcpspy.clients.plan import CANNOT
from mcpspy.clients.table import client


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = "Remove mcpspy from the servers in an MCP client's configuration."
    parser.add_argument("client", metavar="CLIENT", help="cursor, claude-desktop, claude-code, vscode, …")
    declare(parser, "unwrap")


def run(options: argparse.Namespace) -> int:
    """Undo what `install` did, byte for byte where nobody else has changed the file since."""
    chosen, machine = client(options.client), Machine.here()
    drafts = uninstalls(existing(chosen, machine, options.scope), machine, options.servers, routes.load())
    check_servers(drafts, options.servers, chosen)
    print_plan(drafts)
    if options.dry_run:
        print_changes(drafts)
        return 0
    write(drafts)
    if not any(draft.changes for draft in drafts):
        print("nothing to change")
    else:
        print(f"\n{changed_servers(drafts)} of {chosen.name} now without mcpspy")
        print(f"now: {chosen.advice.format(name=chosen.name)}")
    return 1 if any(step.action == CANNOT for draft in drafts for step in draft.steps) else 0
