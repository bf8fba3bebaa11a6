"""Half messages: stored where no consumer looks, until their producer has decided.

The real topic and queue stand in two properties; the transaction bits of the flags are gone, so
that the half message takes an offset of the half queue, by which it is found again. What is made
of one later (the committed message, a copy that is asked about, an op record that says it is done
with) is made here, as an Apache broker makes it: either can take over the other's store.

Nothing here has a state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.broker.stored_again import as_new
from gantrymq.kernel import kernel
from gantrymq.model.names import CHECKED_TOO_OFTEN_TOPIC, HALF_OP_TOPIC, HALF_TOPIC
from gantrymq.store.put import NewMessage, as_record
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.transaction import CheckTransactionStateRequest
from gantrymq.wire.message_id import offset_id_text
from gantrymq.wire.properties import (
    CHECK_IMMUNITY_TIME,
    DELAY,
    PREPARED_QUEUE_OFFSET,
    PRODUCER_GROUP,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TAGS,
    TRANSACTION_CHECK_TIMES,
    TRANSACTION_PREPARED,
    UNIQ_KEY,
    decode_properties,
)

if TYPE_CHECKING:
    from gantrymq.kernel import Record

TRANSACTION_BITS: Final = 0xC
COMMIT: Final = 0x8
ROLLBACK: Final = 0xC
HALF_QUEUE: Final = 0
DONE_TAG: Final = "d"
"""Of an op record."""
_DIGITS_MAX: Final = 18
_QUEUE_ID_MAX: Final = 2**31 - 1
_END_ROOM: Final = 8
"""What the kernel wants to be free behind a record."""


def as_half(message: NewMessage) -> NewMessage:
    """Return the half message of a transactional one.

    It cannot be delayed, too: the store would put it among the delayed ones. Java's producer drops
    the level itself.
    """
    properties = {name: value for name, value in message.properties.items() if name != DELAY}
    properties[REAL_TOPIC] = message.topic
    properties[REAL_QUEUE_ID] = str(message.queue_id)
    return message._replace(
        topic=HALF_TOPIC,
        queue_id=HALF_QUEUE,
        properties=properties,
        sys_flag=message.sys_flag & ~TRANSACTION_BITS,
    )


class Half(NamedTuple):
    """A half message that was read."""

    offset: int
    """In the half queue."""
    log_offset: int
    stored_ms: int
    message: NewMessage
    group: str
    topic: str
    """The real one."""
    queue_id: int
    """The real one; negative if it does not say."""
    checks: int
    """How often its producers were asked."""
    immune_ms: int | None
    """It is not to be asked about before it is so old; None is: as all."""
    copy_of: int | None
    """Offset of the half message that its producer knows, if this is a copy of it."""

    @property
    def is_whole(self) -> bool:
        """Tell whether it says whose it is and where it belongs; otherwise nobody can decide."""
        return bool(self.group and self.topic) and self.queue_id >= 0

    def age_ms(self, now_ms: int) -> int:
        """Return how old it is: as long as we have had it, for a copy since it was born.

        What a producer's clock says is believed only where there is nothing better.
        """
        is_first = self.checks == 0 and self.copy_of is None
        return now_ms - (self.stored_ms if is_first else self.message.born_timestamp)

    def is_immune(self, now_ms: int, timeout_ms: int) -> bool:
        """Tell whether it is too early to ask."""
        immune_ms = timeout_ms if self.immune_ms is None else self.immune_ms
        return 0 <= self.age_ms(now_ms) < immune_ms


def half_of(record: Record) -> Half:
    """Return the half message in a record.

    Raises:
        RecordError: its properties cannot be read.
    """
    message = as_new(record)
    properties = message.properties
    immune_s = _number(properties.get(CHECK_IMMUNITY_TIME))
    queue_id = _number(properties.get(REAL_QUEUE_ID))
    return Half(
        record.queue_offset,
        record.log_offset,
        record.store_timestamp,
        message,
        properties.get(PRODUCER_GROUP, ""),
        properties.get(REAL_TOPIC, ""),
        -1 if queue_id is None or queue_id > _QUEUE_ID_MAX else queue_id,
        _number(properties.get(TRANSACTION_CHECK_TIMES)) or 0,
        None if immune_s is None else immune_s * 1000,
        _number(properties.get(PREPARED_QUEUE_OFFSET)),
    )


# -- what becomes of one -------------------------------------------------------------------------


def committed(half: Half) -> NewMessage:
    """Return the message that consumers get."""
    left_out = {TRANSACTION_PREPARED, REAL_TOPIC, REAL_QUEUE_ID}
    properties = {
        name: value for name, value in half.message.properties.items() if name not in left_out
    }
    return half.message._replace(
        topic=half.topic,
        queue_id=half.queue_id,
        properties=properties,
        sys_flag=half.message.sys_flag & ~TRANSACTION_BITS | COMMIT,
        prepared_offset=half.log_offset,
    )


def asked_again(half: Half) -> NewMessage:
    """Return the copy that a producer is asked about."""
    properties = {**half.message.properties, TRANSACTION_CHECK_TIMES: str(half.checks + 1)}
    return half.message._replace(properties=properties)


def carried_on(half: Half) -> NewMessage:
    """Return a copy that nobody is asked about: its producer knows the first one's offset."""
    first = half.offset if half.copy_of is None else half.copy_of
    properties = {**half.message.properties, PREPARED_QUEUE_OFFSET: str(first)}
    return half.message._replace(properties=properties)


