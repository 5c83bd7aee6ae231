from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.support.proxy import Proxy


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A proxy before a server that says everything back."""
    listener = socket.create_server(("127.0.0.1", 0))

    def echo(line: socket.socket) -> None:
        with contextlib.suppress(OSError), line:
            while data := line.recv(100):
                line.sendall(data)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    proxy = Proxy("127.0.0.1", listener.getsockname()[1])
    yield proxy
    proxy.close()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def connect(proxy: Proxy) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", proxy.port), timeout=10)
    assert said(line, b"hello") == b"hello"
    return line


def said(line: socket.socket, data: bytes) -> bytes:
    line.sendall(data)
    return line.recv(100)


def test_a_reset_cuts_what_is_open_and_nothing_else(proxy: Proxy) -> None:
    with connect(proxy) as line:
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            said(line, b"x")
    connect(proxy).close()


def test_refused_connections_are_accepted_again_at_the_same_port(proxy: Proxy) -> None:
    with connect(proxy):
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            connect(proxy)
    proxy.accept()
    connect(proxy).close()


def test_a_swallowed_connection_is_silent_and_a_new_one_works(proxy: Proxy) -> None:
    with connect(proxy) as line:
        proxy.swallow()
        line.settimeout(0.05)
        with pytest.raises(TimeoutError):
            said(line, b"x")
    connect(proxy).close()


def test_stalled_bytes_arrive_once_they_flow_again(proxy: Proxy) -> None:
    with connect(proxy) as line:
        proxy.stall()
        line.settimeout(0.05)
        with pytest.raises(TimeoutError):
            said(line, b"late")
        proxy.resume()
        line.settimeout(10)
        assert line.recv(100) == b"late"
