"""The row about start-up: `wrap` compared with a console script that only spawns the child and waits.

The same pip installs both into the same fresh environment, so the entry script and `site` cost both the same.
"""

import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, files
from statistics import median
from time import perf_counter_ns

from benchmarks.relay.figures import Result, Rounds, Row, Target, added, ratios
from benchmarks.relay.plan import BARE, SOURCES, WRAP, Plan
from benchmarks.relay.processes import Broken, pinned, running
from benchmarks.relay.traffic import ping, prose

CONTROL = "control"
CONTROL_SOURCE = """\
import os
import sys


def main():
    pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
ROOT = os.path.dirname(os.path.dirname(SOURCES))


def startup(plan: Plan) -> Result:
    scripts = install(plan)
    wrap = plan.mcpspy if plan.given else os.path.join(scripts, "mcpspy")
    commands = {
        BARE: plan.server,
        CONTROL: [os.path.join(scripts, "spawn-and-wait"), *plan.server],
        WRAP: plan.wrap(wrap, plan.server),
    }
    took = measure(plan, commands, pin=True)
    free = measure(plan, commands, pin=False)
    quotients = ratios(added(took, WRAP, BARE), added(took, CONTROL, BARE))
    what = "start-up: added first byte, wrap / console script"
    rows = [
        Row(what, quotients, Target(1.6, aim=1.3), (took[CONTROL],)),
        _times("start-up: first byte in ms", took),
        _times("start-up, free-running: first byte in ms", free),
    ]
    return Result(rows, {"start-up: ms": took, "start-up, free: ms": free})


def measure(plan: Plan, commands: dict[str, list[str]], pin: bool) -> Rounds:
    """Return the median of each round, in milliseconds."""
    rounds: Rounds = {variant: [] for variant in commands}
    starts = -(-plan.scale.starts // plan.scale.rounds)
    with pinned(pin):
        for argv in commands.values():
            _first_byte(plan, argv)  # loads the files into memory
        for _ in range(plan.scale.rounds):
            taken: dict[str, list[float]] = {variant: [] for variant in commands}
            for _ in range(starts):
                for variant, argv in commands.items():
                    taken[variant].append(_first_byte(plan, argv))
            for variant, values in taken.items():
                rounds[variant].append(median(values))
    return rounds


def _first_byte(plan: Plan, argv: list[str]) -> float:
    """Return the milliseconds from the spawn to the first byte of the answer to a ping that is already on stdin."""
    request, reply = ping(0, prose(200))
    with running([argv], plan.environ, plan.scale.seconds, first=request) as peer:
        came = peer.read()
        spent = (perf_counter_ns() - peer.started) / 1e6
    if came != reply:
        raise Broken("the first reply came changed")
    return spent


def _times(what: str, rounds: Rounds) -> Row:
    return Row(what, [], text=", ".join(f"{variant} {median(values):.1f}" for variant, values in rounds.items()))


def install(plan: Plan) -> str:
    """Make a fresh environment with the control and with mcpspy from this repository. Return its script directory."""
    place = os.path.join(plan.folder, "environment")
    venv.EnvBuilder(symlinks=True).create(place)
    python = os.path.join(place, "bin", "python")
    wheels = [
        _wheel(
            plan.folder, "spawn_and_wait", {"spawn_and_wait.py": CONTROL_SOURCE}, "spawn-and-wait = spawn_and_wait:main"
        )
    ]
    if not plan.given:
        wheels.append(_wheel_of_repository(plan.folder))
        _copy_orjson(python)
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", *wheels]
    done = subprocess.run(pip, check=False, capture_output=True, text=True, timeout=120)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise Broken("pip could not install the control")
    return os.path.join(place, "bin")


def _wheel_of_repository(folder: str) -> str:
    """Zip the package directly: this needs no build backend, so none has to be downloaded."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        entry = tomllib.load(file)["project"]["scripts"]["mcpspy"]
    sources = {}
    for place, _, names in os.walk(os.path.join(ROOT, "mcpspy")):
        for name in names:
            path = os.path.join(place, name)
            if "__pycache__" not in path:
                with open(path, encoding="utf-8") as file:
                    sources[os.path.relpath(path, ROOT)] = file.read()
    return _wheel(folder, "mcpspy", sources, f"mcpspy = {entry}")


def _wheel(folder: str, name: str, sources: dict[str, str], script: str) -> str:
    about = f"{name}-0.dist-info"
    members = sources | {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: benchmark\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": f"[console_scripts]\n{script}\n",
    }
    record = f"{about}/RECORD"
    path = os.path.join(folder, f"{name}-0-py3-none-any.whl")
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)
        archive.writestr(record, "".join(f"{member},,\n" for member in [*members, record]))
    return path


def _copy_orjson(python: str) -> None:
    """Copy orjson from our environment: it is the only dependency that `wrap` may load while the child starts."""
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"]
    target = subprocess.run(where, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    try:
        members = files("orjson") or []
    except PackageNotFoundError:
        return
    for member in members:
        if member.parts[0] != ".." and "__pycache__" not in member.parts:
            copy = os.path.join(target, member)
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copyfile(str(member.locate()), copy)
