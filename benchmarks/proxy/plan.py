"""The setup of the benchmark: the upstream, the proxies in front of it, the numbers of rounds and samples.

Only the measured proxy runs on the last core. The driver and the upstream share the first core. This is the same for
every variant.
"""

import gzip
import os
import shutil
import subprocess
from dataclasses import dataclass
from random import Random

from benchmarks.relay.captures import Log
from benchmarks.relay.figures import Rounds
from tests.peers.prepare import build, python

DIRECT, NGINX, MITM, PROXY = "direct", "nginx", "mitmdump", "proxy"

SOURCES = os.path.dirname(os.path.abspath(__file__))
ADDON = """
def responseheaders(flow):
    flow.response.stream = True
"""
NGINX_CONF = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr crit;
events {{ worker_connections 1024; }}
http {{
    access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; keepalive_requests 100000000;
    fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
    upstream server {{ server 127.0.0.1:{upstream}; keepalive 128; keepalive_requests 100000000; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://server; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_buffering off; proxy_read_timeout 1h;
        }}
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of the measurement. The defaults are the minimum for published figures."""

    rounds: int = 5
    samples: int = 3000
    """Round trips, and event streams."""
    warmups: int = 500
    load_seconds: int = 5
    big_bodies: int = 30
    """Bodies of 8 MB per round."""
    exchanges: int = 10_000
    """Calls between the two measurements of memory."""
    open_streams: int = 100
    idle: int = 360
    """Seconds without an event on a stream."""
    seconds: float = 120
    """The time limit of one run of one variant, without `idle`."""


QUICK = Scale(
    rounds=1, samples=50, warmups=10, load_seconds=1, big_bodies=1, exchanges=100, open_streams=5, idle=1, seconds=30
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The programs of one run of the benchmark. They write all files to `folder`."""

    scale: Scale
    folder: str
    mcpspy: str
    """The path of the script."""
    cores: tuple[int, int]
    """The core of driver and upstream, and the core of the proxy."""
    big: bytes
    """The JSON body that the upstream sends in gzip."""

    @property
    def capture(self) -> str:
        """The path of the capture, which is removed after each run."""
        return os.path.join(self.folder, "capture.jsonl")

    @property
    def environ(self) -> dict[str, str]:
        """The environment with a temporary home, because mcpspy and mitmdump store keys there."""
        return {"PATH": os.environ["PATH"], "HOME": self.folder}

    @property
    def upstream(self) -> list[str]:
        """The command of the server, which prints its port."""
        return [os.path.join(self.folder, "server"), os.path.join(self.folder, "big.gz")]

    def variants(self) -> list[str]:
        """Return the variants that can run on this machine, in the order of each round."""
        present = {NGINX: shutil.which("nginx"), MITM: os.path.exists(mitmdump())}
        return [DIRECT, *(variant for variant, there in present.items() if there), PROXY]

    def empty(self) -> Rounds:
        """Return an empty list of figures for every variant."""
        return {variant: [] for variant in self.variants()}

    def command(self, variant: str, port: int, upstream: int) -> list[str]:
        """Return the command that listens on `port` and forwards to `upstream`, both on loopback."""
        url = f"http://127.0.0.1:{upstream}"
        if variant == NGINX:
            path = self._write("nginx.conf", NGINX_CONF.format(folder=self.folder, port=port, upstream=upstream))
            return ["nginx", "-p", self.folder, "-e", "stderr", "-c", path]
        if variant == MITM:
            listen = ["--listen-host", "127.0.0.1", "--listen-port", str(port)]
            return [mitmdump(), "-q", "--mode", f"reverse:{url}", *listen, "-s", self._write("stream.py", ADDON)]
        return [self.mcpspy, "proxy", "--listen", f"127.0.0.1:{port}", "-o", self.capture, f"{url}/mcp"]

    def log(self, variant: str) -> Log | None:
        """Return the recording of a variant, complete once the variant has ended; None if it records nothing."""
        return Log(self.capture) if variant == PROXY else None

    def _write(self, name: str, text: str) -> str:
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path


def prepare(scale: Scale, folder: str, mcpspy: str) -> Plan:
    """Build the upstream and its body. Raises CalledProcessError or OSError if there is no C compiler."""
    allowed = os.sched_getaffinity(0)
    plan = Plan(scale, folder, mcpspy, (min(allowed), max(allowed)), _big())
    subprocess.run(
        ["cc", "-O2", "-Wall", "-pthread", "-o", plan.upstream[0], os.path.join(SOURCES, "server.c")],
        check=True,
        timeout=60,
    )
    with open(plan.upstream[1], "wb") as file:
        file.write(gzip.compress(plan.big, 6, mtime=0))
    return plan


def install_mitmdump() -> None:
    """Make the environment of the tests that has mitmproxy, unless it exists. Raises OSError."""
    outcome = build("mitm")
    if outcome.startswith("failed"):
        raise OSError(outcome)


def mitmdump() -> str:
    """Return the path of mitmdump in that environment."""
    return os.path.join(os.path.dirname(python("mitm")), "mitmdump")


def _big() -> bytes:
    """Return a tool's result of 8 MB: a table of numbers and words, which gzip compresses to a sixth."""
    random = Random(1)  # noqa: S311 (the same body for every variant)
    words = ("rain", "snow", "wind", "clear", "fog")
    row = '{"station":%d,"value":%.3f,"kind":"%s","ok":true}'
    rows = (row % (random.randrange(10_000), random.random(), random.choice(words)) for _ in range(146_000))
    return (
        b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"rows":[%b]}}}' % ",".join(rows).encode()
    )
