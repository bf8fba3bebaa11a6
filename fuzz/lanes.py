"""The lanes on bytes that came from anywhere: both kernels do the same, and neither falls over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fuzz.twins import twins
from gantrymq.kernel.values import UNIT_BYTES

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel
    from gantrymq.kernel.values import Frame

MESSAGES_MAX: Final = 8
BYTES_MAX: Final = 1 << 16
NOW: Final = 1.0


def known_pulls(data: bytes, frames: list[Frame]) -> str:
    """Take every byte for a pull, for units of its queue and for the log that they point into."""
    found = twins("PullLane", lambda k: _known(k, data, frames))
    return f"known {sum(1 for each in found.value or [] if each)}"


def _known(kernel: Kernel, data: bytes, frames: list[Frame]) -> list[object]:
    """Remember the frames that are pulls; then ask, at each frame and at some odd places."""
    lane = kernel.PullLane(2)
    seen: list[object] = []
    for number, frame in enumerate(frames):
        way = kernel.PullWay((number,) * (number % 2), MESSAGES_MAX, BYTES_MAX, 407, 0, number)
        way.point(data, number, data, len(data), 0, 0, len(data) // UNIT_BYTES, NOW)
        seen.append(lane.remember(data, frame, way))
    starts = [frame.start for frame in frames] + [len(data) // 3, len(data) // 2]
    for start in starts:
        found = lane.take(data, start, len(data), NOW)
        seen.append(None if found is None else (found.way.note, *found[1:]))
    lane.forget()
    return seen
