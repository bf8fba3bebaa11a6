"""Popped messages whose handlers take long: the broker is asked to keep them away for longer.

A broker hands a message out again when its time is up, and counts an attempt. A handler that needs
longer than `pop_invisible_s` would have its message handled twice at once, again and again, and in
the end among the dead letters although every attempt succeeded. So when half of the time is over,
the time begins anew, until `consume_timeout_s` is over: then the message is given back in earnest.

The broker answers with a new handle, and the old one acknowledges nothing any more. What a handler
says while the answer is on its way therefore waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from gantrymq.client.errors import GantryError
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.pop import ChangeInvisibleTimeRequest, ChangeInvisibleTimeResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gantrymq.client.consuming.calls import ConsumerCalls
    from gantrymq.client.consuming.popping import PopHeld

logger = logging.getLogger(__name__)

LOOKS: Final = 8
"""How often it is looked, while one message's time passes."""
AT_ONCE: Final = 16
"""Requests under way."""


async def change_invisible(calls: ConsumerCalls, held: PopHeld, invisible_ms: int) -> None:
    """Have a message come again so much later; its handle is the new one then.

    Raises:
        GantryError: the broker does not, or does not say so.
    """
    handle, queue = held.handle, held.queue.queue
    header = ChangeInvisibleTimeRequest(
        consumer_group=calls.group,
        topic=handle.real_topic(queue.topic, calls.group),
        queue_id=handle.queue_id,
        extra_info=handle.text,
        offset=handle.offset,
        invisible_time=invisible_ms,
    )
    answered = await calls.core.remote.call(
        await calls.master(queue),
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        header,
        answer=ChangeInvisibleTimeResponse,
    )
    told = answered.header
    held.handle = handle._replace(
        start_offset=handle.offset,
        pop_time=told.pop_time,
        invisible_time=told.invisible_time,
        revive_queue=told.revive_qid,
    )


class PopKeeping:
    """Keeps messages for those who are at work with them."""

    def __init__(
        self,
        calls: ConsumerCalls,
        in_hand: Callable[[], Iterable[PopHeld]],
        *,
        invisible_s: float,
        consume_timeout_s: float,
    ) -> None:
        """Prepare; `in_hand` says which messages are with handlers, or with an `async for`."""
        self._calls = calls
        self._in_hand = in_hand
        self._invisible_s = invisible_s
        self._consume_timeout_s = consume_timeout_s

    async def run(self) -> None:
        """Look for ever; a task of the client's."""
        while True:
            await asyncio.sleep(self._invisible_s / LOOKS)
            try:
                await self.look()
            except Exception:  # one bad round must not be the last
                logger.exception("popped messages could not be kept from others")

    async def look(self) -> None:
        """Ask for more time for every message that needs it."""
        now = asyncio.get_running_loop().time()
        due = [
            held
            for held in self._in_hand()
            if held.renewing is None
            and now < held.expires < now + self._invisible_s / 2
            and now - held.popped_at < self._consume_timeout_s
        ]
        room = asyncio.Semaphore(AT_ONCE)

        async def renew(held: PopHeld) -> None:
            async with room:
                await self._renew(held)

        await asyncio.gather(*map(renew, due))

    async def _renew(self, held: PopHeld) -> None:
        loop = asyncio.get_running_loop()
        asked = loop.time()
        if held.is_settled or asked >= held.expires:
            return
        held.renewing = loop.create_future()
        try:
            await change_invisible(self._calls, held, int(self._invisible_s * 1000))
            held.expires = asked + self._invisible_s
        except GantryError as error:
            logger.warning("%r may be given to others meanwhile: %s", held.message, error)
        finally:
            held.renewing.set_result(None)
            held.renewing = None
            held.renewed()
