"""What becomes of a message that a handler did not take.

Clustering: the broker keeps it and delivers it again after a delay that grows (36), up to
`reconsume_max` times, then puts it among the group's dead letters. If the broker cannot be asked,
the message stays in hand and comes to a handler again a little later: its offset is not committed
before somebody has taken care of it. Broadcasting has no such place: the message is given up.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from gantrymq.client.errors import GantryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.client.consuming.calls import ConsumerCalls
    from gantrymq.client.consuming.process_queue import Held

logger = logging.getLogger(__name__)

LOCAL_RETRY_S: Final = 5.0
DEFAULT_RECONSUME_MAX: Final = 16


class Retrying:
    """Gives failed messages back."""

    def __init__(
        self,
        calls: ConsumerCalls,
        reconsume_max: int,
        deliver: Callable[[Held], None],
        *,
        gives_back: bool,
        local_retry_s: float = LOCAL_RETRY_S,
    ) -> None:
        self._calls = calls
        self._reconsume_max = DEFAULT_RECONSUME_MAX if reconsume_max < 0 else reconsume_max
        self._deliver = deliver
        self._gives_back = gives_back
        self._local_retry_s = local_retry_s

    async def failed(self, held: Held, delay_level: int) -> None:
        """Give a message back, or keep it to be tried here again."""
        queue = held.queue
        if queue.dropped:
            return  # its next owner gets it
        if not self._gives_back:
            logger.warning("%r is given up: broadcasting has no second delivery", held.message)
            queue.settle(held)
            return
        if await self.send_back(held, delay_level):
            queue.settle(held)
            return
        asyncio.get_running_loop().call_later(self._local_retry_s, self._again, held)

    async def send_back(self, held: Held, delay_level: int) -> bool:
        """Ask the broker to keep a message for later; False if it does not."""
        message = held.message
        try:
            await self._calls.send_back(
                held.queue.queue,
                message.record.log_offset,
                delay_level,
                self._reconsume_max,
                message_id=message.message_id,
            )
        except GantryError as error:
            logger.warning("%r could not be given back: %s", message, error)
            return False
        except Exception:  # whatever it is, the message stays in hand and its worker goes on
            logger.exception("%r could not be given back", message)
            return False
        return True

    def _again(self, held: Held) -> None:
        if not held.queue.dropped:
            self._deliver(held)
