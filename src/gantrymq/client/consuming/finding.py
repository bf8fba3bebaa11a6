"""Single messages: by the broker's id, by the producer's id, by a key."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from gantrymq.client.errors import NoRoute, NoRouteCause
from gantrymq.client.received import ReceivedMessage
from gantrymq.model.message import OffsetId
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.headers.query import QueryMessageRequest, ViewMessageRequest
from gantrymq.wire.record import decode_record, decode_records

if TYPE_CHECKING:
    from gantrymq.client.core import ClientCore
    from gantrymq.wire.record import MessageRecord

FOREVER_MS: Final = 2**62
_FOUND_OR_NOT: Final = frozenset({int(ResponseCode.SUCCESS), int(ResponseCode.QUERY_NOT_FOUND)})


async def view(core: ClientCore, offset_id: str) -> ReceivedMessage:
    """Return the message with an offset id, which names the broker that has it.

    Raises:
        InvalidValue: it is no such id.
        ResponseError: the broker has no message there.
    """
    where = OffsetId.parse(offset_id)
    host = where.host
    address = f"[{host.address}]:{host.port}" if ":" in host.address else host.text
    header = ViewMessageRequest(offset=where.log_offset)
    answered = await core.remote.call(address, RequestCode.VIEW_MESSAGE_BY_ID, header)
    record, _end = decode_record(answered.body, 0, len(answered.body))
    return ReceivedMessage(record, "", core.namespace.unwrap(record.topic))


async def query(
    core: ClientCore,
    topic: str,
    key: str,
    *,
    begin_ms: int = 0,
    end_ms: int = FOREVER_MS,
    count: int = 32,
    unique: bool = False,
) -> list[ReceivedMessage]:
    """Return messages of a topic (by its full name) with a key, the oldest first.

    Every broker of the topic is asked; the index may have neighbours with the same hash, which are
    left out.

    Raises:
        NoRoute: there is no broker to ask.
    """
    route = await core.routes.get(topic)
    brokers = {name: route.any_address(name) for name in route.brokers}
    addresses = {name: address for name, address in brokers.items() if address is not None}
    if not addresses:
        raise NoRoute(topic, NoRouteCause.NO_MASTER, "none of its brokers has an address")
    header = QueryMessageRequest(
        topic=topic,
        key=key,
        max_num=count,
        begin_timestamp=begin_ms,
        end_timestamp=end_ms,
        unique_key_query=True if unique else None,
    )

    async def ask(name: str, address: str) -> list[ReceivedMessage]:
        answered = await core.remote.call(
            address, RequestCode.QUERY_MESSAGE, header, accept=_FOUND_OR_NOT
        )
        return [
            ReceivedMessage(record, name, core.namespace.unwrap(record.topic))
            for record in decode_records(answered.body)
            if record.topic == topic and _has_key(record, key, unique=unique)
        ]

    found = await asyncio.gather(*(ask(*one) for one in sorted(addresses.items())))
    together = [message for some in found for message in some]
    together.sort(key=lambda message: (message.stored_ms, message.record.log_offset))
    return together[:count]


def _has_key(record: MessageRecord, key: str, *, unique: bool) -> bool:
    return record.unique_key == key if unique else key in record.keys or record.unique_key == key
