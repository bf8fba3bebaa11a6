"""A cable that loses and delays frames: two network devices, and this program between them.

    cable.py HANDLE NAME    joins the device behind an open handle with a new one called NAME

Orders are lines on its standard input: `LOSS DELAY_S IN OUT`, the part of frames that is lost, how
long each takes, and whether frames go to the new device and from it (1 or 0). The end of the input
is its end. It says `ready` first.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import select
import struct
import sys
import time
from random import Random
from typing import Final

TUNSETIFF: Final = 0x400454CA
IFF_TAP_NO_PI: Final = 0x0002 | 0x1000
FRAME_BYTES_MAX: Final = 65536
WAITING_MAX: Final = 20_000
"""Frames that are under way; more are lost, as in a switch."""


def open_device(name: str) -> int:
    """Make a device in the network namespace of this process; return what is behind it."""
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        fcntl.ioctl(handle, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP_NO_PI))
    except OSError:
        os.close(handle)
        raise
    return handle


class Cable:
    """What is under way, and by which rules."""

    def __init__(self, outer: int, inner: int) -> None:
        self._other = {outer: inner, inner: outer}
        self._inner = inner
        self._waiting: list[tuple[float, int, int, bytes]] = []
        self._count = 0
        self._dice = Random(inner)
        self._loss, self._delay_s, self._is_in, self._is_out = 0.0, 0.0, True, True

    def order(self, line: str) -> None:
        """Change the rules."""
        loss, delay_s, is_in, is_out = line.split()
        self._loss, self._delay_s = float(loss), float(delay_s)
        self._is_in, self._is_out = is_in == "1", is_out == "1"

    def take(self, handle: int) -> None:
        """Take a frame in."""
        try:
            frame = os.read(handle, FRAME_BYTES_MAX)
        except OSError:
            return
        is_open = self._is_out if handle == self._inner else self._is_in
        if not is_open or self._dice.random() < self._loss or len(self._waiting) >= WAITING_MAX:
            return
        if self._delay_s:
            self._count += 1
            due = time.monotonic() + self._delay_s
            heapq.heappush(self._waiting, (due, self._count, self._other[handle], frame))
        else:
            give(self._other[handle], frame)

    def give_due(self) -> float | None:
        """Give out what is due; return how long until more is, in milliseconds."""
        now = time.monotonic()
        while self._waiting and self._waiting[0][0] <= now:
            _due, _count, handle, frame = heapq.heappop(self._waiting)
            give(handle, frame)
        return max(0.0, (self._waiting[0][0] - now) * 1000) + 0.2 if self._waiting else None


def give(handle: int, frame: bytes) -> None:
    """Hand a frame to a device; one that is down, or full, loses it."""
    try:
        os.write(handle, frame)
    except OSError:
        return


def main() -> int:
    """Be a cable until the input ends."""
    outer, inner = int(sys.argv[1]), open_device(sys.argv[2])
    os.set_blocking(outer, False)
    cable = Cable(outer, inner)
    poll = select.poll()
    for handle in (0, outer, inner):
        poll.register(handle, select.POLLIN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        for handle, _events in poll.poll(cable.give_due()):
            if handle != 0:
                cable.take(handle)
                continue
            orders = os.read(0, 65536).decode()
            if not orders:
                return 0
            for line in orders.splitlines():
                cable.order(line)


if __name__ == "__main__":
    sys.exit(main())
