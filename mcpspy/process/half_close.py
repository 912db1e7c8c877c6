"""Find out whether the client of a connection has closed it, or only the half that it sends on (A-11).

TCP shows both as the end of the client's bytes; only a later write is answered by a reset. Linux knows more about a
client on the same machine. The client's socket exists while our side is open, and belongs to a process until that
process closes it. The kernel reports the inode of the socket, which is 0 if no process holds it (sock_diag(7)).
"""

import socket
import struct
from typing import Any

_SOCK_DIAG = 4  # the protocol NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # the message SOCK_DIAG_BY_FAMILY
_REQUEST = 1  # the flag NLM_F_REQUEST
_MESSAGE = struct.Struct("=IHHII")  # struct nlmsghdr
_QUESTION = struct.Struct("=BBBxI")  # the beginning of struct inet_diag_req_v2
_SOCKET = struct.Struct("!HH16s16s")  # the beginning of struct inet_diag_sockid
_ANY_SOCKET = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)  # its rest: interface and cookie
_INODE = struct.Struct("=I")
_INODE_AT = _MESSAGE.size + 68  # in struct inet_diag_msg


def is_still_held(client: Any, own: Any) -> bool:
    """Return whether a process on this machine still has the client's end of a connection open.

    `client` and `own` are the addresses of the two ends. Returns False if this is unknown: for a client on another
    machine or in another network namespace, and on systems other than Linux.
    """
    family = getattr(socket, "AF_NETLINK", None)
    if family is None or not isinstance(client, tuple) or not isinstance(own, tuple):
        return False
    version = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    try:
        ends = [socket.inet_pton(version, end[0].partition("%")[0]) for end in (client, own)]
        question = _QUESTION.pack(version, socket.IPPROTO_TCP, 0, 0xFFFFFFFF)
        question += _SOCKET.pack(client[1], own[1], *ends) + _ANY_SOCKET
        with socket.socket(family, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
            kernel.setblocking(False)  # the kernel answers within the call
            kernel.send(_MESSAGE.pack(_MESSAGE.size + len(question), _BY_FAMILY, _REQUEST, 0, 0) + question)
            answer = kernel.recv(4096)
    except OSError:
        return False
    _, kind, _, _, _ = _MESSAGE.unpack_from(answer)
    return bool(kind == _BY_FAMILY and _INODE.unpack_from(answer, _INODE_AT)[0])
