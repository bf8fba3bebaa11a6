"""Where a process listens, as the system sees it."""

from __future__ import annotations

import re
import socket
import struct
from contextlib import suppress
from pathlib import Path

LISTEN = "0A"


def listening(pid: int) -> set[tuple[str, int]]:
    """Return address and port of every TCP socket at which a process takes connections."""
    inodes = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            if found := re.fullmatch(r"socket:\[(\d+)\]", str(handle.readlink())):
                inodes.add(found[1])
    found_at = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        path = Path(f"/proc/{pid}/net/{table}")
        lines = path.read_text(encoding="ascii").splitlines()[1:] if path.exists() else []
        for line in lines:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == LISTEN and inode in inodes:
                address, _, port = local.partition(":")
                found_at.add((_text(address, family), int(port, 16)))
    return found_at


def _text(address: str, family: int) -> str:
    """Return an address that is written in words of the machine's own byte order."""
    words = [int(address[place : place + 8], 16) for place in range(0, len(address), 8)]
    return socket.inet_ntop(family, struct.pack(f"={len(words)}I", *words))
