"""What comes of a send."""

from enum import IntEnum

import msgspec

from gantrymq.model.queue import MessageQueue
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.sysflag import TransactionType


class SendStatus(IntEnum):
    """How safe a message is that the broker has stored; the numbers are the wire's codes."""

    SEND_OK = int(ResponseCode.SUCCESS)
    """As safe as the broker's settings promise."""
    FLUSH_DISK_TIMEOUT = int(ResponseCode.FLUSH_DISK_TIMEOUT)
    """Stored, but not on the disk in time."""
    SLAVE_NOT_AVAILABLE = int(ResponseCode.SLAVE_NOT_AVAILABLE)
    """Stored, but there is no slave to have a copy."""
    FLUSH_SLAVE_TIMEOUT = int(ResponseCode.FLUSH_SLAVE_TIMEOUT)
    """Stored, but no slave had a copy in time."""


class SendResult(msgspec.Struct, frozen=True):
    """A message that a broker has stored: which, where and how safe."""

    status: SendStatus
    message_id: str
    """The id that the producer gave it; those of a batch joined by commas."""
    queue: MessageQueue
    offset: int
    """Position in the queue; of a batch the first, of a half message that in the half queue."""
    offset_id: str
    """The broker's own id; those of a batch joined by commas."""
    transaction_id: str | None = None
    recall_handle: str | None = None
    """5.x: what takes a message back that is to be delivered later; see `Producer.recall`."""
    region: str | None = None
    trace_on: bool = True

    @property
    def is_ok(self) -> bool:
        """Tell whether it is as safe as the broker's settings promise."""
        return self.status is SendStatus.SEND_OK


class TransactionState(IntEnum):
    """How a transaction ended; the numbers are the wire's."""

    COMMIT = int(TransactionType.COMMIT)
    ROLLBACK = int(TransactionType.ROLLBACK)
    UNKNOWN = int(TransactionType.NONE)
    """Not known yet: the broker will ask again."""


class TransactionResult(msgspec.Struct, frozen=True):
    """A message that was sent in a transaction."""

    send: SendResult
    """Of the half message, which nobody sees before the transaction is committed."""
    state: TransactionState
    """What the broker was told."""
