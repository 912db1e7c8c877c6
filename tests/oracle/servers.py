"""The bytes that `lock`, `verify`, `doctor` and `replay` send to a mock server of a golden capture."""

import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.oracle.commands import OUT, run

SENT = Path("sent")
"""A directory with what each server received, in a file of its own."""
CASES = {
    "lock 2024-11-05": f"lock -o {OUT} -- {{}}",
    "lock 2025-11-25": f"lock -o {OUT} -- {{}}",
    "lock 2026-07-28": f"lock -o {OUT} -- {{}}",
    "verify 2025-11-25": "verify -- {}",
    "replay 2024-11-05": "replay golden/features-node-2024-11-05.jsonl -- {}",
    "replay 2025-03-26": "replay golden/features-python2-2025-03-26.jsonl -- {}",
    "replay 2025-11-25": "replay golden/features-python1-2025-11-25.jsonl -- {}",
    "replay 2026-07-28": "replay golden/features-python2-2026-07-28.jsonl -- {}",
    "replay a part 2025-11-25": "replay golden/features-node-2025-11-25.jsonl --read-only -- {}",
    "doctor 2025-11-25": "doctor cursor",
}
"""By name, which ends with the revision of the mock server: a command, with `{}` for the server."""
SERVERS = {
    "2024-11-05": "features-node-2024-11-05",
    "2025-03-26": "features-python2-2025-03-26",
    "2025-11-25": "features-python1-2025-11-25",
    "2026-07-28": "features-python2-2026-07-28",
}
"""Golden captures, by revision."""


def sent() -> Iterator[tuple[str, bytes]]:
    """Yield, for each case, the exit status and the received bytes of each server, sorted."""
    script = Path("serve")
    SENT.mkdir()
    Path("home/.cursor").mkdir()
    for name, command in CASES.items():
        mock = f"{shlex.quote(sys.executable)} -m mcpspy mock golden/{SERVERS[name[-10:]]}.jsonl"
        root = shlex.quote(str(Path(__file__).parent.parent.parent))
        script.write_text(f"#!/bin/sh\ncd {os.getcwd()}\nexport PYTHONPATH={root}\ntee {SENT}/$$ | {mock}\n")
        script.chmod(0o755)
        server = {"command": str(script.absolute())}
        Path("home/.cursor/mcp.json").write_text(json.dumps({"mcpServers": {"one": server}}))
        status = run(command.replace("{}", server["command"])).partition(b"\n")[0]
        received = sorted(path.read_bytes() for path in SENT.iterdir())
        yield name, b"\n-- a server\n".join([status, *received])
        for path in SENT.iterdir():
            path.unlink()
