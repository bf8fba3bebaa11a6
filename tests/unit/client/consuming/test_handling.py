"""Handlers of every shape, threads for those that block, and options that cannot be."""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.client.consuming import strategies
from gantrymq.client.consuming.handling import as_async, check_handler, is_async
from gantrymq.client.consuming.options import ConsumeOptions
from gantrymq.client.consuming.statistics import TopicCounters
from gantrymq.client.consuming.threads import HandlerThreads
from gantrymq.client.consuming.waits import Waits
from gantrymq.client.push_consumer import PushConsumer
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator


async def coroutine(message: str) -> str:
    """Return what it got."""
    return f"async {message}"


def plain(message: str) -> str:
    """Return what it got and where it ran."""
    return f"{threading.current_thread().name} {message}"


class Caller:
    """An object that can be awaited."""

    async def __call__(self, message: str) -> str:
        return f"object {message}"


def run(handler: Callable[[Any], object]) -> object:
    """Call a handler as consumers do."""

    async def main() -> object:
        threads = HandlerThreads(2, "test")
        try:
            return await as_async(handler, lambda: threads)("m")
        finally:
            threads.close()

    return asyncio.run(main())


def test_every_kind_of_function() -> None:
    assert run(coroutine) == "async m"
    assert run(plain) == "test-1 m"
    assert run(functools.partial(coroutine)) == "async m"
    assert run(Caller()) == "object m"
    assert run(lambda message: coroutine(f"{message}!")) == "async m!"
    assert (is_async(Caller()), is_async(plain)) == (True, False)
    with pytest.raises(InvalidValue, match="give a function"):
        check_handler("handler")


def yields(_message: object) -> Iterator[int]:
    yield 1


async def yields_later(_message: object) -> AsyncIterator[int]:
    yield 1


class Yields:
    def __call__(self, message: object) -> Iterator[int]:
        yield from yields(message)


@pytest.mark.parametrize(
    "handler", [yields, yields_later, Yields(), functools.partial(yields_later)]
)
def test_a_handler_that_would_do_nothing_is_refused(handler: Callable[[object], object]) -> None:
    """Calling a generator function runs none of it: every message would be lost."""
    with pytest.raises(InvalidValue, match="has a yield"):
        PushConsumer("127.0.0.1:1", "g").subscribe("T", handler=handler)


def test_threads_are_bounded_and_errors_come_back() -> None:
    at_once, most = 0, 0
    lock = threading.Lock()

    def work(number: int) -> int:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        if number == 3:
            raise ValueError("three")
        with lock:
            at_once -= 1
        return number

    async def main() -> list[Any]:
        threads = HandlerThreads(3, "test")
        results = await asyncio.gather(
            *(threads.call(work, number) for number in range(50)), return_exceptions=True
        )
        threads.close()
        return results

    results = asyncio.run(main())
    assert isinstance(results[3], ValueError)
    assert [one for one in results if not isinstance(one, ValueError)] == [
        number for number in range(50) if number != 3
    ]
    assert most <= 4  # the one that raised never left


def test_a_thread_that_hangs_keeps_nobody_from_the_rest() -> None:
    release = threading.Event()

    async def main() -> None:
        threads = HandlerThreads(2, "test")
        stuck = asyncio.create_task(threads.call(lambda _: release.wait(10), None))
        assert await threads.call(lambda number: number, 7) == 7
        release.set()
        assert await stuck
        threads.close()

    asyncio.run(asyncio.wait_for(main(), 10))


def test_waits_grow_to_a_bound_and_begin_anew() -> None:
    waits = Waits(first_s=1, most_s=8)
    assert not waits
    seen = [waits.next() for _ in range(40)]
    for got, whole in zip(seen, [1, 2, 4, 8, 8], strict=False):
        assert 0.75 * whole <= got <= whole
    assert max(seen) <= 8
    waits.reset()
    assert not waits
    assert waits.next() <= 1


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"mode": "both"}, "clustering"),
        ({"start": "middle"}, "first"),
        ({"workers": 0}, "workers"),
        ({"batch": 5000}, "batch"),
        ({"strategy": "average"}, "strategy"),
        ({"pop": True, "orderly": True}, "pop"),
        ({"pop": True, "mode": "broadcasting"}, "pop"),
        ({"hold_messages": 0}, "hold_messages"),
        ({"consume_timeout_s": 0}, "consume_timeout_s"),
        ({"pop_invisible_s": 0}, "pop_invisible_s"),
    ],
)
def test_options_that_cannot_be(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidValue, match=problem):
        ConsumeOptions(**given)
    with pytest.raises(InvalidValue, match=problem):
        PushConsumer("127.0.0.1:9876", "G", **given)


def test_options_that_can() -> None:
    assert ConsumeOptions(orderly=True).limits().span is None
    assert ConsumeOptions(strategy=strategies.circle).limits().span == 2000


def test_a_handler_for_some_topics_only_is_refused() -> None:
    consumer = PushConsumer("127.0.0.1:9876", "G")
    consumer.subscribe("A", "*", coroutine)
    with pytest.raises(InvalidValue, match="give all of them one"):
        consumer.subscribe("B")
    with pytest.raises(InvalidValue, match="subscribe first"):
        consumer.pause("B")


def test_rates_are_of_the_last_minute() -> None:
    counters = TopicCounters()
    counters.sample(0.0)
    counters.taken, counters.spent_s = 600, 6.0
    counters.sample(30.0)
    assert counters.status(60.0).consume_ok_tps == 10
    assert counters.status(60.0).consume_rt == 10
    counters.sample(70.0)
    assert counters.status(71.0).consume_ok_tps == 0
    counters.failed = 3
    assert counters.status(71.0).consume_failed_msgs == 3
