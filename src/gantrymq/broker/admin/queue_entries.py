"""A look into a consume queue (321): its entries, and whether a group's filter takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.broker.admin.parts import body_answer
from gantrymq.broker.filter.choice import choice_for
from gantrymq.broker.filter.group_filter import is_tag_type
from gantrymq.kernel import PRE_BLANK_SIZE
from gantrymq.store.consume_queue_ext import is_ext_address
from gantrymq.store.get import units_of
from gantrymq.wire.bodies.queues import QUEUE_ENTRIES, QueueEntries, QueueEntry
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.query import QueryConsumeQueueRequest
from gantrymq.wire.response_errors import InvalidParameter, SystemFailure

if TYPE_CHECKING:
    from gantrymq.broker.admin.parts import AdminParts
    from gantrymq.broker.filter.choice import Choice
    from gantrymq.kernel import QueueUnit
    from gantrymq.model.group import Subscription
    from gantrymq.store.consume_queue_ext import ConsumeQueueExt, ExtUnit
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer

EXT_HEAD_BYTES: Final = 20
"""A unit of the extension without its bitmap."""
BITS_SHOWN: Final = 64
ENTRIES_MAX: Final = 10_000
"""Entries of one answer."""


class QueueEntryRequests:
    """Answers what consume queues hold."""

    def __init__(self, parts: AdminParts) -> None:
        self._parts = parts

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {RequestCode.QUERY_CONSUME_QUEUE: self.entries}

    def entries(self, request: Command, _peer: Peer) -> Answer:
        """Answer some entries of a queue, with the log offset and size that each points to."""
        header = QueryConsumeQueueRequest.decode(request.fields)
        if header.topic is None or header.queue_id is None:
            raise InvalidParameter("topic and queueId say which queue: give both")
        queues = self._parts.store.queues
        queue = queues.find(header.topic, header.queue_id)
        if queue is None:
            raise SystemFailure(f"{header.queue_id}@{header.topic} is not exist!")
        index, count = header.index or 0, max(0, min(header.count or 0, ENTRIES_MAX))
        extension = queues.extension(queue)
        subscription, filtered, choice = self._filter(header.topic, header.consumer_group)
        raw = queue.read(index, count) if queue.min_offset <= index else b""
        found = tuple(
            _entry(unit, extension, choice) for unit in units_of(raw) if unit.size != PRE_BLANK_SIZE
        )
        body = QUEUE_ENTRIES.encode(
            QueueEntries(
                max_queue_index=queue.max_offset,
                min_queue_index=queue.min_offset,
                queue_data=found,
                subscription_data=subscription,
                filter_data=filtered,
            )
        )
        return body_answer(request, body, hint="; ask for fewer entries")

    def _filter(
        self, topic: str, group: str | None
    ) -> tuple[Subscription | None, str | None, Choice | None]:
        """Return what a group takes from a topic, in words and as what chooses."""
        if group is None:
            return None, None, None
        subscription = self._parts.tables.clients.subscription(group, topic)
        if subscription is None:
            return None, f"{group}@{topic} is not online!", None
        filters = self._parts.tables.filters
        found = filters.get(topic, group)
        if is_tag_type(subscription.expression_type):
            return subscription, None, choice_for(subscription, None, filters)
        text = None if found is None else f"{found.expression_type} {found.expression}"
        return subscription, text, choice_for(subscription, found, filters)


def _entry(unit: QueueUnit, extension: ConsumeQueueExt | None, choice: Choice | None) -> QueueEntry:
    entry = QueueEntry(
        physic_offset=unit.log_offset, physic_size=unit.size, tags_code=unit.tags_code
    )
    if not is_ext_address(unit.tags_code):
        return entry
    more = None if extension is None else extension.read(unit.tags_code)
    if more is None:
        return msgspec.structs.replace(entry, msg=f"Cq extend not exist!addr: {unit.tags_code}")
    return msgspec.structs.replace(
        entry,
        extend_data_json=_json(more),
        bit_map=_bits(more.bitmap),
        eval=choice is not None and choice.by_dispatch(more.tags_code, more),
    )


def _json(unit: ExtUnit) -> str:
    told: dict[str, object] = {}
    if unit.bitmap:
        told["filterBitMap"] = unit.bitmap
    told["msgStoreTime"] = unit.store_timestamp
    told["size"] = EXT_HEAD_BYTES + len(unit.bitmap)
    told["tagsCode"] = unit.tags_code
    return msgspec.json.encode(told).decode()


def _bits(bitmap: bytes) -> str | None:
    """Return the bits of a map as Apache shows them: the last one first, 64 to a line."""
    bits = "".join(f"{byte:08b}" for byte in reversed(bitmap))
    first = len(bits) % BITS_SHOWN
    lines = [bits[:first]] if first else []
    lines += [bits[at : at + BITS_SHOWN] for at in range(first, len(bits), BITS_SHOWN)]
    return "".join(f"{line}\n" for line in lines) or None
