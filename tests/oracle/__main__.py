"""The command line of the oracle; `scripts/oracle` runs it with the project's environment."""

import argparse
import sys
from pathlib import Path

from tests.oracle import frozen

DESCRIPTION = """\
Compare every output of mcpspy with the frozen one: of commands, exports, shared pages, viewers and agents, for the
captures in captures/, the sessions of tests/rules/sessions, and 300 damaged and hostile captures; and help, completion,
errors, and the bytes that lock, verify, doctor and replay send. The exit status is 1 if something differs.
"""


def main() -> int:
    """Compare, explain, save or renew."""
    parser = argparse.ArgumentParser("scripts/oracle", description=DESCRIPTION)
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help="only cases that begin with this: golden, alone, spoiled/017"
    )
    parser.add_argument("--diff", action="store_true", help="also show how the outputs differ, in the form of diff")
    parser.add_argument("--renew", action="store_true", help="freeze the outputs as they are now")
    parser.add_argument("--save", metavar="DIR", type=Path, help="write the outputs into DIR, and compare nothing")
    options = parser.parse_args()

    def wanted(case: str) -> bool:
        return not options.cases or case.startswith(tuple(options.cases))

    if options.save:
        frozen.save(options.save, wanted)
        return 0
    now, found = frozen.compare(wanted)
    for line in found:
        print(line)
    if options.diff and found:
        for line in frozen.explained(sorted({line.partition(":")[0] for line in found})):
            print(line)
    if options.renew:
        kept = {at: number for at, number in frozen.read().items() if at in now or not wanted(at[0])}
        frozen.write(kept | now)  # in the order in which they were
    print(f"{len(now)} outputs, {len(found)} {'renewed' if options.renew else 'different'}")
    return 1 if found and not options.renew else 0


if __name__ == "__main__":
    sys.exit(main())
