"""The key of this user, and the headers that it proves: a relay of this user wrote them (docs/replay.md).

A capture may come from anyone, and its header has a command. So a recorded command is offered only if the header proves
where it comes from: its last member is a hash of all others under a key that only this user can read. Nobody else can
make one, and a header that was changed does not have the right one. The same key makes the marks in the place of
secrets; those have another length and no `person`, so none of them is a proof.

On the `wrap` path: no heavy imports. `hashlib` would load OpenSSL, which takes 3 ms.
"""

import os
from _blake2 import blake2b

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
    return header[:-1] + _MEMBER + _hash(header) + b'"}'


def without_proof(header: bytes) -> bytes:
    """Return a header without its proof: for copies that others may have changed."""
    return header[:-_LENGTH] + b"}" if header[-_LENGTH:].startswith(_MEMBER) else header


def proves_itself(path: str) -> bool:
    """Return whether a relay of this user wrote the header of the capture at `path`, and nobody changed it."""
    try:
        with open_foreign(path) as file:
            header = file.readline(_LONGEST).rstrip(b"\n")
    except OSError:
        return False
    return _is_private() and header == with_proof(without_proof(header))


def _hash(header: bytes) -> bytes:
    return blake2b(header, key=user_key(), person=b"mcpspy proof", digest_size=16).hexdigest().encode()


def _is_private() -> bool:
    """Return whether there is a key that only this user can read or replace."""
    try:
        status = os.stat(_path())
    except OSError:
        return False
    return os.name == "nt" or (status.st_uid == os.geteuid() and not status.st_mode & 0o077)


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
