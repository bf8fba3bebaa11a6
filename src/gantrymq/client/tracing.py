"""Message trace: what became of each send, as messages that Apache's tools find by message id.

    record   fields with 0x01 between them, 0x02 at the end; a missing one is the word null
    message  many records; KEYS are the ids and keys of all of them

A trace is a help, never a hindrance: records wait in a queue with a bound, one task sends them many
at a time, what does not fit or cannot be sent is dropped and counted. No send waits for any of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from gantrymq.client.outgoing import Outgoing
from gantrymq.client.results import SendStatus, TransactionState
from gantrymq.errors import GantryError
from gantrymq.wire import properties as names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.client.core import ClientCore
    from gantrymq.client.lanes import Target
    from gantrymq.client.received import ReceivedMessage
    from gantrymq.client.results import SendResult
    from gantrymq.client.sending import Sending
    from gantrymq.model.message import Message

logger = logging.getLogger(__name__)

RECORDS_MAX: Final = 2048
"""Records that wait to be sent."""
BATCH_MAX: Final = 20
"""Records of one message."""
KEYS_BYTES_MAX: Final = 10_000
PERIOD_S: Final = 0.5
SEND_TIMEOUT_S: Final = 5.0
DEFAULT_REGION: Final = "DefaultRegion"
FIELD_END: Final = "\x01"
RECORD_END: Final = "\x02"


class MessageType(IntEnum):
    """What a traced message is; the numbers are the wire's."""

    NORMAL = 0
    HALF = 1
    COMMITTED = 2
    DELAYED = 3
    ORDERED = 4


class Traced:
    """A record, and what it is found by."""

    __slots__ = ("keys", "text")

    def __init__(self, fields: Sequence[object], keys: Sequence[str]) -> None:
        self.text = FIELD_END.join(map(_spelled, fields)) + RECORD_END
        self.keys = [key for key in keys if key]


def _bytes_of(text: str) -> int:
    return len(text.encode(errors="replace"))


