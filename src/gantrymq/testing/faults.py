"""Faults between a broker and its connections, switched on and off by a test.

A `FaultyService` stands in front of the broker's own. Without a fault it hands bytes on as they
are; with one it looks at each request. The first fault that concerns a request is the one it gets.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.kernel import kernel
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.frame import decode_frame
from gantrymq.wire.peer import Taken

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gantrymq.kernel.interface import Buffer
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Peer, Pending, Service

SENDS: Final = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
    }
)
"""What producers send messages with."""
READS: Final = frozenset(
    {RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE, RequestCode.POP_MESSAGE}
)
"""What consumers get messages with."""
DELAY_S_MAX: Final = 600.0


class _Kind(Enum):
    REFUSE = auto()
    DELAY = auto()
    LOSE_ANSWER = auto()


@dataclass(slots=True)
class _Fault:
    kind: _Kind
    requests: frozenset[int] | None
    """None is all of them."""
    times: int | None
    """How often it will still happen; None is always."""
    code: int = 0
    remark: str = ""
    seconds: float = 0.0

    def concerns(self, code: int) -> bool:
        return self.times != 0 and (self.requests is None or code in self.requests)


class Faults:
    """The faults that are switched on, and the connections there are. Used on the loop's thread."""

    def __init__(self) -> None:
        self._faults: list[_Fault] = []
        self._peers: dict[int, Peer] = {}
        self.happened = 0
        """How many requests met with a fault."""

    def __bool__(self) -> bool:
        """Tell whether anything is switched on."""
        return bool(self._faults)

    @property
    def connections(self) -> int:
        """Return how many connections are open."""
        return len(self._peers)

    def refuse(
        self, code: int, remark: str, requests: Iterable[int] | None, times: int | None
    ) -> None:
        """Answer requests with a code and do nothing."""
        self._add(_Fault(_Kind.REFUSE, _codes(requests), times, code, remark))

    def delay(self, seconds: float, requests: Iterable[int] | None, times: int | None) -> None:
        """Do what is asked, and answer later."""
        if not 0 <= seconds <= DELAY_S_MAX:
            raise InvalidValue(f"a delay of {seconds} s: give 0 to {DELAY_S_MAX:.0f}")
        self._add(_Fault(_Kind.DELAY, _codes(requests), times, seconds=seconds))

    def lose_answers(self, requests: Iterable[int] | None, times: int | None) -> None:
        """Do what is asked, and cut the connection instead of answering."""
        self._add(_Fault(_Kind.LOSE_ANSWER, _codes(requests), times))

    def heal(self) -> None:
        """Switch everything off."""
        self._faults.clear()

    def drop_connections(self) -> int:
        """Cut all connections; return how many there were."""
        peers = list(self._peers.values())
        for peer in peers:
            peer.close("a test drops connections")
        return len(peers)

    def _add(self, fault: _Fault) -> None:
        if fault.times is not None and fault.times < 1:
            raise InvalidValue(f"times is {fault.times}: give 1 or more, or None for always")
        self._faults.append(fault)

    def _find(self, code: int) -> _Fault | None:
        """Return the fault that a request meets with, counted."""
        found = next((fault for fault in self._faults if fault.concerns(code)), None)
        if found is None:
            return None
        self.happened += 1
        if found.times is not None:
            found.times -= 1
            if found.times == 0:
                self._faults.remove(found)
        return found


class FaultyService:
    """A broker's service with faults in front."""

    def __init__(self, inner: Service, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    def opened(self, peer: Peer) -> None:
        """Note a connection."""
        self._faults._peers[peer.number] = peer
        self._inner.opened(peer)

    def closed(self, peer: Peer) -> None:
        """Forget a connection."""
        self._faults._peers.pop(peer.number, None)
        self._inner.closed(peer)

    @property
    def takes_turns(self) -> bool:
        """Tell whether the service behind does."""
        return self._inner.takes_turns

    def take_turn(
        self, buffer: Buffer, parts: Sequence[tuple[int, int, Peer]]
    ) -> list[tuple[int, bytes]]:
        """Take nothing while faults are on: each request is looked at."""
        return [] if self._faults else self._inner.take_turn(buffer, parts)

    def take(self, buffer: Buffer, start: int, end: int, peer: Peer) -> Taken:
        """Take requests, each with the fault that concerns it; see `Service`."""
        if not self._faults:
            return self._inner.take(buffer, start, end, peer)
        frames, behind = kernel.split_frames(buffer, start, end, FRAME_BYTES_MAX)
        answers: list[Pending] = []
        for frame in frames:
            try:
                request = decode_frame(buffer, frame)
            except ProtocolError:
                if frame.start == start:
                    raise
                return Taken(frame.start, answers)
            if request.is_response:
                return Taken(frame.start, answers)
            fault = self._faults._find(request.code)
            if fault is not None and fault.kind is _Kind.REFUSE:
                answers += _refusal(request, fault)
                continue
            taken = self._inner.take(buffer, frame.start, frame.end, peer).answers
            answers += taken if fault is None else [_spoilt(one, fault, peer) for one in taken]
        return Taken(behind, answers)


def _codes(requests: Iterable[int] | None) -> frozenset[int] | None:
    return None if requests is None else frozenset(int(code) for code in requests)


def _refusal(request: Command, fault: _Fault) -> list[Pending]:
    return [] if request.is_oneway else [request.response(fault.code, remark=fault.remark)]


async def _spoilt(pending: Pending, fault: _Fault, peer: Peer) -> Answer:
    """Return an answer late, or cut the connection when it is there."""
    if asyncio.isfuture(pending) or asyncio.iscoroutine(pending):
        answer: Answer = await pending
    else:
        answer = pending
    if fault.kind is _Kind.LOSE_ANSWER:
        peer.close("a test loses the answer")
        return None
    await asyncio.sleep(fault.seconds)
    return answer
