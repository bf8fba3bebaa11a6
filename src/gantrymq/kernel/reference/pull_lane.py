"""The pull lane: a pull that reads on where one like it has read before is known again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.kernel.reference.bounds import check_buffer, check_range
from gantrymq.kernel.reference.frames import frame_at
from gantrymq.kernel.reference.gather import check_bounds, gather_records
from gantrymq.kernel.reference.integers import fits
from gantrymq.kernel.reference.replies import encode_pull_reply
from gantrymq.kernel.reference.requests import decode_request
from gantrymq.kernel.values import UNIT_BYTES, KnownPull, PullRequest
from gantrymq.limits import FRAME_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.kernel import lanes
    from gantrymq.kernel.interface import Buffer
    from gantrymq.kernel.values import Frame

_SUCCESS: Final = 0
_FOUND: Final = b"FOUND"
_NUMBER_MAX: Final = 2**62


class _Place(NamedTuple):
    units: Buffer
    queue_offset: int
    log: Buffer
    log_end: int
    log_base: int
    min_offset: int
    max_offset: int
    until: float


class PullWay:
    """What policy has found out about pulls that are alike; see `lanes.PullWay`."""

    def __init__(
        self,
        hashes: Sequence[int],
        messages_max: int,
        bytes_max: int,
        version: int,
        suggest_broker_id: int,
        note: object,
    ) -> None:
        check_bounds(0, hashes, messages_max, bytes_max)
        if not fits(version, 32) or not fits(suggest_broker_id, 64):
            raise InvalidValue("reply: a number is out of range")
        self._hashes = tuple(hashes)
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._version = version
        self._suggested = suggest_broker_id
        self._note = note
        self._place: _Place | None = None

    @property
    def note(self) -> object:
        """Return what the caller has noted."""
        return self._note

    def point(
        self,
        units: Buffer,
        queue_offset: int,
        log: Buffer,
        log_end: int,
        log_base: int,
        min_offset: int,
        max_offset: int,
        until: float,
    ) -> None:
        """Read on elsewhere."""
        check_buffer(units)
        check_range(log, 0, log_end)
        for number in (queue_offset, log_base, min_offset, max_offset):
            if not 0 <= number <= _NUMBER_MAX:
                raise InvalidValue(f"way: {number} is not between 0 and 2**62")
        self._place = _Place(
            units, queue_offset, log, log_end, log_base, min_offset, max_offset, until
        )

    def answer(self, pull: PullRequest, now: float) -> tuple[bytes, int, int]:
        """Return the answer to a pull, its messages and their bytes; nothing if it is not here."""
        place = self._place
        if place is None or now > place.until:
            return b"", 0, 0
        start = (pull.queue_offset - place.queue_offset) * UNIT_BYTES
        if not 0 <= start < len(place.units):
            return b"", 0, 0
        found = gather_records(
            place.units, start, len(place.units), place.log, 0, place.log_end, place.log_base,
            self._hashes, self._messages_max, self._bytes_max,
        )  # fmt: skip
        if not found.messages:
            return b"", 0, 0
        head = encode_pull_reply(
            pull.opaque, pull.serialize_type, self._version, _SUCCESS, _FOUND, self._suggested,
            pull.queue_offset + (found.end - start) // UNIT_BYTES, place.min_offset,
            place.max_offset, len(found.records),
        )  # fmt: skip
        return head + found.records, found.messages, len(found.records)


class PullLane:
    """What is remembered of pulls. Owned by one task; see `lanes.PullLane`."""

    def __init__(self, ways_max: int) -> None:
        if ways_max < 1:
            raise InvalidValue("lane: ways_max must be positive")
        self._ways_max = ways_max
        self._ways: dict[PullRequest, PullWay] = {}

    def __len__(self) -> int:
        """Return how many are remembered."""
        return len(self._ways)

    def remember(self, buffer: Buffer, frame: Frame, way: lanes.PullWay) -> bool:
        """Remember a way for all pulls like the one in a frame."""
        if not isinstance(way, PullWay):
            raise TypeError("a way of this kernel is needed")
        pull = _pull(buffer, frame)
        if pull is None:
            return False
        key = _key(pull)
        if key not in self._ways and len(self._ways) >= self._ways_max:
            self._ways.clear()
        self._ways[key] = way
        return True

    def take(self, buffer: Buffer, start: int, end: int, now: float) -> KnownPull | None:
        """Return the pull at the front of a range if it is known, with its answer."""
        check_range(buffer, start, end)
        try:
            frame = frame_at(buffer, start, end, FRAME_BYTES_MAX)
        except ProtocolError:
            return None
        pull = None if frame is None else _pull(buffer, frame)
        if frame is None or pull is None:
            return None
        way = self._ways.get(_key(pull))
        if way is None:
            return None
        return KnownPull(
            way, frame.end, pull.queue_offset, pull.commit_offset, *way.answer(pull, now)
        )

    def forget(self) -> None:
        """Know no pull any more."""
        self._ways.clear()


def _pull(buffer: Buffer, frame: Frame) -> PullRequest | None:
    """Return the pull in a frame, if it is one that may be remembered."""
    request = decode_request(buffer, frame)
    if not isinstance(request, PullRequest) or request.oneway or request.extra_fields:
        return None
    return request


def _key(pull: PullRequest) -> PullRequest:
    return pull._replace(opaque=0, queue_offset=0, commit_offset=0)
