"""What may be stored: the checks of the put path, in RocketMQ's order, and the message as a record.

Ordinary sends pass through the kernel's lane and meet only the first part (may this store be
written at all?). Everything that policy has touched (delayed, transactional, retried, made by the
broker itself) comes as a `NewMessage`.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue
from gantrymq.kernel import Record, kernel
from gantrymq.limits import PROPERTIES_BYTES_MAX, RECORD_OVERHEAD_BYTES_MAX, TOPIC_BYTES_MAX
from gantrymq.model.names import SCHEDULE_TOPIC, is_path_safe
from gantrymq.store.status import PutStatus
from gantrymq.wire.properties import encode_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

log = logging.getLogger(__name__)

POLICY_PROPERTIES: Final = (
    b"DELAY",
    b"TRAN_MSG",
    b"TIMER_DELAY_SEC",
    b"TIMER_DELAY_MS",
    b"TIMER_DELIVER_MS",
    b"INNER_MULTI_DISPATCH",
    b"POP_CK",
)
"""Properties that make a send more than an ordinary one."""
TRANSACTION_BITS: Final = 0xC
PREPARED: Final = 0x4
ROLLBACK: Final = 0xC
_LEVEL: Final = re.compile(r"[+-]?[0-9]{1,10}")
NO_TAIL: Final = "tail"
"""What `Writability` knows it by that a file which is written to has no room on the disk."""
BORN_IPV6: Final = 0x10
STORE_IPV6: Final = 0x20


class NewMessage(NamedTuple):
    """A message that is to be stored."""

    topic: str
    queue_id: int
    body: bytes
    properties: Mapping[str, str]
    born_timestamp: int
    born_host: bytes
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_offset: int = 0
    store_host: bytes | None = None
    """Kept by messages that are stored again; None is this broker."""
    waits: bool = True
    """The sender wants to know that it is on the disk and on a slave, where the role says so."""
    is_due: bool = False
    """It has waited: a delay level among its properties is told to its readers, not obeyed."""

    @property
    def is_counted(self) -> bool:
        """Tell whether it takes an offset of its queue: prepared and rolled back ones do not."""
        return self.sys_flag & TRANSACTION_BITS not in {PREPARED, ROLLBACK}


class Stored(NamedTuple):
    """Where a message went."""

    status: PutStatus
    topic: str = ""
    queue_id: int = 0
    queue_offset: int = 0
    """Of the first, if there are several."""
    log_offsets: tuple[int, ...] = ()
    end: int = 0
    """Log offset behind the last of them."""
    store_timestamp: int = 0

    @property
    def log_offset(self) -> int:
        """Return where the first of them lies; -1 if nothing was stored."""
        return self.log_offsets[0] if self.log_offsets else -1

    @property
    def messages(self) -> int:
        """Return how many were stored."""
        return len(self.log_offsets)


class Writability:
    """Why the store takes no writes, if it does not. Reasons come and go; a failed disk stays."""

    def __init__(self) -> None:
        self.is_open = False
        self.is_slave = False
        self.may_reign: Callable[[], bool] | None = None
        """With failover: whether this master's lease still holds, asked before every append."""
        self._reasons: dict[str, str] = {}

    def forbid(self, source: str, reason: str) -> None:
        """Take no writes until `allow` is called for the same source."""
        if source not in self._reasons:
            log.warning("the store takes no writes: %s", reason)
        self._reasons[source] = reason

    def allow(self, source: str) -> None:
        """Take back what `source` forbade."""
        if self._reasons.pop(source, None) is not None and not self._reasons:
            log.warning("the store takes writes again")

    @property
    def replica_reason(self) -> str | None:
        """Return why bytes of a master cannot be stored now, or None.

        A slave that is short of space goes on as long as files can be made: every byte it has is a
        byte that its master's disk need not be alone with.
        """
        if not self.is_open:
            return "the store is not open"
        if not self.is_slave:
            return "this broker is a master; only a slave takes another broker's log"
        return self._reasons.get("disk") or self._reasons.get(NO_TAIL)

    @property
    def reason(self) -> str | None:
        """Return why nothing can be stored now, or None."""
        if not self.is_open:
            return "the store is not open"
        if self.is_slave:
            return "this broker is a slave; send to its master"
        if self.may_reign is not None and not self.may_reign():
            return "this master cannot renew its lease; another one may be elected"
        return next(iter(self._reasons.values()), None)