def resumed(half: Half) -> NewMessage:
    """Return a half message that was given up, to be asked about again."""
    properties = {**half.message.properties, TRANSACTION_CHECK_TIMES: "0"}
    properties.pop(PREPARED_QUEUE_OFFSET, None)
    return half.message._replace(topic=HALF_TOPIC, queue_id=HALF_QUEUE, properties=properties)


def given_up(half: Half) -> NewMessage:
    """Return a half message that nobody decides, for where an operator finds it."""
    return half.message._replace(topic=CHECKED_TOO_OFTEN_TOPIC, queue_id=0)


# -- op records ----------------------------------------------------------------------------------


def op_record(half_offset: int, now_ms: int, host: bytes) -> NewMessage:
    """Return the record that says that a half message is done with."""
    return NewMessage(
        HALF_OP_TOPIC,
        HALF_QUEUE,
        str(half_offset).encode(),
        {TAGS: DONE_TAG},
        now_ms,
        host,
        waits=False,
    )


def done_with(record: Record) -> list[int]:
    """Return the offsets of half messages that an op record is about; 5.x writes several in one.

    Raises:
        RecordError: its properties cannot be read.
    """
    if decode_properties(record.properties).get(TAGS) != DONE_TAG:
        return []
    found = (_number(part.strip()) for part in bytes(record.body).decode("latin-1").split(","))
    return [offset for offset in found if offset is not None]


# -- asking --------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where the half message is that a producer is asked about."""

    offset: int
    log_offset: int
    stored_ms: int


def check_request(half: Half, copy: NewMessage, place: Place, store_host: bytes) -> Command:
    """Return the question to a producer; its answer names the same place."""
    own_host = copy.store_host or store_host
    unique_key = copy.properties.get(UNIQ_KEY)
    header = CheckTransactionStateRequest(
        tran_state_table_offset=place.offset,
        commit_log_offset=place.log_offset,
        msg_id=unique_key,
        transaction_id=unique_key,
        offset_msg_id=offset_id_text(own_host, place.log_offset),
        topic=HALF_TOPIC,
    )
    return Command.request(
        RequestCode.CHECK_TRANSACTION_STATE,
        0,
        header.encode(),
        _shown(half, copy, place, own_host),
        oneway=True,
    )


def _shown(half: Half, copy: NewMessage, place: Place, own_host: bytes) -> bytes:
    """Return the record that a producer is shown: its own message, where it wanted it."""
    record = as_record(copy, place.offset, own_host)._replace(
        topic=half.topic.encode(),
        queue_id=half.queue_id,
        log_offset=place.log_offset,
        store_timestamp=place.stored_ms,
    )
    size = kernel.record_bytes(record)
    target = bytearray(size + _END_ROOM)
    kernel.encode_record(target, 0, len(target), record)
    return bytes(target[:size])


def _number(text: str | None) -> int | None:
    """Return a number that is not negative, or None if the text is none."""
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > _DIGITS_MAX:
        return None
    return int(text)
