"""How messages come to handlers, in any order and in order, without a broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from gantrymq.client.consuming.concurrent import Concurrent
from gantrymq.client.consuming.handling import ConsumeStatus, Later
from gantrymq.client.consuming.iterating import Iteration
from gantrymq.client.consuming.orderly import Orderly
from gantrymq.client.consuming.retrying import Retrying
from gantrymq.client.consuming.subscribed import refuse
from gantrymq.client.errors import PeerGone
from support.consuming import until
from support.held_messages import (
    FakeCore,
    GivenBack,
    hold,
    process_queue,
    subscribed_to,
    turns,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from gantrymq.client.consuming.calls import ConsumerCalls
    from gantrymq.client.consuming.handling import Run
    from gantrymq.client.consuming.locks import QueueLocks
    from gantrymq.client.consuming.process_queue import ProcessQueue
    from gantrymq.client.received import ReceivedMessage


def go(main: Coroutine[Any, Any, None]) -> None:
    """Run a test, for ten seconds at most."""
    asyncio.run(asyncio.wait_for(main, 10))


def concurrent(core: FakeCore, run: Run, **options: float) -> tuple[Concurrent, ProcessQueue]:
    """Return workers that are at work, and a queue for them."""
    subscribed = subscribed_to(run)
    given = {"workers": 3, "batch": 1, "consume_timeout_s": 100.0, **options}
    made = Concurrent(core.as_core, lambda _held: subscribed, **given)  # type: ignore[arg-type]
    made.retrying = cast("Retrying", GivenBack())
    made.start()
    return made, process_queue(subscribed)


def given_back(delivery: Concurrent | Orderly) -> list[tuple[bytes, int]]:
    """Return the messages that a delivery gave back."""
    return cast("GivenBack", delivery.retrying).failed_ones


def test_no_more_handlers_at_once_than_workers() -> None:
    at_once: list[int] = []
    running = 0

    async def handler(_message: ReceivedMessage) -> None:
        nonlocal running
        running += 1
        at_once.append(running)
        await asyncio.sleep(0.001)
        running -= 1

    async def main() -> None:
        core = FakeCore()
        workers, queue = concurrent(core, handler)
        workers.deliver(queue, hold(queue, *[b"m"] * 30))
        await until(lambda: queue.commit_offset == 30)
        await core.end()

    go(main())
    assert max(at_once) == 3
    assert len(at_once) == 30


@pytest.mark.parametrize(
    ("error", "level"), [(ValueError("no"), 0), (Later(4), 4), (asyncio.CancelledError(), 0)]
)
def test_what_a_handler_raises(error: BaseException, level: int) -> None:
    async def handler(message: ReceivedMessage) -> None:
        if message.body == b"bad":
            raise error

    async def main() -> None:
        core = FakeCore()
        workers, queue = concurrent(core, handler)
        workers.deliver(queue, hold(queue, b"good", b"bad", b"after"))
        await turns()
        assert given_back(workers) == [(b"bad", level)]
        assert queue.commit_offset == 3
        assert queue.subscribed is not None
        assert (queue.subscribed.counters.taken, queue.subscribed.counters.failed) == (2, 1)
        await core.end()

    go(main())


def test_later_may_be_returned() -> None:
    async def handler(_message: ReceivedMessage) -> ConsumeStatus:
        return ConsumeStatus.LATER

    async def main() -> None:
        core = FakeCore()
        workers, queue = concurrent(core, handler)
        workers.deliver(queue, hold(queue, b"m"))
        await turns()
        assert given_back(workers) == [(b"m", 0)]
        await core.end()

    go(main())


def test_a_message_that_is_handled_for_too_long_is_given_back_once() -> None:
    release = asyncio.Event()

    async def handler(_message: ReceivedMessage) -> None:
        await release.wait()
        raise ValueError("too late to matter")

    async def main() -> None:
        core = FakeCore()
        workers, queue = concurrent(core, handler, consume_timeout_s=0.05)
        workers.deliver(queue, hold(queue, b"slow"))
        await until(lambda: given_back(workers))
        release.set()
        await turns()
        assert given_back(workers) == [(b"slow", 3)]
        await core.end()

    go(main())


def test_a_dropped_queue_is_not_delivered_and_what_runs_is_not_given_back() -> None:
    begun: list[bytes] = []
    release = asyncio.Event()

    async def handler(message: ReceivedMessage) -> None:
        begun.append(message.body)
        await release.wait()

    async def main() -> None:
        core = FakeCore()
        workers, queue = concurrent(core, handler, workers=1)
        workers.deliver(queue, hold(queue, b"one", b"two"))
        await turns()
        await workers.release(queue)
        release.set()
        await turns()
        assert begun == [b"one"]
        await core.end()

    go(main())


def test_quick_handlers_leave_the_loop_to_others() -> None:
    ticks = 0

    async def handler(_message: ReceivedMessage) -> None:
        pass  # never waits

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async def main() -> None:
        core = FakeCore()
        workers, queue = concurrent(core, handler)
        core.spawn(tick(), "tick")
        for _ in range(100):
            workers.deliver(queue, hold(queue, *[b"m"] * 1000))
        before = ticks
        await until(lambda: queue.commit_offset == 100_000)
        assert ticks - before >= 10
        await core.end()

    go(main())


def test_closing_waits_for_handlers_but_not_for_ever() -> None:
    done: list[bytes] = []

    async def handler(message: ReceivedMessage) -> None:
        await asyncio.sleep(0.02 if message.body == b"quick" else 100)
        done.append(message.body)

    async def main() -> None:
        core = FakeCore()
        workers, queue = concurrent(core, handler)
        workers.deliver(queue, hold(queue, b"quick", b"stuck"))
        await turns()
        await workers.close(0.2)
        assert done == [b"quick"]
        assert queue.commit_offset == 1
        await core.end()

    go(main())


# -- in order ---------------------------------------------------------------------------------


class FakeLock:
    """A lock that is ours or not."""

    def __init__(self) -> None:
        self.ours = True

    def holds(self, _queue: ProcessQueue) -> bool:
        """Tell whether it is."""
        return self.ours


def orderly(
    core: FakeCore, run: Run | None, reconsume_max: int = -1, **options: int
) -> tuple[Orderly, ProcessQueue, FakeLock]:
    """Return a lane that is at work, with the lock of its queue."""
    subscribed = subscribed_to(run)
    given = {"workers": 3, "batch": 1, **options}
    made = Orderly(
        core.as_core,
        lambda _held: subscribed,
        reconsume_max=reconsume_max,
        suspend_s=0.01,
        **given,
    )
    made.retrying = cast("Retrying", GivenBack())
    lock = FakeLock()
    made.locks = cast("QueueLocks", lock)
    queue = process_queue(subscribed)
    made.opened(queue)
    return made, queue, lock


def test_a_lane_stops_when_its_lock_is_gone_and_goes_on_when_it_is_back() -> None:
    seen: list[bytes] = []

    async def main() -> None:
        core = FakeCore()

        async def handler(message: ReceivedMessage) -> None:
            seen.append(message.body)
            lock.ours = len(seen) != 2

        lanes, queue, lock = orderly(core, handler)
        lanes.deliver(queue, hold(queue, b"1", b"2", b"3"))
        await turns()
        assert seen == [b"1", b"2"]
        assert queue.commit_offset == 2
        lock.ours = True
        lanes.unlocked(queue)
        await turns()
        assert seen == [b"1", b"2", b"3"]
        await core.end()

    go(main())


def test_attempts_are_counted_and_end_among_the_dead_letters() -> None:
    attempts: list[tuple[bytes, int]] = []

    async def handler(message: ReceivedMessage) -> None:
        attempts.append((message.body, message.attempt))
        if message.body == b"bad":
            raise Later

    async def main() -> None:
        core = FakeCore()
        lanes, queue, _lock = orderly(core, handler, reconsume_max=2)
        lanes.deliver(queue, hold(queue, b"bad", b"good"))
        await until(lambda: queue.commit_offset == 2)
        assert attempts == [(b"bad", 1), (b"bad", 2), (b"bad", 3), (b"good", 1)]
        assert given_back(lanes) == [(b"bad", -1)]
        await core.end()

    go(main())


def test_a_message_that_the_broker_does_not_take_stays_first() -> None:
    async def handler(message: ReceivedMessage) -> None:
        if message.body == b"bad":
            raise Later(-1)

    async def main() -> None:
        core = FakeCore()
        lanes, queue, _lock = orderly(core, handler)
        broker = cast("GivenBack", lanes.retrying)
        broker.takes = False
        lanes.deliver(queue, hold(queue, b"bad", b"good"))
        await until(lambda: len(broker.failed_ones) >= 3)
        assert queue.commit_offset == 0
        broker.takes = True
        await until(lambda: queue.commit_offset == 2)
        await core.end()

    go(main())


def test_giving_a_queue_back_waits_for_its_handler_and_counts_it() -> None:
    release = asyncio.Event()

    async def handler(_message: ReceivedMessage) -> None:
        await release.wait()

    async def main() -> None:
        core = FakeCore()
        lanes, queue, _lock = orderly(core, handler)
        lanes.deliver(queue, hold(queue, b"1", b"2"))
        await turns()
        leaving = asyncio.create_task(lanes.release(queue))
        await turns()
        assert not leaving.done()
        release.set()
        await leaving
        assert queue.commit_offset == 1
        await core.end()

    go(main())


def test_two_who_give_a_queue_back_both_wait_for_its_handler() -> None:
    go_on = asyncio.Event()

    async def handler(_message: ReceivedMessage) -> None:
        await go_on.wait()

    async def main() -> None:
        core = FakeCore()
        lanes, queue, _lock = orderly(core, handler)
        lanes.deliver(queue, hold(queue, b"1", b"2"))
        await turns()
        leaving = [asyncio.create_task(lanes.release(queue)) for _ in range(2)]
        await turns()
        lanes.deliver(queue, hold(queue, b"3"))  # nothing is taken any more
        assert [task.done() for task in leaving] == [False, False]
        go_on.set()
        await asyncio.gather(*leaving)
        assert queue.commit_offset == 1
        await core.end()

    go(main())


def test_a_message_without_a_handler_here_does_not_hold_up_those_behind_it() -> None:
    seen: list[bytes] = []

    async def handler(message: ReceivedMessage) -> None:
        if message.body == b"another's":
            await refuse(message)
        seen.append(message.body)

    async def main() -> None:
        core = FakeCore()
        lanes, queue, _lock = orderly(core, handler)
        lanes.deliver(queue, hold(queue, b"another's", b"ours"))
        await until(lambda: queue.commit_offset == 2)
        assert seen == [b"ours"]
        assert given_back(lanes) == [(b"another's", 0)]
        await core.end()

    go(main())


def test_lists_keep_the_order() -> None:
    seen: list[list[bytes]] = []

    async def handler(messages: list[ReceivedMessage]) -> None:
        seen.append([message.body for message in messages])

    async def main() -> None:
        core = FakeCore()
        lanes, queue, _lock = orderly(core, handler, batch=2)
        lanes.deliver(queue, hold(queue, b"1", b"2", b"3"))
        await turns()
        assert seen == [[b"1", b"2"], [b"3"]]
        await core.end()

    go(main())


def test_a_loop_over_lanes_gets_one_message_of_each_at_a_time() -> None:
    async def main() -> None:
        core = FakeCore()
        lanes, queue, _lock = orderly(core, None)
        lanes.deliver(queue, hold(queue, b"1", b"2"))
        loop = Iteration(lanes, lambda: False)
        assert (await anext(loop)).body == b"1"
        await turns()
        assert len(lanes.inbox) == 0
        assert (await anext(loop)).body == b"2"
        assert queue.commit_offset == 1
        await core.end()

    go(main())


# -- what cannot be given back ------------------------------------------------------------------


class SilentBroker:
    """Does not answer."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error or PeerGone("gone")

    async def send_back(self, *_arguments: object, **_more: object) -> None:
        """Fail."""
        raise self._error


@pytest.mark.parametrize("error", [PeerGone("gone"), ZeroDivisionError("on purpose")])
def test_a_message_that_cannot_be_given_back_stays_and_comes_again(error: Exception) -> None:
    async def main() -> None:
        again: list[bytes] = []
        retrying = Retrying(
            cast("ConsumerCalls", SilentBroker(error)),
            -1,
            lambda held: again.append(held.message.body),
            gives_back=True,
            local_retry_s=0.01,
        )
        queue = process_queue(subscribed_to(None))
        (held,) = hold(queue, b"m")
        await retrying.failed(held, 0)
        assert queue.commit_offset == 0
        await asyncio.sleep(0.05)
        assert again == [b"m"]
        queue.drop()
        await retrying.failed(held, 0)
        await asyncio.sleep(0.05)
        assert again == [b"m"]

    go(main())


def test_broadcasting_gives_a_failed_message_up(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        broker = cast("ConsumerCalls", SilentBroker())
        retrying = Retrying(broker, -1, lambda _held: None, gives_back=False)
        queue = process_queue(subscribed_to(None))
        (held,) = hold(queue, b"m")
        await retrying.failed(held, 0)
        assert queue.commit_offset == 1

    go(main())
    assert "given up" in caplog.text