class MessageCheck:
    """Lengths that a message must keep to."""

    def __init__(self, body_bytes_max: int) -> None:
        self.body_bytes_max = body_bytes_max

    def status(self, topic: bytes, body_bytes: int, properties: bytes) -> PutStatus:
        """Return PUT_OK, or what is wrong with a message."""
        if len(topic) > TOPIC_BYTES_MAX or len(properties) > PROPERTIES_BYTES_MAX:
            return PutStatus.MESSAGE_ILLEGAL
        if not is_path_safe(topic.decode(errors="replace")):
            return PutStatus.MESSAGE_ILLEGAL  # it could never get a queue
        if body_bytes > self.body_bytes_max:
            return PutStatus.MESSAGE_ILLEGAL
        if body_bytes + len(topic) + len(properties) > self.record_bytes_max:
            return PutStatus.MESSAGE_ILLEGAL
        return PutStatus.PUT_OK

    @property
    def record_bytes_max(self) -> int:
        """Return what a record may have in all."""
        return self.body_bytes_max + RECORD_OVERHEAD_BYTES_MAX


def delayed(message: NewMessage, levels: int) -> NewMessage:
    """Return the message as it is stored while it waits, if it has a delay level.

    Only plain and committed messages are delayed; a level above the highest counts as the highest.
    """
    level = _level(message.properties.get("DELAY"))
    if level <= 0 or levels == 0 or message.is_due or not message.is_counted:
        return message
    level = min(level, levels)
    properties = {
        **message.properties,
        "DELAY": str(level),
        "REAL_TOPIC": message.topic,
        "REAL_QID": str(message.queue_id),
    }
    return message._replace(topic=SCHEDULE_TOPIC, queue_id=level - 1, properties=properties)


def as_stored(messages: Sequence[NewMessage], levels: int) -> list[NewMessage]:
    """Return messages as they are stored: delayed ones wait elsewhere.

    Raises:
        InvalidValue: there are none, or they do not all go to one queue.
    """
    kept = [delayed(message, levels) for message in messages]
    if len({(message.topic, message.queue_id, message.is_counted) for message in kept}) != 1:
        raise InvalidValue(
            f"{len(kept)} messages for one put that do not all go to the same queue; put them apart"
        )
    return kept


def _level(text: str | None) -> int:
    """Return a delay level; 0 for what is no number to anybody but Python, like `1_0`."""
    return int(text) if text and _LEVEL.fullmatch(text) else 0


def as_record(message: NewMessage, queue_offset: int, store_host: bytes) -> Record:
    """Return the record of a message; where it goes and when is the log's to say."""
    own_host = message.store_host or store_host
    flags = message.sys_flag & ~(BORN_IPV6 | STORE_IPV6)
    if len(message.born_host) == 20:
        flags |= BORN_IPV6
    if len(own_host) == 20:
        flags |= STORE_IPV6
    return Record(
        queue_id=message.queue_id,
        flag=message.flag,
        queue_offset=queue_offset,
        log_offset=0,
        sys_flag=flags,
        born_timestamp=message.born_timestamp,
        born_host=message.born_host,
        store_timestamp=0,
        store_host=own_host,
        reconsume_times=message.reconsume_times,
        prepared_offset=message.prepared_offset,
        body=message.body,
        topic=message.topic.encode(),
        properties=encode_properties(message.properties),
    )


def check_all(check: MessageCheck, records: Sequence[Record]) -> PutStatus:
    """Return PUT_OK, or the first thing that is wrong with one of some records."""
    for record in records:
        status = check.status(record.topic, len(record.body), record.properties)
        if status is not PutStatus.PUT_OK:
            return status
        if kernel.record_bytes(record) > check.record_bytes_max:
            return PutStatus.MESSAGE_ILLEGAL
    return PutStatus.PUT_OK
