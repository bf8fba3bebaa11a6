"""Ten thousand clients that say nothing: memory stays within bounds, and nobody else notices."""

from __future__ import annotations

import resource
import socket
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.wire.headers.send import SendMessageV2Request
from support import gantry
from support.samples import json_request

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNT: Final = 10_000
SPEAKING: Final = 5_000
"""Of them; these have a connection's whole state in the server, the others a socket."""
OTHER_FILES: Final = 500
A_SHELLS: Final = 1024
"""Open files of what a shell starts."""
STEP: Final = 250
"""Connections that are made before the server is given time to accept them."""
BYTES_EACH_MAX: Final = 8_000
LATE_S_MAX: Final = 2.0
"""A busy machine; alone it is a millisecond."""
QUESTION: Final = json_request(30, {"topic": "T", "queueId": "0"})
SEND: Final = SendMessageV2Request(
    producer_group="g", topic="T", default_topic="TBW102", default_topic_queue_nums=1, queue_id=0,
    sys_flag=0, born_timestamp=0, flag=0, properties="",
)  # fmt: skip


@contextmanager
def open_files(count: int) -> Iterator[None]:
    """Let this process, and those that it starts, open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard == resource.RLIM_INFINITY or hard >= count, f"raise `ulimit -Hn` to {count}"
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def own_bytes(pid: int) -> int:
    """Return the memory that a process has for itself alone."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no such line")


def test_ten_thousand_idle_connections_disturb_nobody(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with open_files(A_SHELLS):  # a server takes more by itself
            server = stack.enter_context(gantry.server(tmp_path, {}))
        stack.enter_context(open_files(COUNT + OTHER_FILES))
        client = stack.enter_context(server.client())
        client.send(SEND, b"before")
        before = own_bytes(server.pid)
        idle = []
        for number in range(COUNT):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 20))
            idle.append(one)
            if number < SPEAKING:
                one.sendall(QUESTION)
            if number % STEP == 0:
                client.max_offset("T", 0)
        for one in idle[:SPEAKING]:
            assert one.recv(4096)
        slowest = 0.0
        for number in range(200):
            begun = time.monotonic()
            client.send(SEND, b"beside %d" % number)
            slowest = max(slowest, time.monotonic() - begun)
        assert slowest < LATE_S_MAX
        grown = own_bytes(server.pid) - before
        assert grown < COUNT * BYTES_EACH_MAX, f"{grown // COUNT} bytes for each"
        for one in (idle[0], idle[-1]):
            one.sendall(QUESTION)
            assert one.recv(4096), "it was not forgotten"
        assert client.max_offset("T", 0) == 201
