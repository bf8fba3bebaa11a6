"""Members come and go: queues change hands, and every message is handled."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from gantrymq.client.consuming import strategies
from gantrymq.client.push_consumer import PushConsumer
from support.consuming import numbered, send, until

if TYPE_CHECKING:
    from gantrymq.client.consuming.strategies import Strategy
    from gantrymq.client.received import ReceivedMessage
    from gantrymq.model.queue import MessageQueue
    from support.targets import Target
    from support.transport import Run


class Group:
    """Some members of one group and what they handled together."""

    def __init__(self, target: Target, topic: str, group: str) -> None:
        self._target, self.topic, self._group = target, topic, group
        self.handled: Counter[bytes] = Counter()

    async def handle(self, message: ReceivedMessage) -> None:
        """Count a message, after a moment."""
        await asyncio.sleep(0.001)
        self.handled[message.body] += 1

    def member(self, name: str, strategy: Strategy = strategies.average) -> PushConsumer:
        """Return a member that was not started."""
        made = PushConsumer(
            self._target.namesrv,
            self._group,
            start="first",
            instance=name,
            strategy=strategy,
            rebalance_s=2.0,
            hold_messages=50,
        )
        made.subscribe(self.topic, "*", self.handle)
        return made

    def queues(self, member: PushConsumer) -> set[MessageQueue]:
        """Return the topic's queues that a member has."""
        return {queue for queue in member.assignment if queue.topic == self.topic}

    def is_shared(self, *members: PushConsumer) -> bool:
        """Tell whether each of the eight queues has one owner, and nobody too many."""
        parts = [self.queues(one) for one in members]
        return sum(map(len, parts)) == 8 == len(set().union(*parts)) and min(map(len, parts)) >= 2


def test_three_members_join_and_leave_and_nothing_is_lost(target: Target, run: Run) -> None:
    topic, name = target.create_topic(target.name("balance"), 8), target.name("balance_group")
    group = Group(target, topic, name)
    send(target, topic, numbered(800), queues=8)

    async def main() -> None:
        one, two, three = (group.member(each) for each in ("one", "two", "three"))
        async with one:
            await until(lambda: group.handled.total() > 50)
            async with two:
                await until(lambda: group.is_shared(one, two))
                await asyncio.to_thread(send, target, topic, numbered(400, "b"), queues=8)
                async with three:
                    await until(lambda: group.is_shared(one, two, three))
                    await asyncio.to_thread(send, target, topic, numbered(400, "c"), queues=8)
                await until(lambda: group.is_shared(one, two))
            await until(lambda: len(group.queues(one)) == 8)
            await until(lambda: len(group.handled) == 1600)

    run(main())
    assert set(group.handled) == {*numbered(800), *numbered(400, "b"), *numbered(400, "c")}
    twice = sum(count - 1 for count in group.handled.values())
    assert twice <= 200, f"{twice} of 1600 messages were handled more than once"


def test_a_slow_handler_does_not_cost_membership(target: Target, run: Run) -> None:
    topic, name = target.create_topic(target.name("balance"), 8), target.name("balance_group")
    group = Group(target, topic, name)
    send(target, topic, numbered(16), queues=8)
    stuck = asyncio.Event()

    async def never(_message: ReceivedMessage) -> None:
        await stuck.wait()

    async def main() -> None:
        slow = PushConsumer(
            target.namesrv, name, start="first", instance="slow", heartbeat_s=0.5,
            rebalance_s=1.0, close_timeout_s=0.1,
        )  # fmt: skip
        slow.subscribe(topic, "*", never)
        other = group.member("other")
        async with slow, other:
            await until(lambda: group.is_shared(slow, other))
            await asyncio.sleep(2.5)
            assert group.is_shared(slow, other)

    run(main())


def test_members_with_a_consistent_hash_share_all_queues(target: Target, run: Run) -> None:
    topic, name = target.create_topic(target.name("balance"), 8), target.name("balance_group")
    group = Group(target, topic, name)

    async def main() -> None:
        one = group.member("one", strategies.consistent_hash())
        two = group.member("two", strategies.consistent_hash())
        async with one, two:
            await until(
                lambda: (
                    not group.queues(one) & group.queues(two)
                    and len(group.queues(one) | group.queues(two)) == 8
                )
            )

    run(main())
