"""Sends: the quick way for a message that goes through at once, and the patient one for the rest.

Nearly every send finds its connection open, room to write, and a plain success in the answer. For
ordinary messages there is a quick way, which does nothing that it need not. Anything else ends up
in `_patiently`, which knows the rules: up to `1 + retries` tries, each with another broker than the
last one that failed, for errors that another broker may not have, within the time of the whole
send. Java's producers have the same rules. When there is no other broker, a moment passes between
two tries.

A send that fails with PeerGone or PeerLate may have been stored all the same; a try after it may
store it twice, under the same message id. That is RocketMQ's promise: at least once.

Owned by the event loop's thread.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from gantrymq.client.errors import ClientError, NoRoute
from gantrymq.client.in_flight import InFlight
from gantrymq.client.lane_table import LaneTable
from gantrymq.client.outgoing import Outgoing
from gantrymq.client.results import SendResult, SendStatus
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.wire.headers.send import SendMessageResponse
from gantrymq.wire.peer import PeerGone, PeerLate
from gantrymq.wire.response_errors import ResponseError, error_for
from gantrymq.wire.send_frame import SendAnswer

if TYPE_CHECKING:
    from gantrymq.client.core import ClientCore
    from gantrymq.client.faults import Faults
    from gantrymq.client.lanes import Target
    from gantrymq.wire.command import Command

PAUSE_S: Final = 0.1
"""Before a second try at the same broker; doubled before a third."""
_OK: Final = SendStatus.SEND_OK
_STORED: Final = frozenset(int(status) for status in SendStatus)


class Sending:
    """The sends of one producer."""

    def __init__(
        self,
        core: ClientCore,
        group: str,
        *,
        in_flight_max: int,
        retries: int,
        retry_not_stored: bool,
        faults: Faults | None,
    ) -> None:
        self._core = core
        self._routes = core.routes
        self.lanes = LaneTable(core, group, faults)
        self._lanes = self.lanes.by_topic
        self._tries = 1 + retries
        self._retry_not_stored = retry_not_stored
        self._faults = faults
        self._born_ms = -1
        self._born = b""
        self.in_flight = InFlight(in_flight_max)
        self._now = asyncio.get_running_loop().time

    def deadline(self, timeout_s: float) -> float:
        """Return when a send that begins now is to have ended, on the loop's clock."""
        return self._now() + timeout_s

    async def send(self, outgoing: Outgoing, target: Target | None, deadline: float) -> SendResult:
        """Send a message and return what the broker says; with `target` to that queue only.

        Raises:
            NoRoute: there is nobody to send to.
            ResponseError: the broker did not take it; the class is that of its code.
            PeerGone, PeerLate: it may have been stored.
            TooManyInFlight: too many others are under way.
        """
        in_flight = self.in_flight
        if in_flight.free > 0:
            in_flight.free -= 1
        else:
            await in_flight.enter(max(deadline - self._now(), 0.0))
        try:
            return await self._patiently(outgoing, target, deadline)
        finally:
            in_flight.leave()

    async def quickly(
        self,
        topic: str,
        message_id: str,
        properties: bytes,
        body: bytes,
        now_ms: int,
        timeout_s: float,
    ) -> SendResult:
        """Send an ordinary message the quick way, if nothing is in it; else, or then, patiently.

        Raises:
            InvalidValue: the message is larger than a peer accepts.
            and as `send` does.
        """
        in_flight, lane = self.in_flight, self._lanes.get(topic)
        now = self._now()
        if lane is None or lane.version != self._routes.version or in_flight.free <= 0:
            made = Outgoing(topic, message_id, properties, body)
            return await self.send(made, None, now + timeout_s)
        target = lane.next()
        connection = target.broker.connection
        if connection is None or not connection.is_ready:
            made = Outgoing(topic, message_id, properties, body)
            return await self.send(made, None, now + timeout_s)
        opaque = connection.sends.next_send_opaque()
        if now_ms != self._born_ms:
            self._born_ms, self._born = now_ms, b"%d" % now_ms
        frame = target.plain.build(opaque, self._born, properties, body)
        problem: GantryError | Command
        in_flight.free -= 1
        try:
            try:
                answer = await connection.ask_frame(opaque, frame, timeout_s, now)
            except (PeerGone, PeerLate) as error:
                problem = error
            else:
                if isinstance(answer, SendAnswer):
                    _opaque, queue_id, offset, offset_id, transaction_id, region, trace_on = answer
                    queue = target.queue
                    if queue_id != queue.queue_id:
                        queue = _queue(target, queue_id)
                    return SendResult(
                        _OK, message_id, queue, offset, offset_id, transaction_id, None, region,
                        trace_on,
                    )  # fmt: skip
                problem = answer
            made = Outgoing(topic, message_id, properties, body)
            return await self._go_on(made, target, problem, now + timeout_s)
        finally:
            in_flight.leave()

    async def send_oneway(self, outgoing: Outgoing, target: Target | None, deadline: float) -> None:
        """Send a message that gets no answer; return when it is on its way.

        Raises:
            NoRoute, PeerGone, PeerLate: there is nobody to send to.
        """
        chosen = target
        if chosen is None:
            chosen = (await self.lanes.get(outgoing.topic, deadline)).next()
        try:
            async with asyncio.timeout_at(deadline):
                connection = await self.lanes.connection(chosen)
        except TimeoutError:
            raise PeerLate(f"{chosen.broker.address} took no message in time") from None
        frame_of = chosen.frames(outgoing.code, outgoing.sys_flag, outgoing.flag)
        opaque = connection.sends.next_send_opaque()
        connection.post(
            frame_of.build(opaque, self.born(), outgoing.properties, outgoing.body, oneway=True)
        )

    def born(self) -> bytes:
        """Return the present time as a header has it."""
        now_ms = self._core.clock.now_ms()
        if now_ms != self._born_ms:
            self._born_ms, self._born = now_ms, b"%d" % now_ms
        return self._born

    # -- the patient way --------------------------------------------------------------------------

    async def _go_on(
        self, outgoing: Outgoing, target: Target, problem: GantryError | Command, deadline: float
    ) -> SendResult:
        """Go on with a message whose first try did not end in a plain success."""
        if isinstance(problem, GantryError):
            return await self._patiently(outgoing, None, deadline, (target, problem))
        try:
            result = _read(outgoing, target, problem)
        except GantryError as error:
            return await self._patiently(outgoing, None, deadline, (target, error))
        if result.is_ok or not self._retry_not_stored:
            return result
        not_ok = ClientError(f"stored, but {result.status.name}")
        return await self._patiently(outgoing, None, deadline, (target, not_ok), result)

    async def _patiently(
        self,
        outgoing: Outgoing,
        target: Target | None,
        deadline: float,
        failed: tuple[Target, GantryError] | None = None,
        stored: SendResult | None = None,
    ) -> SendResult:
        """Try until it is sent, the tries are used up, the time is over or trying is no use.

        `failed` is a try that was made already; `stored` what came of it, if anything did.
        """
        tries = self._tries if target is None else 1
        problems: list[str] = []
        last: Target | None = None
        error: GantryError | None = None
        made = 0
        if failed is not None:
            last, error = failed
            made = 1
            self._note_failure(last, error, problems)
        while made < tries and (
            error is None
            or stored is not None
            or (last is not None and await self._is_gone(last, error, deadline))
            or error.retriable
        ):
            chosen = target
            if chosen is None:
                try:
                    chosen = await self._another(outgoing.topic, last, deadline)
                except NoRoute as gone:
                    if error is None:
                        raise
                    problems.append(str(gone))
                    break  # what was tried before says more: it may have been stored
            if last is not None and chosen.broker.name == last.broker.name:
                await asyncio.sleep(min(PAUSE_S * 2 ** (made - 1), deadline - self._now()))
            if deadline - self._now() <= 0:
                break
            made += 1
            try:
                result = await self._try(outgoing, chosen, deadline - self._now())
            except GantryError as caught:
                last, error = chosen, caught
                self._note_failure(chosen, caught, problems)
                continue
            if result.is_ok or not self._retry_not_stored or target is not None:
                return result
            last, error, stored = chosen, ClientError(f"stored, but {result.status.name}"), result
        if stored is not None:
            return stored
        if error is None:
            raise PeerLate("there was no time left to send the message: raise timeout_s")
        error.add_note(f"tried {made} of {tries} times: {'; '.join(problems)}")
        raise error

    async def _another(self, topic: str, last: Target | None, deadline: float) -> Target:
        """Return a queue to try, of another broker than the last one if there is one."""
        avoid = last.broker.name if last is not None else None
        return (await self.lanes.get(topic, deadline)).next(avoid)

    async def _is_gone(self, target: Target, error: GantryError, deadline: float) -> bool:
        """Tell whether a queue was refused that the broker does not have any more.

        An operator has taken queues away. The broker knows it first, and the route here may be
        half a minute old: it is asked for once more, after a moment in which the name server
        hears of it too.
        """
        if not (isinstance(error, ResponseError) and "queueId" in error.remark):
            return False
        topic = target.queue.topic
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.sleep(PAUSE_S)
                await self._core.routes.get(topic, template=True, refresh=True)
        except (TimeoutError, GantryError):
            return False
        return True

    def _note_failure(self, target: Target, error: GantryError, problems: list[str]) -> None:
        problems.append(f"{target.broker.name} at {target.broker.address}: {error}")
        if isinstance(error, PeerGone | PeerLate):
            self._core.routes.refresh_soon(target.queue.topic)

    async def _try(self, outgoing: Outgoing, target: Target, timeout_s: float) -> SendResult:
        """Send once, and raise what comes of it unless the message is stored."""
        clock = self._core.clock
        begun = clock.monotonic()
        try:
            result = await self._try_untimed(outgoing, target, timeout_s)
        except GantryError as error:
            if self._faults is not None:
                failed = not isinstance(error, InvalidValue)
                self._faults.note(target.broker.name, clock.monotonic() - begun, failed=failed)
            raise
        if self._faults is not None:
            self._faults.note(target.broker.name, clock.monotonic() - begun)
        return result

    async def _try_untimed(
        self, outgoing: Outgoing, target: Target, timeout_s: float
    ) -> SendResult:
        deadline = self._now() + timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self.lanes.connection(target)
        except TimeoutError:
            raise PeerLate(
                f"{target.broker.address}: no connection to write to within {timeout_s:g} s"
            ) from None
        frame_of = target.frames(outgoing.code, outgoing.sys_flag, outgoing.flag)
        opaque = connection.sends.next_send_opaque()
        frame = frame_of.build(opaque, self.born(), outgoing.properties, outgoing.body)
        now = self._now()
        answer = await connection.ask_frame(opaque, frame, max(deadline - now, 0.001), now)
        if isinstance(answer, SendAnswer):
            return SendResult(
                _OK, outgoing.message_id, _queue(target, answer.queue_id), answer.queue_offset,
                answer.message_id, answer.transaction_id, None, answer.region, answer.trace_on,
            )  # fmt: skip
        return _read(outgoing, target, answer)


def _read(outgoing: Outgoing, target: Target, answer: Command) -> SendResult:
    """Return what an answer of any kind says about a message that is stored.

    Raises:
        ResponseError: it is not; the class is that of the answer's code.
        ContentError: the answer lacks what it must have.
    """
    if answer.code not in _STORED:
        error = error_for(answer.code, answer.remark)
        error.add_note(f"answered by {target.broker.address}")
        raise error
    header = SendMessageResponse.decode(answer.fields)
    return SendResult(
        SendStatus(answer.code),
        outgoing.message_id,
        _queue(target, header.queue_id),
        header.queue_offset,
        header.msg_id,
        header.transaction_id,
        header.recall_handle,
        header.region,
        header.trace_on != "false",
    )


def _queue(target: Target, queue_id: int) -> MessageQueue:
    queue = target.queue
    if queue.queue_id == queue_id:
        return queue
    return MessageQueue(queue.topic, queue.broker_name, QueueId(queue_id))
