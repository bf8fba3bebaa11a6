"""A pull is answered out of the mapped log: the server reads no message from a file for it."""

from __future__ import annotations

from pathlib import Path

from gantrymq.store.put import NewMessage
from support import gantry
from support.every_kind import BORN_HOST, BORN_MS, send_header

BODY = b"x" * 16_000
COUNT = 400


def bytes_read(pid: int) -> int:
    """Return what a process has read so far, from files and connections, cached or not."""
    lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))


def test_nothing_is_read_for_a_pull(tmp_path: Path) -> None:
    message = NewMessage("Pulled", 0, BODY, {"KEYS": "k"}, BORN_MS, BORN_HOST)
    with gantry.server(tmp_path, {}) as server, server.client() as client:
        for _ in range(COUNT):
            client.send(send_header(message, message.properties), BODY)
        before = bytes_read(server.pid)
        records = client.pull_all("Pulled", 0)
        read = bytes_read(server.pid) - before
    assert len(records) == COUNT
    served = sum(map(len, records))
    assert served > COUNT * len(BODY)
    assert read < served // 20, "requests, and units of the queue"
