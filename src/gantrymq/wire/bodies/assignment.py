"""5.x: queues assigned by the broker, pull or pop by topic and group, acknowledgements in bulk."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from msgspec import field

from gantrymq.model.group import MessageModel
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.model.widths import Int32
from gantrymq.wire.bodies.codec import JsonBody
from gantrymq.wire.bodies.schema import Body


class RequestMode(IntEnum):
    """How a group gets the messages of a topic."""

    PULL = 0
    POP = 1


class AssignmentQuery(Body, frozen=True, kw_only=True):
    """A member asks for its queues (400)."""

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str = ""
    message_model: MessageModel = MessageModel.CLUSTERING


class QueueAssignment(Body, frozen=True, kw_only=True):
    """One queue and how to read it; queue id -1 is any queue of the broker."""

    message_queue: MessageQueue
    mode: RequestMode = RequestMode.PULL
    attachments: Mapping[str, str] | None = None


class Assignments(Body, frozen=True, kw_only=True):
    """The queues of a member; none at all where there is no route or no group."""

    message_queue_assignments: tuple[QueueAssignment, ...] | None = None


class RequestModeSetting(Body, frozen=True, kw_only=True):
    """Pull or pop for one topic and group (401)."""

    topic: str
    consumer_group: str
    mode: RequestMode = RequestMode.PULL
    pop_share_queue_num: Int32 = 0


class RequestModeTable(Body, frozen=True, kw_only=True):
    """All such settings: `messageRequestMode.json` and the answer to 402; topic to group."""

    message_request_mode_map: Mapping[str, Mapping[str, RequestModeSetting]] = {}


class BatchAck(Body, frozen=True, kw_only=True):
    """Messages of one pop that are done with: bit i of `bits` is offset `start_offset` + i."""

    group: str = field(name="c")
    topic: str = field(name="t")
    retry: str = field(name="r", default="0")
    """0 the topic itself, 1 and 2 its pop retry topic of that version."""
    start_offset: int = field(name="so")
    queue_id: QueueId = field(name="q")
    revive_queue_id: QueueId = field(name="rq")
    pop_time: int = field(name="pt")
    invisible_time: int = field(name="it")
    bits: bytes = field(name="b", default=b"")
    """A little-endian bit set."""


class BatchAckRequest(Body, frozen=True, kw_only=True):
    """Acknowledgements of several pops (200151)."""

    broker_name: str = ""
    acks: tuple[BatchAck, ...] = ()


ASSIGNMENT_QUERY: Final = JsonBody(AssignmentQuery)
ASSIGNMENTS: Final = JsonBody(Assignments)
REQUEST_MODE_SETTING: Final = JsonBody(RequestModeSetting)
REQUEST_MODE_TABLE: Final = JsonBody(RequestModeTable)
BATCH_ACK: Final = JsonBody(BatchAckRequest)
