"""A certificate authority, and the certificates and keys of a server and of clients."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from tests import limits

HOST = "mcp.example.test"
PASSPHRASE = "correct horse"
_KEY = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"


@dataclass
class TestAuthority:
    """The files in a directory: `NAME.pem` and `NAME.key` for `ca`, `server`, `client` and `other`.

    `locked.key` is the key of `client` with a passphrase, and `pair.pem` has both parts of `client`.
    """

    __test__ = False
    folder: Path
    host: str = HOST
    """The name in the certificate of the server."""

    def __post_init__(self):
        self._openssl(f"req -x509 {_KEY} -subj /CN=authority -out ca.pem -keyout ca.key")
        self._openssl(f"req -x509 {_KEY} -subj /CN=other -out other.pem -keyout other.key")
        for name, host in (("server", self.host), ("client", "client")):
            names = f"-addext subjectAltName=DNS:{host}"
            signed = "-CA ca.pem -CAkey ca.key"
            self._openssl(f"req -x509 {_KEY} -subj /CN={host} {names} {signed} -out {name}.pem -keyout {name}.key")
        self._openssl("pkcs8 -topk8 -in client.key -out locked.key -passout", f"pass:{PASSPHRASE}")
        pair = self["client.pem"], self["client.key"]
        (self.folder / "pair.pem").write_text("".join(Path(it).read_text(encoding="ascii") for it in pair))

    def __getitem__(self, name):
        return str(self.folder / name)

    def _openssl(self, words, *more):
        command = ["openssl", *words.split(), *more]
        done = limits.run(command, cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def tls(self, *, wants_client=False, version=ssl.TLSVersion.TLSv1_3, protocols=("http/1.1",)):
        """Return what the server needs."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self["server.pem"], self["server.key"])
        context.maximum_version = version
        context.set_alpn_protocols(protocols)
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self["ca.pem"])
        return context
