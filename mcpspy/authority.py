"""The certificate authority of `mitm`: where it lies, who may read it, and what makes clients trust it (M-05, M-07).

Whoever has its key can speak for any server to the clients that trust it: so it lies in a directory of the user's own,
and trust is given to single processes, through their environment. Nothing is put into the system's store.

Python's variables *replace* the certificates that a client trusts, so they name a bundle: the ones that it trusts
anyhow, and ours. `mitm` makes the authority itself; nothing here needs mitmproxy.
"""

import contextlib
import hashlib
import os
import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mcpspy.capture.place import home, make_directory
from mcpspy.errors import UsageError

BASENAME = "mitmproxy"
"""How mitmproxy begins the names of its files."""
REPLACING = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
ADDING = "NODE_EXTRA_CA_CERTS"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Authority:
    """The files of one authority, in `folder`, whether they exist or not."""

    folder: str

    @property
    def key(self) -> str:
        """The private key, and the certificate."""
        return os.path.join(self.folder, f"{BASENAME}-ca.pem")

    @property
    def certificate(self) -> str:
        """The certificate that clients have to trust, as PEM."""
        return os.path.join(self.folder, f"{BASENAME}-ca-cert.pem")

    @property
    def bundle(self) -> str:
        """The certificate and those that clients trust anyhow."""
        return os.path.join(self.folder, "bundle.pem")

    def exists(self) -> bool:
        """Whether it has been made."""
        return os.path.isfile(self.key) and os.path.isfile(self.certificate)

    def adopt(self, draft: str) -> None:
        """Take the files of the directory `draft` for its own; the key of a process that was first stays.

        Each appears whole, so that neither two processes nor one that is killed leave halves that do not match.
        """
        for name in (os.path.basename(self.key), f"{BASENAME}-dhparam.pem"):
            with contextlib.suppress(FileExistsError):
                os.link(os.path.join(draft, name), os.path.join(self.folder, name))
        (certificate, *_) = certificates(self.key)
        derived = os.path.join(draft, "certificate")
        with open(derived, "w", encoding="ascii") as out:
            out.write(certificate + "\n")
        os.replace(derived, self.certificate)

    def protect(self) -> None:
        """Make the directory, and let nobody else read it or the key."""
        make_directory(self.folder)
        for path, mode in ((self.folder, 0o700), (self.key, 0o600)):
            if os.path.exists(path) and os.stat(path).st_mode & 0o077:
                os.chmod(path, mode)

    def exposed(self) -> list[str]:
        """What of it others than the user can reach."""
        paths = [path for path in (self.folder, self.key) if os.path.exists(path)]
        return [path for path in paths if os.name == "posix" and os.stat(path).st_mode & 0o077]

    def trust(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The variables that make Python, Node and curl trust it, and all that `environ` makes them trust.

        Writes the bundle that they name.
        """
        named = [environ[name] for name in (*REPLACING, ADDING) if environ.get(name)]
        write_bundle(self.bundle, [path for path in named if os.path.isfile(path)], self.certificate)
        return dict.fromkeys((*REPLACING, ADDING), self.bundle)

    def describe(self) -> tuple[str, str]:
        """The SHA-256 fingerprint of the certificate, and until when it is valid. UsageError if it is damaged."""
        (certificate, *_) = certificates(self.certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).hexdigest().upper()
            context.load_verify_locations(self.certificate)
        except (ValueError, ssl.SSLError):
            raise UsageError(f"{self.certificate} is damaged: move {self.folder} away") from None
        return ":".join(re.findall("..", digest)), str(context.get_ca_certs()[0]["notAfter"])


def default() -> Authority:
    """The user's own."""
    return Authority(os.path.join(home(), "ca"))


def through(proxy: str) -> dict[str, str]:
    """The variables that lead Python, Node and curl through the proxy at a URL; an empty one is to be unset."""
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    return dict.fromkeys(names, proxy) | {"NODE_USE_ENV_PROXY": "1", "NO_PROXY": "", "no_proxy": ""}


def write_bundle(path: str, files: Iterable[str], *more: str) -> None:
    """Write the certificates that this machine trusts, and those in `files` and `more`, to `path` as PEM.

    Raises UsageError for a file that holds none, and where nothing can be written.
    """
    found: dict[str, None] = {}
    for file in files:
        found |= dict.fromkeys(certificates(file))
    found |= dict.fromkeys(_roots())
    for file in more:
        found |= dict.fromkeys(certificates(file))
    draft = f"{path}-{os.getpid()}"
    try:
        with open(draft, "w", encoding="ascii") as out:
            out.write("".join(certificate + "\n" for certificate in found))
        os.replace(draft, path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def certificates(path: str) -> list[str]:
    """The certificates in a PEM file. Raises UsageError if there is none."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            found = _CERTIFICATE.findall(file.read().replace("\r\n", "\n"))
    except OSError as error:
        raise UsageError(f"cannot read certificates from {path}: {error.strerror or error}") from None
    if not found:
        raise UsageError(f"cannot read certificates from {path}: it holds none in PEM form")
    return found


def _roots() -> list[str]:
    """What this machine trusts: the system's store, else certifi's list where it is installed."""
    found = [ssl.DER_cert_to_PEM_cert(der).strip() for der in ssl.create_default_context().get_ca_certs(True)]
    if not found:  # a store that is a directory is not listed
        try:
            from certifi import where  # type: ignore[import-not-found]
        except ImportError:
            return []
        found = certificates(where())
    return found
