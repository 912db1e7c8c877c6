"""What the user gives to reach servers: certificates to trust, a certificate and a key of the client, a Unix socket."""

import os
import ssl
from dataclasses import dataclass, field

from mcpspy.errors import UsageError
from mcpspy.foreign_file import read_foreign

PASSPHRASE = "MCPSPY_KEY_PASSPHRASE"  # noqa: S105 (the name of a variable)
"""The variable with the passphrase of a key."""

_HOSTNAME_MISMATCH = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_GIVE = "give --cert FILE and --key FILE"


@dataclass(frozen=True, slots=True)
class Access:
    """The options; paths are those of PEM files."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    """None: the key is in the file of the certificate."""
    unix: str | None = None
    """The socket to connect to instead of the host of the URL."""
    insecure: bool = False
    passphrase: str | None = field(default=None, repr=False)

    def words(self) -> list[str]:
        """Return the options for another mcpspy, which needs the passphrase in its environment."""
        pairs = (("--ca", self.ca), ("--cert", self.cert), ("--key", self.key), ("--unix", self.unix))
        return [word for name, value in pairs if value for word in (name, value)]

    def variables(self) -> dict[bytes, bytes]:
        """Return what the environment of that mcpspy needs."""
        return {PASSPHRASE.encode(): self.passphrase.encode()} if self.passphrase else {}

    def write_pair(self, path: str) -> str | None:
        """Write certificate and key to one file, which only this user can read, for a program that needs that.

        Returns its path; None if there is no certificate. Raises UsageError.
        """
        if self.cert is None:
            return None
        key = self.key or self.cert
        if is_encrypted(key):
            raise UsageError(f"the key in {key} has a passphrase, which 'mitm' cannot use: use 'mcpspy proxy'")
        self._present(ssl.create_default_context(), self.cert, key)
        pem = _pem(self.cert) + (b"\n" + _pem(key) if self.key else b"")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(pem)
        return path

    def context(self) -> ssl.SSLContext:
        """Return what TLS needs. Raises UsageError."""
        context = ssl.create_default_context()
        if self.ca:
            _trust(context, self.ca)
        if self.cert:
            self._present(context, self.cert, self.key or self.cert)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _present(self, context: ssl.SSLContext, cert: str, key: str) -> None:
        """Load the certificate of the client."""
        if b"BEGIN CERTIFICATE" not in _pem(cert):
            raise UsageError(f"{cert} holds no certificate in PEM form (-----BEGIN CERTIFICATE-----): see --cert")
        if b"PRIVATE KEY-----" not in _pem(key):
            missing = f"{key} holds no private key in PEM form (-----BEGIN PRIVATE KEY-----)"
            raise UsageError(f"{missing}: name its file with --key")
        encrypted = is_encrypted(key)
        if encrypted and self.passphrase is None:
            raise UsageError(f"the key in {key} is encrypted: put its passphrase into {PASSPHRASE}")
        try:
            context.load_cert_chain(cert, key, self.passphrase or "")
        except (ssl.SSLError, ValueError) as error:  # ValueError: a passphrase of more than 1023 bytes
            if "KEY_VALUES_MISMATCH" in f"{getattr(error, 'reason', '')}" or "mismatch" in f"{error}":
                raise UsageError(f"the key in {key} does not belong to the certificate in {cert}") from None
            if encrypted:
                raise UsageError(
                    f"the passphrase does not decrypt the key in {key}; {PASSPHRASE} may have it"
                ) from None
            raise UsageError(f"{cert} and {key} hold no usable certificate with its key: {error}") from None


def is_encrypted(key: str) -> bool:
    """Return whether a private key has a passphrase. Raises UsageError if its file cannot be read."""
    return b"ENCRYPTED" in _pem(key)


def _pem(path: str) -> bytes:
    try:
        return read_foreign(path, named=True)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


def _trust(context: ssl.SSLContext, path: str) -> None:
    try:
        context.load_verify_locations(cadata=read_foreign(path, named=True).decode("ascii", "ignore"))
    except (OSError, ValueError) as error:  # ValueError: there is no certificate in it
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read certificates from {path}: {why}") from error


def tls_failure(error: ssl.SSLError, cert: str | None) -> str:
    """Return why there is no TLS connection to a server; `cert` is the certificate of the client."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _mistrust(getattr(error, "verify_message", "") or str(error), getattr(error, "verify_code", 0))
    # Python knows the names of some alerts only with some versions of OpenSSL; else it has the text of OpenSSL
    why = getattr(error, "reason", None) or str(error).partition(" (_ssl.c")[0].rpartition("] ")[2]
    reason = why.upper().replace(" ", "_")
    if "APPLICATION_PROTOCOL" in reason:
        return "speaks only HTTP/2, which mcpspy does not: put a server in between that speaks HTTP/1.1"
    if "CERTIFICATE_REQUIRED" in reason:
        return f"requires a client certificate: {_GIVE}"
    if any(it in reason for it in _REFUSED_CERTIFICATE):
        if cert:
            return f"does not accept the client certificate in {cert} ({why}): check who has to sign it"
        return f"does not accept this client ({why}): if it requires a client certificate, {_GIVE}"
    if "HANDSHAKE_FAILURE" in reason and not cert:
        return f"ends the TLS handshake ({why}): if it requires a client certificate, {_GIVE}"
    return f"cannot be reached by TLS ({why}): is it http:// instead?"


_REFUSED_CERTIFICATE = (
    *("ALERT_UNKNOWN_CA", "ALERT_BAD_CERTIFICATE", "ALERT_CERTIFICATE_UNKNOWN", "ALERT_CERTIFICATE_EXPIRED"),
    *("ALERT_CERTIFICATE_REVOKED", "ALERT_UNSUPPORTED_CERTIFICATE", "ALERT_ACCESS_DENIED", "ALERT_DECRYPT_ERROR"),
)


def _mistrust(why: str, code: int) -> str:
    if code in _HOSTNAME_MISMATCH:
        return f"has a certificate for another name ({why.rstrip('.')}): use a name that its certificate has"
    return (
        f"has a certificate that cannot be verified ({why}): give the certificate of the authority that signed it "
        "with --ca FILE"
    )


REFUSES_CERTIFICATE = (400, 403)
"""The statuses with which web servers refuse a client by its certificate, after the TLS handshake."""


def certificate_hint(page: bytes, cert: str | None) -> str | None:
    """Return what such a response means, as far as its page tells; None for other pages."""
    if b"No required SSL certificate" in page:
        return f"requires a client certificate: {_GIVE}"
    if b"SSL certificate error" in page:
        return f"does not accept the client certificate{f' in {cert}' if cert else ''}: check who has to sign it"
    return None
