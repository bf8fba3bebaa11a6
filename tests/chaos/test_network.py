"""A server behind a cable: it can be cut off in each direction, be far away, and lose frames."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest

from chaos import network

if TYPE_CHECKING:
    from collections.abc import Iterator

ECHO = """
import socket, sys
with socket.create_server((sys.argv[1], 5000)) as listener:
    print("ready", flush=True)
    while True:
        with listener.accept()[0] as connection:
            while bytes := connection.recv(65536):
                connection.sendall(bytes)
"""
BODY = b"x" * 50_000


@pytest.fixture
def link() -> Iterator[network.Link]:
    """Return a place in which a server answers with what it is told."""
    why = network.problem()
    if why is not None:
        pytest.skip(why)
    with ExitStack() as stack:
        made = network.Network(stack, namespaces=True).link()
        server = subprocess.Popen(
            [*made.inside, sys.executable, "-c", ECHO, made.host],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        stack.callback(server.communicate)
        stack.callback(server.kill)
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        yield made


def exchange(link: network.Link, timeout_s: float = 1.0) -> float | None:
    """Return how long an exchange takes; None if it has no end."""
    begun = time.monotonic()
    with (
        suppress(OSError),
        socket.create_connection((link.host, 5000), timeout=timeout_s) as connection,
    ):
        connection.sendall(BODY)
        left = len(BODY)
        while left:
            left -= len(connection.recv(65536))
        return time.monotonic() - begun
    return None


def test_a_cable_is_cut_slow_and_bad_and_good_again(link: network.Link) -> None:
    assert exchange(link) is not None
    for is_in, is_out in ((False, False), (True, False), (False, True)):
        link.order(is_in=is_in, is_out=is_out)
        assert exchange(link, 0.3) is None
        link.mend()
        assert exchange(link, 5) is not None
    link.order(delay_s=0.05)
    slow = exchange(link, 10)
    assert slow is not None
    assert slow > 0.2, "a connection, and an answer: two ways there and two back"
    link.order(loss=0.1)
    assert exchange(link, 30) is not None, "what is lost is sent again"
    link.mend()
    quick = exchange(link, 5)
    assert quick is not None
    assert quick < 0.2


def test_a_server_is_parted_from_some_and_not_from_others(link: network.Link) -> None:
    clients = network.Link(f"{link.host.rpartition('.')[0]}.{network.CLIENTS}")
    link.part_from([clients])
    assert exchange(link, 0.3) is None
    link.mend()
    assert exchange(link, 5) is not None