def _spelled(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class TraceQueue:
    """Records on their way to the trace topic. Producers and consumers have one each."""

    def __init__(self, core: ClientCore, sending: Sending, topic: str) -> None:
        self._core = core
        self._sending = sending
        self._topic = topic
        self._waiting: deque[Traced] = deque()
        self._due = asyncio.Event()
        self._flushing = asyncio.Lock()
        self.dropped = 0
        """Records that were not sent."""
        self._task = core.spawn(self._run(), "traces")

    def add(self, record: Traced) -> None:
        """Take a record, or drop it."""
        if len(self._waiting) >= RECORDS_MAX:
            self.dropped += 1
            return
        self._waiting.append(record)
        if len(self._waiting) >= BATCH_MAX:
            self._due.set()

    async def close(self, timeout_s: float) -> None:
        """Send what waits, for so long at most; the rest is dropped."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._flush()  # behind what is being sent already
        except TimeoutError:
            pass
        self._task.cancel()
        self.dropped += len(self._waiting)
        self._waiting.clear()
        if self.dropped:
            logger.warning("%d trace records were dropped", self.dropped)

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(PERIOD_S):
                    await self._due.wait()
            except TimeoutError:
                pass
            self._due.clear()
            try:
                await self._flush()
            except Exception:  # one bad record must not be the last
                logger.exception("trace records could not be sent")

    async def _flush(self) -> None:
        async with self._flushing:
            while self._waiting:
                records: list[Traced] = []
                size = 0
                while self._waiting and len(records) < BATCH_MAX and size < KEYS_BYTES_MAX:
                    record = self._waiting.popleft()
                    size += sum(map(_bytes_of, record.keys))
                    records.append(record)
                await self._send(records)

    async def _send(self, records: list[Traced]) -> None:
        keys = " ".join(dict.fromkeys(key for record in records for key in record.keys))
        message_id = self._core.identity.keys.next()
        properties = f"{names.UNIQ_KEY}\x01{message_id}\x02{names.KEYS}\x01{keys}".encode()
        body = "".join(record.text for record in records).encode(errors="replace")
        try:
            await self._sending.send(
                Outgoing(self._topic, message_id, properties, body),
                None,
                self._sending.deadline(SEND_TIMEOUT_S),
            )
        except GantryError as error:
            self.dropped += len(records)
            logger.info("%d trace records were not sent: %s", len(records), error)


class Tracer:
    """Traces the sends of one producer."""

    def __init__(self, core: ClientCore, sending: Sending, group: str, topic: str) -> None:
        self._core = core
        self._sending = sending
        self._group = core.namespace.unwrap(group)
        self._queue = TraceQueue(core, sending, topic)

    @property
    def dropped(self) -> int:
        """Return how many records were not sent."""
        return self._queue.dropped

    async def close(self, timeout_s: float) -> None:
        """Send what waits, for so long at most."""
        await self._queue.close(timeout_s)

    async def traced(
        self, message: Message, outgoing: Outgoing, target: Target | None, deadline: float
    ) -> SendResult:
        """Send a message, and note what became of it.

        Raises:
            as `Sending.send` does.
        """
        begun_ms, begun = self._core.clock.now_ms(), self._core.clock.monotonic()
        result: SendResult | None = None
        try:
            result = await self._sending.send(outgoing, target, deadline)
        finally:
            if result is None or result.trace_on:
                cost_ms = int((self._core.clock.monotonic() - begun) * 1000)
                self._note(message, outgoing, result, begun_ms, cost_ms)
        return result

    def _note(
        self,
        message: Message,
        outgoing: Outgoing,
        result: SendResult | None,
        begun_ms: int,
        cost_ms: int,
    ) -> None:
        kind = MessageType.NORMAL
        if outgoing.sys_flag & 0xC:
            kind = MessageType.HALF
        elif message.delay_level or message.deliver_at_ms is not None:
            kind = MessageType.DELAYED
        ok = result is not None and result.status is SendStatus.SEND_OK
        fields = (
            "Pub", begun_ms, (result and result.region) or DEFAULT_REGION, self._group,
            message.topic, outgoing.message_id, message.tags or "", " ".join(message.keys),
            self._store_host(result), len(outgoing.body), cost_ms, int(kind),
            result.offset_id if result is not None else None, ok,
        )  # fmt: skip
        self._queue.add(Traced(fields, (outgoing.message_id, *message.keys)))

    def _store_host(self, result: SendResult | None) -> str:
        if result is None:
            return ""
        route = self._core.routes.known(result.queue.topic)
        return (route.address(result.queue.broker_name) if route is not None else None) or ""

    def end(
        self, message: Message, sent: SendResult, state: TransactionState, *, from_check: bool
    ) -> None:
        """Note how a transaction ended."""
        fields = (
            "EndTransaction", self._core.clock.now_ms(), sent.region or DEFAULT_REGION,
            self._group, message.topic, sent.message_id, message.tags or "",
            " ".join(message.keys), self._store_host(sent), int(MessageType.COMMITTED),
            sent.transaction_id or sent.message_id, _STATES[state], from_check,
        )  # fmt: skip
        self._queue.add(Traced(fields, (sent.message_id, *message.keys)))

    def end_checked(self, message: ReceivedMessage, state: TransactionState) -> None:
        """Note how a transaction ended that the broker asked about."""
        fields = (
            "EndTransaction", self._core.clock.now_ms(), DEFAULT_REGION, self._group,
            message.topic, message.message_id, message.tags or "", " ".join(message.keys),
            message.store_host.text, int(MessageType.COMMITTED),
            message.transaction_id or message.message_id, _STATES[state], True,
        )  # fmt: skip
        self._queue.add(Traced(fields, (message.message_id, *message.keys)))


_STATES: Final = {
    TransactionState.COMMIT: "COMMIT_MESSAGE",
    TransactionState.ROLLBACK: "ROLLBACK_MESSAGE",
    TransactionState.UNKNOWN: "UNKNOW",
}
"""As Java spells them."""
