"""The relay of `mitm`: mitmproxy between clients and the servers that they connect to.

Only this module, `addon` and `layers` import mitmproxy (the extra `mcpspy[mitm]`; version 11 on Python 3.11, version 12
and later elsewhere). They use only the parts that forward: no script, view or store.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import mitmproxy.proxy.server  # type: ignore[import-not-found]
from mitmproxy import certs
from mitmproxy.addons import (  # type: ignore[import-not-found]
    core,
    disable_h2c,
    next_layer,
    proxyserver,
    tlsconfig,
    upstream_auth,
)
from mitmproxy.master import Master  # type: ignore[import-not-found]
from mitmproxy.options import Options  # type: ignore[import-not-found]
from mitmproxy.proxy.mode_specs import ProxyMode  # type: ignore[import-not-found]

from mcpspy.errors import UsageError
from mcpspy.process.ports import on_ending_signal
from mcpspy.recording.recording import Clock, Recording
from mcpspy.relay.live_gate import LiveGate
from mcpspy.relay.mitm import layers
from mcpspy.relay.mitm.addon import Interceptor, MitmSettings
from mcpspy.relay.mitm.authority import BASENAME, Authority, write_bundle
from mcpspy.secrets.redactor import shown

if TYPE_CHECKING:
    from mcpspy.gate.compiled import Answerers

MODES = ("regular", "upstream", "reverse", "socks5", "local")
_FOR_EVER = 10 * 365 * 86400  # seconds that a connection may be idle; streams have no time limit (H-06)
_KEY_SIZE = 2048

__all__ = ["MODES", "MitmSettings", "make", "run", "target"]


def make(authority: Authority) -> None:
    """Create the authority unless it exists, and restrict its modes. Raises UsageError if it cannot be used."""
    folder = Path(authority.folder)
    try:
        authority.protect()
        if not authority.exists():
            with TemporaryDirectory(dir=folder) as draft:
                certs.CertStore.create_store(Path(draft), BASENAME, _KEY_SIZE, "mcpspy", "mcpspy")
                authority.adopt(draft)
        authority.protect()
        certs.CertStore.from_store(folder, BASENAME, _KEY_SIZE)
    except OSError as error:
        raise UsageError(f"cannot use the authority in {folder}: {error.strerror or error}") from None
    except (ValueError, TypeError):  # TypeError: the key has a password
        raise UsageError(f"the authority in {folder} is damaged: move it away, and a new one is made") from None


def target(mode: str) -> tuple[str, int] | None:
    """Return the host and port of a reverse mode; None for other modes. Raises UsageError if the mode is invalid."""
    name = mode.partition(":")[0]
    try:
        if name not in MODES:
            raise ValueError("there is no mode of that name")
        spec = ProxyMode.parse(mode)
    except ValueError as error:
        modes = "regular, upstream:URL, reverse:URL (without a path), socks5, local or local:PROGRAM"
        if "@" in mode:
            where = "put it with its URL into https_proxy, and give --mode upstream"
            raise UsageError(f"--mode {shown(mode)!r} cannot hold a password: {where}") from None
        raise UsageError(f"--mode {mode!r} cannot be used ({error}); the modes are {modes}") from None
    return spec.address if name == "reverse" else None


async def run(
    settings: MitmSettings,
    authority: Authority,
    begin: Callable[[str, Clock], Recording],
    ready: Callable[[int | None], None],
    say: Callable[[str], None],
    gates: list[dict[str, Any]] | None = None,
    answerers: "Answerers | None" = None,
    control: bool = False,
) -> None:
    """Relay until a signal is received.

    `ready` gets the port of the listener, or None in a mode without one. `gates` are the compiled gates of a file; each
    server counts its own matches. With `control`, viewers may set other gates. Raises UsageError if it cannot start.
    """
    gate = partial(LiveGate, gates or (), answerers or {}, control=control) if gates or control else None
    make(authority)
    with TemporaryDirectory(prefix="mcpspy-") as folder:  # for this process only: others may trust other servers
        trusted = os.path.join(folder, "trusted.pem")
        write_bundle(trusted, [settings.access.ca] if settings.access.ca else [])
        certificate = settings.access.write_pair(os.path.join(folder, "client.pem"))
        await _relay(settings, authority, trusted, certificate, begin, ready, say, gate)


async def _relay(
    settings: MitmSettings,
    authority: Authority,
    trusted: str,
    certificate: str | None,
    begin: Callable[[str, Clock], Recording],
    ready: Callable[[int | None], None],
    say: Callable[[str], None],
    gate: Callable[[Callable[[str], None]], LiveGate] | None,
) -> None:
    """Relay; `trusted` is a file with the certificates to verify servers with, `certificate` that of the client."""
    interceptor = Interceptor(settings, begin, ready, say, gate)
    logging.getLogger().addHandler(interceptor.bugs)
    master = Master(
        Options(
            confdir=authority.folder,
            mode=[settings.mode],
            listen_host=settings.host,
            listen_port=settings.port,
            allow_hosts=settings.hosts.patterns,
            ssl_insecure=settings.access.insecure,
            client_certs=certificate,
            ssl_verify_upstream_trusted_ca=trusted,
        )
    )
    master.addons.add(core.Core(), disable_h2c.DisableH2C(), next_layer.NextLayer(), tlsconfig.TlsConfig())
    master.addons.add(proxyserver.Proxyserver(), interceptor)
    if settings.login:
        master.addons.add(upstream_auth.UpstreamAuth())  # after ours, which must not record it
        master.options.update(upstream_auth=settings.login)
    master.options.update(keep_host_header=True)  # a reverse mode checks the client's Host
    if "tcp_timeout" in master.options:  # since 12.2.1
        master.options.update(tcp_timeout=_FOR_EVER)
    else:
        mitmproxy.proxy.server.TCP_TIMEOUT = _FOR_EVER
    layers.install(gated=gate is not None)
    on_ending_signal(asyncio.get_running_loop(), master.shutdown)
    try:
        await master.run()
    finally:
        interceptor.end()
    if interceptor.failure:
        raise interceptor.failure
