"""The key of this user, and the headers that it proves: a relay of this user wrote them (docs/replay.md).

A capture may come from anyone, and its header has a command. So a recorded command is offered only if the header proves
where it comes from: its last member is a hash of all others under a key that only this user can read. Nobody else can
make one, and a header that was changed does not have the right one. The same key makes the marks in the place of
secrets; those have another length and no `person`, so none of them is a proof.

On the `wrap` path: no heavy imports. `hashlib` would load OpenSSL, which takes 3 ms.
"""

import os
import stat
from _blake2 import blake2b

from mcpspy.capture.format import to_json
from mcpspy.capture.location import home, make_directory
from mcpspy.foreign_file import open_foreign

_BYTES = 32  # of the key
_MEMBER = b',"proof":"'
_LENGTH = len(_MEMBER) + 32 + len(b'"}')
_LONGEST = 1 << 20  # bytes of a header that is looked at


def user_key() -> bytes:
    """Return the key, which is created on first use. If it can be neither read nor created, return a temporary one."""
    path = _path()
    for _ in range(2):
        try:
            with open_foreign(path) as file:
                key = file.read(64)
            if len(key) == _BYTES:
                return key
        except OSError:
            pass
        try:
            _make(path)
        except OSError:
            break
    return os.urandom(_BYTES)


def with_proof(header: bytes) -> bytes:
    """Return a header, a JSON object on one line, with its proof as the last member."""
    return header[:-1] + _MEMBER + _hash(header, user_key()) + b'"}'


def without_proof(header: bytes) -> bytes:
    """Return a header without any proof: for a copy that others may have changed. Raises ValueError."""
    import json  # a heavy import

    fields = json.loads(header)
    fields.pop("proof", None)
    return to_json(fields)


def first_line(path: str) -> bytes:
    """Return the header of the capture at `path`, without its newline. Raises OSError."""
    with open_foreign(path) as file:
        return file.readline(_LONGEST).rstrip(b"\n")


def doubt(header: bytes) -> str | None:
    """Return why a header, a line without its newline, does not prove itself; None if a relay of this user wrote it."""
    if not header[-_LENGTH:].startswith(_MEMBER):
        return "its header has no proof of its origin"
    try:
        with open_foreign(_path()) as file:
            key, status = file.read(64), os.fstat(file.fileno())
    except OSError:
        return f"{_path()}, which proves headers, cannot be read"
    if os.name != "nt" and not (_is_private(status) and _is_private(os.stat(os.path.dirname(_path())))):
        return f"others can read or replace {_path()}, which proves headers"
    plain = header[:-_LENGTH] + b"}"
    proved = len(key) == _BYTES and header == plain[:-1] + _MEMBER + _hash(plain, key) + b'"}'
    return None if proved else "no relay of yours wrote its header as it is"


def _hash(header: bytes, key: bytes) -> bytes:
    return blake2b(header, key=key, person=b"mcpspy proof", digest_size=16).hexdigest().encode()


def _is_private(status: os.stat_result) -> bool:
    """Return whether only this user can read or replace a file or directory."""
    return status.st_uid == os.geteuid() and not status.st_mode & (0o077 if stat.S_ISREG(status.st_mode) else 0o022)


def _path() -> str:
    return os.path.join(home(), "key")


def _make(path: str) -> None:
    """Create the complete key at `path` in one step, because several servers may start at the same moment."""
    make_directory(os.path.dirname(path))
    draft = f"{path}-{os.getpid()}-{os.urandom(4).hex()}"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        try:
            os.write(fd, os.urandom(_BYTES))
        finally:
            os.close(fd)
        os.link(draft, path)  # unlike `rename`, it never replaces a key
    except FileExistsError:
        pass
    finally:
        os.unlink(draft)
