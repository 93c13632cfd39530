"""The end of a listening port without a reset: the requests that are under way to it are answered first."""

import ctypes
import os
import socket
import struct
import sys
from collections.abc import Iterable

_SO_ATTACH_FILTER = 26
_INSTRUCTIONS = (
    (0x30, 0, 0, 13),  # load the flags of the TCP header
    (0x54, 0, 0, 0x12),  # keep SYN and ACK
    (0x15, 0, 1, 0x02),  # unless SYN alone is set, skip the next line
    (0x06, 0, 0, 0),  # drop the packet
    (0x06, 0, 0, 0xFFFFFFFF),  # pass it
)
_CODE = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in _INSTRUCTIONS))
_PROGRAM = struct.pack("HL", len(_INSTRUCTIONS), ctypes.addressof(_CODE))


def stop_connections(listeners: Iterable[int]) -> None:
    """Drop new connections of listening sockets, by descriptor; those that have begun are still accepted.

    Clients repeat a dropped packet after a second, and the closed port refuses it, so a proxy sends the
    request elsewhere. A connection that waits when a port closes would be reset, and its request lost. Only Linux can.
    """
    if sys.platform != "linux":
        return
    for descriptor in listeners:
        with socket.socket(fileno=os.dup(descriptor)) as listener:
            if listener.family in (socket.AF_INET, socket.AF_INET6):
                listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, _PROGRAM)
