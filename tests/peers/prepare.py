"""Build the environments of the real peers under `.peers/`, and name the commands that run them.

It runs with any Python from 3.11 on and only needs the standard library. An environment is kept if its stamp matches
the current requirement files. The others are built again, all at the same time.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import venv
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ENVIRONMENTS = os.path.join(os.path.dirname(os.path.dirname(HERE)), ".peers")
PACKAGES = {
    "python1": ["requirements.txt"],
    "python2": ["requirements.txt"],
    "node": ["package.json", "package-lock.json"],
    "mitm": ["requirements.txt", os.path.join("..", "..", "..", "pyproject.toml")],  # ourselves, with mitmproxy
}
SDKS = ["python1", "python2", "node"]
NODE = 20
"""The oldest major version of Node that runs the Node packages and the programs of the tests."""


def python(env_name):
    """Return the interpreter of a Python environment: `python1`, `python2` or `mitm`."""
    return os.path.join(ENVIRONMENTS, env_name, "Scripts" if os.name == "nt" else "bin", "python")


def node_modules():
    """Return the folder of the Node packages."""
    return os.path.join(ENVIRONMENTS, "node", "node_modules")


def client(sdk, *options):
    """Return an SDK client's argv. Append `--` and a server's argv, or `--http` (`--sse`, `--ws`) and a URL."""
    return [*_program(sdk, "client"), *options]


def server(sdk, *options):
    """Return an SDK server's argv. With `--http` or `--sse` a Python server prints the port that it listens on."""
    return [*_program(sdk, "server"), *options]


def lister(sdk, count):
    """Return the argv of an SDK client that lists the tools `count` times. Append a server's argv."""
    program = "lister.py" if sdk.startswith("python") else os.path.join("node", "lister.mjs")
    return ["node" if sdk == "node" else python(sdk), os.path.join(HERE, program), str(count)]


def answers(sdk, calls):
    """Return the argv of an SDK client that makes calls, a JSON array of [tool, arguments]. Append a server's argv."""
    program = "answers.py" if sdk.startswith("python") else os.path.join("node", "answers.mjs")
    return ["node" if sdk == "node" else python(sdk), os.path.join(HERE, program), calls]


def caller(count, *where):
    """Return the argv of a client that calls a tool `count` times with one progress token.

    `where` is `--` and a server's argv, or a URL.
    """
    return [python("python1"), os.path.join(HERE, "python1", "caller.py"), str(count), *where]


def talker(transport, *where):
    """Return the argv of a client that calls `echo` with each line of stdin and prints the results.

    `where` is a URL, or for the transport `stdio` a server's argv.
    """
    return [python("python1"), os.path.join(HERE, "python1", "talker.py"), transport, *where]


def lists(listings):
    """Return the argv of a server without an SDK that answers with the listings of a JSON array in turn."""
    return [sys.executable, os.path.join(HERE, "lists.py"), listings]


def everything(transport="stdio"):
    """Return the argv of the reference server with all features. `streamableHttp` and `sse` take the port from PORT."""
    return [
        "node",
        os.path.join(node_modules(), "@modelcontextprotocol", "server-everything", "dist", "index.js"),
        transport,
    ]


def mcporter():
    """Return the path of mcporter, a command-line client."""
    return os.path.join(node_modules(), ".bin", "mcporter")


def mem0(*url):
    """Return the argv of the scripted HTTP+SSE session: its server, which prints its port, or with a URL its client."""
    return [sys.executable, os.path.join(HERE, "field", "mem0.py"), *url]


def tap(folder):
    """Return the argv of the byte tap that writes into `folder`. Append `--` and a command's argv."""
    return [sys.executable, os.path.join(HERE, "tap.py"), str(folder)]


def ready(name):
    """Return whether the environment was built from the current requirement files."""
    try:
        with open(_stamp(name)) as stamp:
            return stamp.read() == _fingerprint(name)
    except FileNotFoundError:
        return False


def _program(sdk, role):
    if sdk == "node":
        return ["node", os.path.join(HERE, "node", f"{role}.mjs")]
    return [python(sdk), os.path.join(HERE, sdk, f"{role}.py")]


def _stamp(name):
    return os.path.join(ENVIRONMENTS, name, "stamp")


def _fingerprint(name):
    digest = hashlib.sha256()
    if name != "node":
        digest.update(repr(sys.version_info[:3]).encode())
    for file_name in PACKAGES[name]:
        with open(os.path.join(HERE, name, file_name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def _run(argv, cwd=None):
    done = subprocess.run(argv, cwd=cwd, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}\nexited with {done.returncode}\n{done.stdout}{done.stderr}")


def _build_python(name, folder):
    ours = importlib.util.find_spec("pip") is not None  # Debian has pip in a separate package
    venv.create(folder, with_pip=not ours)  # installing pip takes 4 s
    pip = [sys.executable, "-m", "pip", "--python", folder] if ours else [python(name), "-m", "pip"]
    requirements = os.path.join(HERE, name, "requirements.txt")
    options = ["--quiet", "--disable-pip-version-check", "--no-compile"]  # most modules are never imported
    _run([*pip, "install", *options, "-r", requirements], cwd=os.path.dirname(ENVIRONMENTS))


def _build_node(folder):
    os.makedirs(folder)
    for file_name in PACKAGES["node"]:
        shutil.copy(os.path.join(HERE, "node", file_name), folder)
    _run([shutil.which("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder)


def without_node():
    """Return why programs for Node cannot be run, or None."""
    if shutil.which("node") is None:
        return "node is not on PATH"
    done = subprocess.run(["node", "--version"], check=False, capture_output=True, text=True)
    version = re.match(r"v(\d+)\S*", done.stdout)
    if not version or int(version[1]) < NODE:
        return f"this is Node {version[0] if version else 'of an unknown version'}; the tests need {NODE} or newer"
    return None


def build(name):
    """Build one environment if it is not ready. Return `ready`, `built`, `skipped: why` or `failed: why`."""
    if ready(name):
        return "ready"
    if name == "node" and (why := "npm is not on PATH" if shutil.which("npm") is None else without_node()):
        return f"skipped: {why}"
    folder = os.path.join(ENVIRONMENTS, name)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        if name == "node":
            _build_node(folder)
        else:
            _build_python(name, folder)
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        return f"failed: {error}"
    with open(_stamp(name), "w") as stamp:
        stamp.write(_fingerprint(name))
    return "built"


def main():
    with ThreadPoolExecutor() as pool:
        outcomes = dict(zip(PACKAGES, pool.map(build, PACKAGES), strict=True))
    for name, outcome in outcomes.items():
        print(f"{name}: {outcome}")
    words = {outcome.partition(":")[0] for outcome in outcomes.values()}
    return 1 if "failed" in words or ("skipped" in words and os.environ.get("CI") == "true") else 0


if __name__ == "__main__":
    sys.exit(main())
