"""The memory and CPU time of a running process, from the kernel."""

import os
import re

from benchmarks.relay.processes import Broken


def resident(pid: int, field: str = "VmRSS") -> float:
    """Return VmRSS (the current memory) or VmHWM (the peak so far) of a process in MB."""
    with open(f"/proc/{pid}/status") as file:
        found = re.search(rf"^{field}:\s+(\d+) kB$", file.read(), re.MULTILINE)
    if found is None:
        raise Broken(f"no {field} in the process's status")
    return int(found[1]) * 1024 / 1e6


def computed(pid: int) -> float:
    """Return the CPU time so far in seconds, user and system, which other programs hardly change."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
