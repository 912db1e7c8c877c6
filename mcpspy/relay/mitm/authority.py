"""The certificate authority of `mitm`: where it is stored, who may read it, and how clients trust it (M-05, M-07).

Its key allows anybody to impersonate any server to the clients that trust it. So it is stored in a private directory of
the user, and only single processes trust it, through their environment. The system's store is not changed.

The variables for Python *replace* the certificates that a client trusts. So they name a bundle of the certificates that
the client trusts anyway, and ours. The name of a bundle has a hash of its content, and the file never changes, so a
client can read it at any time, even if other clients start with other bundles. `mitm` creates the authority; this
module does not need mitmproxy.
"""

import contextlib
import hashlib
import os
import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mcpspy.capture.location import home, make_directory
from mcpspy.errors import UsageError
from mcpspy.foreign_file import read_foreign

BASENAME = "mitmproxy"
"""The prefix of mitmproxy's file names."""
REPLACING = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
ADDING = "NODE_EXTRA_CA_CERTS"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Authority:
    """The paths of one authority, in `folder`; the files need not exist."""

    folder: str

    @property
    def key(self) -> str:
        """The file with the private key and the certificate."""
        return os.path.join(self.folder, f"{BASENAME}-ca.pem")

    @property
    def certificate(self) -> str:
        """The file with the certificate that clients must trust, as PEM."""
        return os.path.join(self.folder, f"{BASENAME}-ca-cert.pem")

    def exists(self) -> bool:
        """Return whether the key and the certificate exist."""
        return os.path.isfile(self.key) and os.path.isfile(self.certificate)

    def adopt(self, draft: str) -> None:
        """Move the files of the directory `draft` here; a key that another process has put here before is kept.

        Each file appears as a whole. So two processes at once, or a process that is killed, cannot leave a key and a
        certificate that do not match.
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
        """Create the directory, and remove the access of others to it and to the key."""
        make_directory(self.folder)
        for path, mode in ((self.folder, 0o700), (self.key, 0o600)):
            if os.path.exists(path) and os.stat(path).st_mode & 0o077:
                os.chmod(path, mode)

    def exposed(self) -> list[str]:
        """Return the paths of the authority that other users can access."""
        paths = [path for path in (self.folder, self.key) if os.path.exists(path)]
        return [path for path in paths if os.name == "posix" and os.stat(path).st_mode & 0o077]

    def pem(self) -> str:
        """Return the certificate. Raises UsageError if it or the key is damaged, or if they do not match."""
        try:
            (certificate, *_), (own, *_) = certificates(self.certificate), certificates(self.key)
            if certificate != own:
                raise UsageError(f"{self.certificate} is not the certificate of {self.key}")
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.key, password="")  # else OpenSSL prompts
        except (UsageError, ssl.SSLError) as error:
            why = str(error) if isinstance(error, UsageError) else f"{self.key} holds no key of its certificate"
            raise UsageError(
                f"the authority in {self.folder} cannot be used: {why}; move it away, and a new one is made"
            ) from None
        return certificate

    def trust(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that make Python, Node and curl trust the authority.

        The clients also trust all certificates that `environ` names. Writes the bundle that the variables name.
        """
        named = [environ[name] for name in (*REPLACING, ADDING) if os.path.isfile(environ.get(name, ""))]
        text = _bundle(named, self.pem())
        path = os.path.join(self.folder, f"bundle-{hashlib.sha256(text.encode()).hexdigest()[:16]}.pem")
        _write(path, text)
        return dict.fromkeys((*REPLACING, ADDING), path)

    @staticmethod
    def left_out(environ: Mapping[str, str]) -> list[str]:
        """Return the variables whose certificates `trust` cannot include, because they name no file."""
        return [name for name in (*REPLACING, ADDING) if environ.get(name) and not os.path.isfile(environ[name])]

    def is_trusted_by(self, path: str) -> bool:
        """Return whether the certificates in a file include the authority."""
        try:
            return self.pem() in certificates(path)
        except UsageError:
            return False

    def describe(self) -> tuple[str, str]:
        """Return the certificate's SHA-256 fingerprint and the end of its validity. Raises UsageError as `pem` does."""
        certificate = self.pem()
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).hexdigest().upper()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=certificate)
        return ":".join(re.findall("..", digest)), str(context.get_ca_certs()[0]["notAfter"])


def default() -> Authority:
    """Return the authority of the user."""
    return Authority(os.path.join(home(), "ca"))


def through(proxy: str) -> dict[str, str]:
    """Return the variables that make Python, Node and curl use the proxy at a URL; unset those that are empty."""
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    return dict.fromkeys(names, proxy) | {"NODE_USE_ENV_PROXY": "1", "NO_PROXY": "", "no_proxy": ""}


def write_bundle(path: str, files: Iterable[str]) -> None:
    """Write the certificates that this machine trusts, and those in `files`, to `path` as PEM.

    Raises UsageError if a file has no certificate or a damaged one, or if `path` cannot be written.
    """
    _write(path, _bundle(files))


def certificates(path: str) -> list[str]:
    """Return the certificates in a PEM file. Raises UsageError if there is none, or if one is damaged."""
    try:
        text = read_foreign(path).decode("ascii", "replace")
    except OSError as error:
        raise UsageError(f"cannot read certificates from {path}: {error.strerror or error}") from None
    found: list[str] = _CERTIFICATE.findall(text.replace("\r\n", "\n"))
    if not found:
        raise UsageError(f"cannot read certificates from {path}: it holds none in PEM form")
    for number, certificate in enumerate(found, 1):
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=certificate)
        except (TypeError, ssl.SSLError):  # TypeError: the text is not ASCII
            raise UsageError(f"cannot read certificates from {path}: number {number} in it is damaged") from None
    return found


def _bundle(files: Iterable[str], *more: str) -> str:
    """Return the certificates in `files`, those that this machine trusts, and `more`, without duplicates."""
    found: dict[str, None] = {}
    for file in files:
        found |= dict.fromkeys(certificates(file))
    return "".join(certificate + "\n" for certificate in found | dict.fromkeys(_roots()) | dict.fromkeys(more))


def _write(path: str, text: str) -> None:
    """Write a file as a whole, because others may read it at the same time."""
    draft = f"{path}-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        with open(draft, "w", encoding="ascii") as out:
            out.write(text)
        os.replace(draft, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def _roots() -> list[str]:
    """Return the certificates that this machine trusts: the system's store, else certifi's list; ignores variables."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    store = ssl.get_default_verify_paths().openssl_cafile
    if os.path.isfile(store):
        context.load_verify_locations(store)
    else:
        context.load_default_certs()
    found = [ssl.DER_cert_to_PEM_cert(der).strip() for der in context.get_ca_certs(True)]
    if not found:  # the certificates of a store that is a directory are not listed
        try:
            from certifi import where
        except ImportError:
            return []
        found = certificates(where())
    return found
