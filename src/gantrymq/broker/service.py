"""Received bytes in, answers out: the broker as a listener sees it.

A run of ordinary sends goes through the kernel's lane in one call. What the lane does not take is
one frame for policy: a send or a pull that the kernel has decoded, or a command for the router.

Owned by the event loop's task.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from gantrymq.broker.aging import SENDS
from gantrymq.broker.answers import refusal
from gantrymq.broker.storing import STORED_CODES, not_stored, region_fields
from gantrymq.errors import ProtocolError
from gantrymq.kernel import LaneStop, kernel
from gantrymq.kernel.values import PullRequest, SendRequest
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.store.allocation import FileNotMade
from gantrymq.store.errors import StoreBusy, StoreNotWritable
from gantrymq.store.status import PutStatus
from gantrymq.wire.codes import SPOKEN_VERSION, RequestCode, ResponseCode
from gantrymq.wire.frame import FrameParser, decode_frame, encode_frame
from gantrymq.wire.peer import DATA_BYTES_ENOUGH, RawReply, Taken, answer_bytes
from gantrymq.wire.response_errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.broker.aging import Ages
    from gantrymq.broker.counting import Counting
    from gantrymq.broker.known_pulls import KnownPulls
    from gantrymq.broker.pull import Pulling
    from gantrymq.broker.quotas.quotas import Quotas
    from gantrymq.broker.router import Router
    from gantrymq.broker.send import Sending
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.broker.storing import Storing
    from gantrymq.kernel import SendRun
    from gantrymq.kernel.interface import Buffer
    from gantrymq.kernel.values import Frame
    from gantrymq.store.message_store import MessageStore
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Peer, Pending


BUSY_REMARK: Final = b"[OVERLOAD]broker busy: more comes than it can take in"
"""Short: at several times the capacity most of the time goes into refusals."""
LENGTH_BYTES: Final = 4
"""In front of a frame: how many bytes follow."""


class _Answers(list["Pending"]):
    """The answers of one call; knows how large those are that carry data."""

    __slots__ = ("data_bytes",)

    def __init__(self) -> None:
        super().__init__()
        self.data_bytes = 0

    def add_data(self, answer: Pending) -> bool:
        """Add the answer to a pull or a command; tell whether that is enough for one call."""
        self.append(answer)
        self.data_bytes += answer_bytes(answer)
        return self.data_bytes > DATA_BYTES_ENOUGH


class ConnectionWatch(Protocol):
    """Wants to know of connections."""

    def peer_closed(self, peer: Peer) -> None:
        """Forget what was known of it."""
        ...


class BrokerService:
    """Serves every connection of a broker."""

    def __init__(
        self,
        store: MessageStore,
        storing: Storing,
        sending: Sending,
        pulling: Pulling,
        known: KnownPulls,
        router: Router,
        settings: LiveSettings,
        ages: Ages,
        counting: Counting,
        quotas: Quotas,
        watches: Sequence[ConnectionWatch],
    ) -> None:
        self._store = store
        self._storing = storing
        self._sending = sending
        self._pulling = pulling
        self.known = known
        self._router = router
        self._settings = settings
        self._ages = ages
        self._counting = counting
        self._quotas = quotas
        self._lane_traces = settings.now.trace_on
        """What the lane was made to answer; `traceOn` may change while it runs."""
        self._watches = tuple(watches)
        self._pullers: set[int] = set()
        """Connections whose last request was no send: their next one is none either, mostly."""
        self.uses_lane = True
        """False while somebody must see every send: a hook, or access control."""
        self._share = 1.0
        self._pick = Random().random  # noqa: S311 - whom it meets is no secret
        self.asks_router = False
        """True with access control: every request goes by the router, which checks it."""

    def opened(self, peer: Peer) -> None:
        """Have nothing to do: a connection is nobody's before its first request."""

    def closed(self, peer: Peer) -> None:
        """Tell all who remember connections."""
        self._pullers.discard(peer.number)
        for watch in self._watches:
            watch.peer_closed(peer)

    def press(self, share: float) -> None:
        """Take in this share of the sends from now on, and refuse the others; 1 is all."""
        self._share = share if self._settings.now.fast_failure else 1.0

    @property
    def taken_share(self) -> float:
        """Return which part of the sends is taken in."""
        return self._share

    @property
    def waiting_sends(self) -> int:
        """Return how many sends wait for the disk or a slave."""
        return self._storing.waiting

    @property
    def takes_turns(self) -> bool:
        """Tell that the lane takes ordinary sends of many connections in one call."""
        return True

    def take_turn(
        self, buffer: Buffer, parts: Sequence[tuple[int, int, Peer]]
    ) -> list[tuple[int, bytes]]:
        """Take the ordinary sends of several connections; see `Service`."""
        if (
            not self.uses_lane
            or self._sending.begins_later
            or not self._store.waits_for_nothing
            or self._settings.now.trace_on is not self._lane_traces
        ):
            return []
        if self._share < 1.0:
            return self._take_share(buffer, parts)
        return self._append_turn(buffer, parts)

    def _append_turn(
        self, buffer: Buffer, parts: Sequence[tuple[int, int, Peer]]
    ) -> list[tuple[int, bytes]]:
        turn = self._store.append_turn(
            buffer, [(start, end, peer.host) for start, end, peer in parts]
        )
        if self._quotas.watches_lane:
            self._counting.collect_sends()
        return turn.runs

    def _take_share(
        self, buffer: Buffer, parts: Sequence[tuple[int, int, Peer]]
    ) -> list[tuple[int, bytes]]:
        """Take in some of the parts, still in one call, and refuse the sends of the others."""
        luck = [self._pick() < self._share for _ in parts]
        wanted = [part for part, is_lucky in zip(parts, luck, strict=True) if is_lucky]
        stored = iter(self._append_turn(buffer, wanted) if wanted else ())
        runs: list[tuple[int, bytes]] = []
        for (start, end, _), is_lucky in zip(parts, luck, strict=True):
            run = next(stored, None) if is_lucky else self._refuse(buffer, start, end)
            if run is None:
                break
            runs.append(run)
        return runs

    def take(self, buffer: Buffer, start: int, end: int, peer: Peer) -> Taken:
        """Take the complete frames of a range; see `Service`."""
        position, answers, is_unknown = start, _Answers(), False
        if self._share < 1.0 and self._pick() >= self._share:
            position = self._shed(buffer, start, end, answers)
        if peer.number in self._pullers and self.uses_lane and not peer.waited_ms:
            known = self.known.take(buffer, position, end, peer)
            if known is not None:
                position, answer = known
                if position == end and not answers:
                    return Taken(end, [answer])  # most reads are one pull
                answers.add_data(answer)
            is_unknown = known is None
        take_some = self._take_old if peer.waited_ms else self._take_some
        try:
            while position < end and answers.data_bytes <= DATA_BYTES_ENOUGH:
                if is_unknown:  # a pull at the end of its queue, most likely: asked once, not twice
                    taken = self._policy(buffer, position, end, peer, answers, tried=False)
                    is_unknown = False
                else:
                    taken = take_some(buffer, position, end, peer, answers)
                if taken == position:
                    break
                position = taken
        except ProtocolError:
            if position == start:
                raise
            # Those before the bad frame are answered; the next call begins with it.
        return Taken(position, answers, self.uses_lane and peer.number not in self._pullers)

    def _shed(self, buffer: Buffer, start: int, end: int, answers: _Answers) -> int:
        """Refuse the sends at the front of a range, in one call; return where they end.

        Reading and refusing costs a fraction of storing: what is left of the time is for those
        that are taken in. Whatever is no send is never refused for this.
        """
        behind, replies = self._refuse(buffer, start, end)
        if replies:
            answers.append(RawReply((replies,)))
        return behind

    def _refuse(self, buffer: Buffer, start: int, end: int) -> tuple[int, bytes]:
        settings = self._settings.now
        refused = kernel.refuse_sends(
            buffer, start, end, FRAME_BYTES_MAX, SPOKEN_VERSION, ResponseCode.SYSTEM_BUSY,
            BUSY_REMARK, settings.region.encode(), settings.trace_on,
        )  # fmt: skip
        if refused.requests:
            self._counting.store.refused("OVERLOAD", refused.requests)
        return refused.end, refused.replies

    def _take_some(
        self, buffer: Buffer, start: int, end: int, peer: Peer, answers: _Answers
    ) -> int:
        """Take what the lanes take, then one or more frames for policy; return how far it came."""
        if self.uses_lane and peer.number in self._pullers:
            known = self.known.take(buffer, start, end, peer)
            if known is not None:
                answers.add_data(known[1])
                return known[0]
        elif self.uses_lane:
            run = None if self._sending.begins_later else self._lane(buffer, start, end, peer)
            if run is not None:
                if run.requests:
                    answers.append(self._held(run))
                if run.stop is LaneStop.DRAINED or run.consumed > start:
                    return run.consumed
            return self._policy(buffer, start, end, peer, answers, tried=True)
        return self._policy(buffer, start, end, peer, answers, tried=not self.uses_lane)

    def _take_old(self, buffer: Buffer, start: int, end: int, peer: Peer, answers: _Answers) -> int:
        """Do the same with bytes that lay for a while: what is too old is refused, one by one."""
        frames, behind = kernel.split_frames(buffer, start, end, FRAME_BYTES_MAX)
        for number, frame in enumerate(frames):
            request = kernel.decode_request(buffer, frame)
            asked: SendRequest | PullRequest | Command
            if isinstance(request, SendRequest):
                asked, code, oneway = request, request.code, request.oneway
            elif isinstance(request, PullRequest):
                asked, code, oneway = request, RequestCode.PULL_MESSAGE, request.oneway
            else:
                try:
                    command = decode_frame(buffer, frame)
                except ProtocolError:
                    if number == 0:
                        raise
                    return frame.start
                if command.is_response:
                    return frame.start
                asked, code, oneway = command, command.code, command.is_oneway
            try:
                self._ages.check(code, peer.waited_ms, len(frames) - number - 1)
            except ResponseError as error:
                if not oneway:
                    region = region_fields(self._settings.now) if code in SENDS else None
                    answers.append(refusal(asked, error, region))
            else:
                self._take_some(buffer, frame.start, frame.end, peer, answers)
                if answers.data_bytes > DATA_BYTES_ENOUGH:
                    return frame.end
        return behind

    # -- the lane -------------------------------------------------------------------------------

    def _lane(self, buffer: Buffer, start: int, end: int, peer: Peer) -> SendRun | None:
        """Let the kernel take what it can; None if the store takes nothing now."""
        if self._storing.is_full:
            return None
        try:
            run = self._store.append_sends(buffer, start, end, peer.host)
        except (StoreNotWritable, StoreBusy, FileNotMade):
            # Policy finds the same, and tells every sender in turn.
            return None
        if self._quotas.watches_lane:
            self._counting.collect_sends()
        return run

    def _held(self, run: SendRun) -> Pending:
        replies = run.replies
        if not replies:  # oneway, all of them
            return None
        return self._storing.wait(
            self._store.log.wrote_offset,
            lambda status: self._outcome(replies, status),
            sends=run.requests,
        )

    def _outcome(self, replies: bytes, status: PutStatus) -> Answer:
        """Return the replies of a run; those of the lane say that all went well."""
        settings = self._settings.now
        if status is PutStatus.PUT_OK and settings.trace_on is self._lane_traces:
            return RawReply((replies,))
        code, region = STORED_CODES.get(status), region_fields(settings)
        frames = []
        for reply in FrameParser().feed(replies):
            if code is not None:
                told = msgspec.structs.replace(reply, code=code, fields=reply.fields | region)
            else:
                told = refusal(reply, not_stored(status, self._store), region)
            frames.append(encode_frame(told))
        return RawReply(tuple(frames))

    # -- everything else ------------------------------------------------------------------------

    def _policy(
        self,
        buffer: Buffer,
        start: int,
        end: int,
        peer: Peer,
        answers: _Answers,
        *,
        tried: bool,
    ) -> int:
        """Handle frames up to the next one that may be the lane's, or is a response.

        `tried` tells that the lane does not want the first one. Then only that one is handled: if
        the rest were split each time, a buffer full of sends for policy would cost its square.
        """
        if tried and self.uses_lane:
            end = min(
                end, start + LENGTH_BYTES + int.from_bytes(buffer[start : start + LENGTH_BYTES])
            )
        frames, behind = kernel.split_frames(buffer, start, end, FRAME_BYTES_MAX)
        for number, frame in enumerate(frames):
            request = None if self.asks_router else kernel.decode_request(buffer, frame)
            if isinstance(request, PullRequest):
                self._pullers.add(peer.number)
                answer = self._pulling.pull(request, peer)
                if self.uses_lane and isinstance(answer, RawReply):
                    self.known.learn(buffer, frame, request)
                if answers.add_data(answer):
                    return frame.end
            elif isinstance(request, SendRequest):
                if self.uses_lane and (number or not tried):
                    self._pullers.discard(peer.number)
                    if number == 0:
                        return self._take_some(buffer, start, end, peer, answers)
                    return frame.start
                body = bytes(memoryview(buffer)[request.body_start : request.body_end])
                answers.append(self._sending.send(request, body, peer))
            elif not self._command(buffer, frame, peer, answers, is_first=number == 0):
                return frame.start
            elif answers.data_bytes > DATA_BYTES_ENOUGH:
                return frame.end
        return behind

    def _command(
        self, buffer: Buffer, frame: Frame, peer: Peer, answers: _Answers, *, is_first: bool
    ) -> bool:
        """Handle a frame that the kernel leaves to the general codec; False if it is not taken."""
        try:
            command = decode_frame(buffer, frame)
        except ProtocolError:
            if is_first:
                raise
            return False
        if command.is_response:
            return False
        answers.add_data(self._router.handle(command, peer))
        return True
