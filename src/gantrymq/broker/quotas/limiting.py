"""Everything that keeps one client from taking what the others need, joined for a broker.

    quotas      of topics and groups
    users       quotas of users, and how many connections they have
    throttled   requests that wait for a quota
    and the budget of reads from the disk (`store.cold_lanes`)

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from gantrymq.broker.quotas.quotas import Quotas, default_rates
from gantrymq.broker.quotas.throttled import Throttled
from gantrymq.broker.quotas.users import UserLimits
from gantrymq.store.cold_lanes import ColdBudget

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

    from gantrymq.broker.counting import Counting
    from gantrymq.broker.schedule import Schedule
    from gantrymq.broker.settings import BrokerSettings, LiveSettings
    from gantrymq.broker.tables import Tables
    from gantrymq.clock import Clock
    from gantrymq.store.message_store import MessageStore
    from gantrymq.wire.peer import Answer, Peer

log = logging.getLogger(__name__)

EXPIRE_S: Final = 60.0
LOG_S: Final = 10.0
"""Between two lines about connections: who is refused may come again as often as they like."""


class Limiting:
    """The limits of one broker."""

    def __init__(
        self,
        tables: Tables,
        store: MessageStore,
        counting: Counting,
        settings: LiveSettings,
        clock: Clock,
        new_future: Callable[[], Future[Answer]],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._cold = store.reads.cold.lanes
        self.throttled = Throttled(clock, new_future)
        self.quotas = Quotas(tables.topics, tables.groups, settings, clock, counting.store.refused)
        self.users = UserLimits(
            self.quotas, self.throttled, settings, new_future, self._connection_refused
        )
        counting.lane_stored = self.quotas.stored
        counting.was_read = self.quotas.was_read
        self.connections_refused = 0
        """Connections of users that had as many as they may."""
        self._quiet_until = 0.0
        self.use(settings.now)

    def use(self, settings: BrokerSettings) -> None:
        """Go on with other settings."""
        self._cold.budget = ColdBudget(
            settings.cold_group_reads, settings.cold_group_bytes, settings.cold_all_bytes
        )

    @staticmethod
    def move_lanes(before: BrokerSettings, after: BrokerSettings) -> bool:
        """Tell whether other topics may take the lane after a change."""
        return default_rates(before) != default_rates(after)

    def plan(self, schedule: Schedule, now: float) -> None:
        """Have done what is done by the clock."""
        entry = schedule.add("throttled requests", self.throttled.tick, None)
        self.throttled.sooner = lambda due: schedule.poke(entry, due)
        schedule.every("unused quotas", EXPIRE_S, self._expire, now)

    def _expire(self) -> None:
        self.quotas.expire()
        self._cold.expire()

    def _connection_refused(self, user: str, address: str) -> None:
        self.connections_refused += 1
        now = self._clock.monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + LOG_S
            log.warning(
                "a connection of user %s from %s is closed: it has as many as it may; %d so far",
                user, address, self.connections_refused,
            )  # fmt: skip

    def peer_closed(self, peer: Peer) -> None:
        """Forget a connection that is no more."""
        self.throttled.peer_closed(peer)
        self.users.peer_closed(peer)

    def close(self) -> None:
        """Let nobody wait."""
        self.throttled.close()
