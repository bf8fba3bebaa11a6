"""Requests that lay too long before they were read are refused, so that their senders turn away.

The limits, their names and the sentence are those of Apache's BrokerFastFailure, whose requests
wait in the queues of thread pools; here they wait in the socket (`transport.ages`). One thing is
different. After a single stall of the process whatever came meanwhile is old, and served in a
moment: to refuse it would make one stall a thousand errors. So a request that is over its limit is
refused only

- while the broker has been behind for `STANDING_S`: it takes in less than it is sent, or
- if it is as old as `GIVEN_UP_MS`: its producer has given up, and to store it now would make a
  second copy.

Owned by the event loop's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.wire.codes import RequestCode
from gantrymq.wire.response_errors import SystemBusy

if TYPE_CHECKING:
    from gantrymq.broker.counting import Counting
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.clock import Clock
    from gantrymq.store.page_cache import PageCacheWatch

_LIMITS: Final[dict[int, str]] = {
    RequestCode.SEND_MESSAGE: "send_wait_ms",
    RequestCode.SEND_MESSAGE_V2: "send_wait_ms",
    RequestCode.SEND_BATCH_MESSAGE: "send_wait_ms",
    RequestCode.CONSUMER_SEND_MSG_BACK: "send_wait_ms",
    RequestCode.RECALL_MESSAGE: "send_wait_ms",
    RequestCode.PULL_MESSAGE: "pull_wait_ms",
    RequestCode.POP_MESSAGE: "pull_wait_ms",
    RequestCode.NOTIFICATION: "pull_wait_ms",
    RequestCode.LITE_PULL_MESSAGE: "lite_pull_wait_ms",
    RequestCode.ACK_MESSAGE: "ack_wait_ms",
    RequestCode.BATCH_ACK_MESSAGE: "ack_wait_ms",
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: "ack_wait_ms",
    RequestCode.HEART_BEAT: "heartbeat_wait_ms",
    RequestCode.END_TRANSACTION: "transaction_wait_ms",
}
"""Request code to the setting that limits its age; what is not here is always answered."""
STANDING_S: Final = 1.0
FORGOTTEN_S: Final = 2.0
"""Without an old request the broker is not behind any more."""
GIVEN_UP_MS: Final = 3000
"""What a producer waits for unless it is told otherwise."""
SENDS: Final = frozenset(code for code, name in _LIMITS.items() if name == "send_wait_ms")


class Ages:
    """Knows how old a request may be."""

    def __init__(
        self,
        settings: LiveSettings,
        page_cache: PageCacheWatch,
        counting: Counting,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._behind_since = 0.0
        self._behind_at = -FORGOTTEN_S
        self._settings = settings
        self._page_cache = page_cache
        self._counting = counting

    def check(self, code: int, waited_ms: int, behind: int) -> None:
        """Refuse a request that is too old; `behind` are as old as it is.

        Raises:
            SystemBusy: it is.
        """
        settings = self._settings.now
        name = _LIMITS.get(code)
        if name is None or not settings.fast_failure or waited_ms < getattr(settings, name):
            return
        if not self._is_behind() and waited_ms < GIVEN_UP_MS:
            return
        self._counting.old_requests += 1
        cause = "TIMEOUT_CLEAN_QUEUE"
        if code in SENDS and self._page_cache.is_busy:
            cause = "PCBUSY_CLEAN_QUEUE"
        self._counting.store.refused(cause)
        raise SystemBusy(
            f"[{cause}]broker busy, start flow control for a while, period in queue: "
            f"{waited_ms}ms, size of queue: {behind}"
        )

    def _is_behind(self) -> bool:
        """Note an old request; tell whether there have been some for a while."""
        now = self._clock.monotonic()
        if now - self._behind_at >= FORGOTTEN_S:
            self._behind_since = now
        self._behind_at = now
        return now - self._behind_since >= STANDING_S
