"""`mcpspy uninstall`: remove mcpspy from the servers of an MCP client."""

import argparse

from mcpspy.cli.install import changed_servers, check_servers, existing, print_changes, print_plan
from mcpspy.clients import routes
from mcpspy.clients.drafts import agents, uninstalls, write
from mcpspy.clients.places import Machine
from mcpspy.clients.plan import CANNOT
from mcpspy.clients.table import client
from mcpspy.errors import UsageError


def run(options: argparse.Namespace) -> int:
    """Undo what `install` did, byte for byte if the file has not been changed by others since."""
    chosen, machine = client(options.client), Machine.here()
    places = existing(chosen, machine, options.scope)
    if options.agent:
        if options.servers:
            raise UsageError("--agent takes no servers: it removes 'mcpspy mcp' itself")
        drafts = agents(places, machine, routes.load(), None)
    else:
        drafts = uninstalls(places, machine, options.servers, routes.load())
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
