"""When the members of a group change, queues change hands: this task sees to our side of it.

It looks every `rebalance_s`, when a broker says that members came or went (40), when a route has
changed, and soon again when something did not work out. One look asks one broker of each topic for
the members, works out which queues are ours, gives back the others first and takes up the new ones.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from gantrymq.client.consuming.balance import decide, wanted_queues
from gantrymq.client.consuming.waits import Waits
from gantrymq.client.errors import GantryError, NoRoute, NoRouteCause
from gantrymq.model.names import is_retry_topic

if TYPE_CHECKING:
    from gantrymq.client.consuming.member import Member
    from gantrymq.client.consuming.strategies import Strategy
    from gantrymq.client.consuming.subscribed import Subscribed
    from gantrymq.model.queue import MessageQueue

logger = logging.getLogger(__name__)

SETTLE_S: Final = 0.02
"""News of one moment make one look."""
HAND_OVER_S: Final = 0.25
"""How long the member that had a queue may take to commit its offset before it is asked for. The
broker tells old and new owners of a change at the same time; without this pause the new one would
read again whatever the old one had done since its last commit. Locks make it superfluous."""


class Rebalancing:
    """Keeps the queues of a member those that it should have."""

    def __init__(
        self, member: Member, strategy: Strategy, *, broadcasting: bool, period_s: float
    ) -> None:
        self._member = member
        self._strategy = strategy
        self._broadcasting = broadcasting
        self._period_s = period_s
        self._due = asyncio.Event()
        self._waits = Waits(first_s=0.25, most_s=period_s)
        self._later: asyncio.TimerHandle | None = None
        self._may_take_at = 0.0
        """When queues that others had may be taken up, on the loop's clock."""

    def soon(self, _news: object = None) -> None:
        """Look in a moment."""
        self._due.set()

    async def run(self) -> None:
        """Look for ever; a task of the client's."""
        while True:
            try:
                async with asyncio.timeout(self._period_s):
                    await self._due.wait()
                await asyncio.sleep(SETTLE_S)
            except TimeoutError:
                pass
            self._due.clear()
            try:
                await self.look()
            except Exception:  # a strategy of the user's own that fails once must not be the end
                logger.exception("queues cannot be shared out, it is tried again")
                self._look_again()

    async def look(self) -> None:
        """Look at every topic once; what fails is looked at again soon."""
        self._may_take_at = 0.0
        complete = True
        member = self._member
        for subscribed in member.subscriptions:
            try:
                complete = await self._balance(subscribed) and complete
            except NoRoute as error:
                if error.cause is not NoRouteCause.UNKNOWN_TOPIC:
                    logger.warning("%s", error)
                elif not is_retry_topic(subscribed.topic):
                    logger.info("%s", error)
                complete = False
            except GantryError as error:
                logger.warning("%s cannot be balanced yet: %s", subscribed.topic, error)
                complete = False
        self._give_back_others()
        if complete:
            self._waits.reset()
        else:
            self._look_again()

    def _look_again(self) -> None:
        if self._later is not None:
            self._later.cancel()
        self._later = asyncio.get_running_loop().call_later(self._waits.next(), self._due.set)

    def stop(self) -> None:
        """Look no more."""
        if self._later is not None:
            self._later.cancel()

    async def _balance(self, subscribed: Subscribed) -> bool:
        member, topic = self._member, subscribed.topic
        if member.popping is not None and not is_retry_topic(topic):
            done = await member.popping.balance(subscribed, self._strategy.name)
            if done is not None:
                return done
        wanted = await self._wanted(topic)
        if wanted is None:
            return False
        change = decide(member.owned(topic), wanted)
        if change:
            more, fewer = len(change.add), len(change.drop)
            logger.info("%s: %d queues to take up, %d to give back", topic, more, fewer)
            member.give_back(change.drop)
            if change.add:
                await asyncio.sleep(self._may_take_at - asyncio.get_running_loop().time())
            return await member.take_up(subscribed, change.add)
        return True

    async def _wanted(self, topic: str) -> list[MessageQueue] | None:
        """Return the queues that this member is to read; None if that cannot be known now."""
        calls = self._member.calls
        route = await calls.core.routes.get(topic)
        if self._broadcasting:
            return wanted_queues(calls.core.client_id, None, route.read_queues, self._strategy)
        # A broker that has not heard of us would answer that nobody is there.
        brokers = route.brokers.values()
        await calls.core.heartbeats.ensure(
            [address for broker in brokers for address in broker.addresses.values()]
        )
        members = await calls.members(topic)
        wanted = wanted_queues(calls.core.client_id, members, route.read_queues, self._strategy)
        if wanted is None:
            await calls.core.heartbeats.now()
        if len(members) > 1 and not self._may_take_at and self._member.locks is None:
            self._may_take_at = asyncio.get_running_loop().time() + HAND_OVER_S
        return wanted

    def _give_back_others(self) -> None:
        """Give back the queues of topics that are not subscribed to any more."""
        member = self._member
        topics = {subscribed.topic for subscribed in member.subscriptions}
        member.give_back([queue for queue in member.readers if queue.topic not in topics])
        if member.popping is not None:
            for topic in member.popping.topics() - topics:
                member.popping.drop_topic(topic)
