"""A scripted HTTPS upstream, the real `mcpspy mitm` in front of it, and clients that trust it; tests send all bytes."""

import asyncio
import json
import ssl
import subprocess
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcpspy.errors import NotACapture
from tests import limits
from tests.peers import prepare, warm
from tests.relay.harness import LIMIT, until
from tests.relay.stage import Peer, Stage, stage

MCPSPY = ("-m", "mcpspy")
GATED = str(Path(__file__).with_name("gated_mitm.py"))  # a path: its environment lacks packages of `tests`
needs_mitmproxy = pytest.mark.needs(".peers/mitm")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Create a self-signed certificate for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    names = [str(folder / name) for name in ("cert.pem", "key.pem")]
    limits.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1 -addext"
        f" subjectAltName=IP:127.0.0.1 -out {names[0]} -keyout {names[1]}".split(),
        check=True,
        capture_output=True,
    )
    return names


class Mitm:
    """A running `mcpspy mitm` with its own home directory."""

    def __init__(
        self, home: Path, *options: str, program: tuple[str, ...] = MCPSPY, cold: bool = False, variables=()
    ) -> None:
        """Start the process; with `cold`, a new interpreter rather than a prepared one."""
        self.home = home
        self.environ = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", **dict(variables)}
        self._err = home / "stderr"
        command = [*program, "mitm", "--listen", "127.0.0.1:0", *options]
        with self._err.open("w") as err:
            if warm.CAN and not cold:
                self.process = warm.Child(command, self.environ, err)
            else:
                command = [prepare.python("mitm"), *command]
                self.process = limits.Popen(command, stdout=subprocess.PIPE, stderr=err, text=True, env=self.environ)
        self.url = self.process.stdout.readline().strip()

    @property
    def place(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def authority(self) -> Path:
        return self.home / ".mcpspy" / "ca" / "mitmproxy-ca-cert.pem"

    def said(self) -> str:
        """Return what the process has written to stderr."""
        return self._err.read_text()

    def says(self, *words: str) -> str:
        """Wait for a line on stderr that contains all of these words, and return it."""
        return until(
            lambda: next((line for line in self.said().splitlines() if all(word in line for word in words)), None),
            f"a line with {words}, in {self.said()!r}",
        )

    def captures(self) -> list[Path]:
        return sorted((self.home / ".mcpspy" / "captures").glob("*.jsonl"))

    def run(self, *command: str) -> list[str]:
        """Return the argv that starts a client through this proxy."""
        return [prepare.python("mitm"), "-m", "mcpspy", "run", "--proxy", self.place, "--", *command]

    def end(self) -> None:
        """Send SIGINT, and check the exit status and stderr."""
        if self.process.poll() is None:
            self.process.send_signal(2)
        assert self.process.wait(LIMIT) == 0, self.said()
        assert "Traceback" not in self.said(), self.said()


@contextmanager
def intercepting(home: Path, *options: str, own_authority: bool = False, **popen):
    """Run `mcpspy mitm`, and end it with SIGINT. With `own_authority`, it creates its authority if there is none."""
    if warm.CAN and not own_authority and not (home / ".mcpspy" / "ca").exists():
        warm.give_authority(home)
    mitm = Mitm(home, *options, **popen)
    try:
        assert mitm.url, mitm.said()
        yield mitm
        mitm.end()
    finally:
        mitm.process.kill()
        mitm.process.wait(LIMIT)
        mitm.process.stdout.close()


@dataclass
class Interception(Stage):
    """`mcpspy mitm` between a test's client and its upstream."""

    mitm: Mitm | None = None

    async def connect(self) -> Peer:
        """Open a connection to the proxy."""
        peer = Peer(*await asyncio.open_connection("127.0.0.1", int(self.mitm.place.rpartition(":")[2]), limit=1 << 22))
        self.peers.append(peer)
        return peer

    async def tunnel(self) -> Peer:
        """Open a tunnel through the proxy; the TLS handshake has not started."""
        peer = await self.connect()
        await peer.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % self.upstream)
        assert b" 200 " in await peer.head()
        return peer

    async def client(self, trust: str | None = None, alpn: tuple[str, ...] = ()) -> Peer:
        """Connect a client that trusts the authority, or the certificates in the file `trust`, and offers `alpn`."""
        peer = await self.tunnel()
        tls = ssl.create_default_context(cafile=trust or self.mitm.authority)
        if alpn:
            tls.set_alpn_protocols(alpn)
        await peer.writer.start_tls(tls, server_hostname="127.0.0.1")
        return peer

    async def recorded(self, wanted) -> None:
        """Wait until the capture has a record for which `wanted` is true."""

        def there() -> bool:
            if not self.mitm.captures():
                return False
            (self.path,) = self.mitm.captures()
            try:
                return any(wanted(record) for record in self.records())
            except NotACapture:  # its header is not written yet
                return False

        await asyncio.to_thread(until, there, f"a record; there are {self.mitm.captures()}, {self.mitm.said()!r}")

    async def captured(self) -> list:
        """End the process, and return all records of the capture."""
        await asyncio.to_thread(self.mitm.end)
        (self.path,) = self.mitm.captures()
        return self.records()

    def written(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.mitm.captures())

    def said(self) -> str:
        return self.mitm.said()


@asynccontextmanager
async def interception(home: Path, certificate, *options: str, alpn: tuple[str, ...] = (), **popen):
    """Start the proxy and an upstream with the protocols `alpn`, whose connections the test receives.

    In an option, `{port}` stands for the port of the upstream.
    """
    arrived: asyncio.Queue[Peer] = asyncio.Queue()
    peers: list[Peer] = []

    async def accept(reader, writer):
        peer = Peer(reader, writer)
        peers.append(peer)
        await arrived.put(peer)

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certificate)
    if alpn:
        tls.set_alpn_protocols(alpn)
    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=1 << 22, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    options = [it.replace("{port}", str(port)) for it in options] or ["--allow", "127.0.0.1", "--ca", certificate[0]]
    try:
        with intercepting(home, *options, **popen) as mitm:
            yield Interception(mitm.process, [mitm.url], home, port, arrived, peers, mitm=mitm)
            for peer in peers:
                peer.writer.transport.abort()
            await asyncio.to_thread(mitm.end)
    finally:
        for peer in peers:
            peer.writer.transport.abort()
        server.close()


RELAYS = ["proxy", pytest.param("mitm", marks=needs_mitmproxy)]
"""The relays that `relaying` starts."""


@asynccontextmanager
async def relaying(relay: str, home: Path, certificate, gates=None):
    """Start a relay between the test's clients and its upstream, `proxy` or `mitm`; `gates` are compiled gates."""
    if relay == "proxy":
        started = stage(home, gates=gates)
    else:
        started = interception(home, certificate) if gates is None else gated(home, certificate, gates)
    async with started as there:
        yield there


def gated(home: Path, certificate, gates, **popen):
    """Start the same as `interception`, with compiled gates."""
    return interception(home, certificate, program=(GATED, json.dumps(gates)), **popen)
