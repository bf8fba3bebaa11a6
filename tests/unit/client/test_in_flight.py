"""The bound on what is under way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.errors import ClientClosed, TooManyInFlight
from gantrymq.client.in_flight import InFlight
from gantrymq.errors import InvalidValue
from support.transport import turns

if TYPE_CHECKING:
    from support.transport import Run


def test_places_are_given_in_order(run: Run) -> None:
    async def main() -> None:
        bound = InFlight(2)
        order: list[int] = []

        async def worker(number: int) -> None:
            await bound.enter(5)
            order.append(number)

        tasks = [asyncio.ensure_future(worker(number)) for number in range(5)]
        await turns()
        assert (order, bound.count, bound.free) == ([0, 1], 2, 0)
        tasks[2].cancel()  # it leaves the line, and its place goes to the next
        await turns()
        bound.leave()
        await turns()
        assert order == [0, 1, 3]
        bound.leave()
        await turns()
        assert order == [0, 1, 3, 4]
        bound.leave()
        bound.leave()
        assert (bound.count, bound.free) == (0, 2)

    run(main())


def test_no_place_becomes_free(run: Run) -> None:
    async def main() -> None:
        bound = InFlight(1)
        await bound.enter(1)
        with pytest.raises(TooManyInFlight, match="1 sends are under way"):
            await bound.enter(0.01)
        waiting = asyncio.ensure_future(bound.enter(5))
        await turns()
        assert await bound.close(0.01) == 1
        with pytest.raises(ClientClosed):
            await waiting
        bound.leave()
        assert await bound.close(0.01) == 0

    run(main())


def test_a_bound_that_is_none() -> None:
    with pytest.raises(InvalidValue, match="give at least 1"):
        InFlight(0)
