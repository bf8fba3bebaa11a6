"""Sending: an operator's own message, and messages that are there already once more.

A copy keeps what is stored: the body as it is, compressed or not, its flag, its tag and keys, and
all properties but those that the next broker sets anew. A producer would refuse some of them as the
system's own, so copies take the way below it. A copy is tried once: whoever makes it must know
whether it can have arrived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.admin.messages import readable_body
from gantrymq.client.core import ClientCore
from gantrymq.client.outgoing import Outgoing
from gantrymq.client.producer import Producer
from gantrymq.client.sending import Sending
from gantrymq.model.names import is_retry_topic
from gantrymq.wire import properties as names
from gantrymq.wire.batch import BatchMessage, encode_batch
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.properties import encode_properties
from gantrymq.wire.sysflag import compression, with_compression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from gantrymq.admin.session import Session
    from gantrymq.client.results import SendResult
    from gantrymq.wire.record import MessageRecord

GROUP: Final = "TOOLS_PRODUCER"
TIMEOUT_S: Final = 10.0
IN_FLIGHT_MAX: Final = 2_000
SET_ANEW: Final = frozenset(
    {
        names.UNIQ_KEY, names.WAIT, names.DELAY, names.CLUSTER, names.MSG_REGION, names.TRACE_ON,
        names.REAL_TOPIC, names.REAL_QUEUE_ID, names.TRANSACTION_PREPARED, names.PRODUCER_GROUP,
        names.RECONSUME_TIME, names.MAX_RECONSUME_TIMES, names.MIN_OFFSET, names.MAX_OFFSET,
        names.CONSUME_START_TIME, names.TIMER_DELAY_SEC, names.TIMER_DELAY_MS,
        names.TIMER_DELIVER_MS, names.TIMER_OUT_MS, names.TIMER_ENQUEUE_MS,
        names.TIMER_DEQUEUE_MS, names.TIMER_ROLL_TIMES, names.TIMER_DELAY_LEVEL, names.POP_CK,
        names.POP_CK_OFFSET, names.FIRST_POP_TIME, names.TRANSACTION_ID,
        names.TRANSACTION_CHECK_TIMES, names.PREPARED_QUEUE_OFFSET, names.CRC32,
        names.INNER_NUM, names.INNER_BASE,
    }
)  # fmt: skip
"""Properties that a copy does not take along."""
BATCH_HEADER: Final = b"WAIT\x01true"


def producer_for(session: Session, *, trace: bool = False) -> Producer:
    """Return a producer with a session's settings; `async with` starts it."""
    settings = session.settings
    name_servers = ";".join(settings.name_servers)
    return Producer(name_servers, GROUP, settings=settings, trace=trace, timeout_s=5.0)


class Copier:
    """Sends copies of stored messages; `async with` starts it."""

    def __init__(self, session: Session) -> None:
        self._core = ClientCore(session.settings, session.clock)

    async def __aenter__(self) -> Self:
        """Start."""
        await self._core.start()
        self._sending = Sending(
            self._core, GROUP, in_flight_max=IN_FLIGHT_MAX, retries=0, retry_not_stored=False,
            faults=None,
        )  # fmt: skip
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self._core.close()

    async def copy(
        self, record: MessageRecord, topic: str, more: Mapping[str, str] | None = None
    ) -> SendResult:
        """Send one copy.

        Raises:
            ResponseError: the broker did not take it.
            NoRoute: there is nobody to send to.
            PeerGone, PeerLate: it may have been stored.
        """
        key = self._core.identity.keys.next()
        text = encode_properties(_properties(record, topic, key, more))
        packed = compression(record.raw.sys_flag)
        if packed is None and not record.raw.flag:
            now_ms = self._core.clock.now_ms()
            return await self._sending.quickly(topic, key, text, record.body, now_ms, TIMEOUT_S)
        outgoing = Outgoing(
            topic, key, text, record.body,
            sys_flag=with_compression(0, packed), flag=record.raw.flag,
        )  # fmt: skip
        return await self._sending.send(outgoing, None, self._sending.deadline(TIMEOUT_S))

    async def copy_batch(
        self, records: Sequence[tuple[MessageRecord, Mapping[str, str]]], topic: str
    ) -> list[str]:
        """Send copies with one request, all or none of them; return their ids. Raises as `copy`."""
        keys = [self._core.identity.keys.next() for _ in records]
        entries = [
            BatchMessage(
                record.raw.flag, readable_body(record),
                encode_properties(_properties(record, topic, key, more)),
            )
            for key, (record, more) in zip(keys, records, strict=True)
        ]  # fmt: skip
        outgoing = Outgoing(
            topic, ",".join(keys), BATCH_HEADER, encode_batch(entries),
            code=int(RequestCode.SEND_BATCH_MESSAGE),
        )  # fmt: skip
        await self._sending.send(outgoing, None, self._sending.deadline(TIMEOUT_S))
        return keys


def _properties(
    record: MessageRecord, topic: str, key: str, more: Mapping[str, str] | None
) -> dict[str, str]:
    kept = {name: value for name, value in record.properties.items() if name not in SET_ANEW}
    # A consumer takes it for the topic. To a group it goes as what it was, to a topic as new.
    origin = kept.pop(names.RETRY_TOPIC, None) or kept.get(names.DLQ_ORIGIN_TOPIC)
    if origin and is_retry_topic(topic):
        kept[names.RETRY_TOPIC] = origin
    return {**kept, **(more or {}), names.UNIQ_KEY: key}


async def resend(session: Session, record: MessageRecord) -> SendResult:
    """Send a message once more, to the topic that it is in, or came from if that is a retry."""
    topic = record.topic
    if is_retry_topic(topic):
        topic = record.properties.get(names.RETRY_TOPIC, topic)
    async with Copier(session) as copier:
        return await copier.copy(record, topic)
