"""Tests of the end of a listening port."""

import socket
import sys

import pytest

from service.edge.http.listening import stop_connections


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux filters the packets of a socket")
def test_stopped_port_keeps_begun_connections_and_refuses_later_ones() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        begun = socket.create_connection(listener.getsockname())
        begun.sendall(b"asked")
        stop_connections([listener.fileno()])
        later = socket.socket()
        later.setblocking(False)
        with pytest.raises(BlockingIOError):
            later.connect(listener.getsockname())
        accepted, _ = listener.accept()
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert accepted.recv(5) == b"asked"
    accepted.sendall(b"answered")
    assert begun.recv(8) == b"answered"
    later.settimeout(60)
    with pytest.raises(ConnectionRefusedError):  # the client repeats the packet, and learns that nobody listens
        later.recv(1)
    for connection in (begun, accepted, later):
        connection.close()
