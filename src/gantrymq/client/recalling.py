"""Taking back a message that is to be delivered later (5.x).

The handle is base64 of `v1 topic broker time key`; the broker's name in it says whom to ask.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING

from gantrymq.client.errors import NoRoute, NoRouteCause
from gantrymq.errors import InvalidValue, shown
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.send import RecallMessageRequest, RecallMessageResponse
from gantrymq.wire.peer import PeerLate

if TYPE_CHECKING:
    from gantrymq.client.core import ClientCore


def broker_of(handle: str) -> str:
    """Return the name of the broker that gave a handle.

    Raises:
        InvalidValue: it is none.
    """
    try:
        padded = handle + "=" * (-len(handle) % 4)
        words = base64.urlsafe_b64decode(padded.encode("ascii")).decode().split(" ")
    except (ValueError, binascii.Error, TypeError, AttributeError):
        words = []
    if len(words) != 5 or words[0] != "v1":
        raise InvalidValue(
            f"recall handle {shown(repr(handle))} is none: give SendResult.recall_handle, which"
            " 5.x brokers give for messages with deliver_at"
        )
    return words[2]


async def recall(core: ClientCore, group: str, topic: str, handle: str, timeout_s: float) -> str:
    """Take a message back; return its id.

    Raises:
        InvalidValue: the handle is none.
        NoRoute: its broker is not there.
        ResponseError, PeerGone, PeerLate: the broker did not do it, or did not say so.
    """
    broker_name = broker_of(handle)
    try:
        async with asyncio.timeout(timeout_s):
            route = await core.routes.get(topic)
    except TimeoutError:
        raise PeerLate(f"the route of {topic} was not to be had within {timeout_s:g} s") from None
    address = route.address(broker_name)
    if address is None:
        raise NoRoute(
            topic, NoRouteCause.NO_MASTER, f"the broker {broker_name!r} of the handle has no master"
        )
    header = RecallMessageRequest(topic=topic, recall_handle=handle, producer_group=group)
    answered = await core.remote.call(
        address,
        RequestCode.RECALL_MESSAGE,
        header,
        timeout_s=timeout_s,
        answer=RecallMessageResponse,
    )
    return answered.header.msg_id
