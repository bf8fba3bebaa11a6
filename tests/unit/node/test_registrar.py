"""Registering with name servers: whatever one of them answers, the broker stays in the routes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from gantrymq.model.offsets import DataVersion
from gantrymq.node.registrar import BrokerAddress, Registrar
from gantrymq.wire.bodies.topic import TopicTable
from gantrymq.wire.command import Command
from gantrymq.wire.peer import PeerLate
from support.transport import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.transport.requester import Connections
    from support.transport import Run

WHO = BrokerAddress("DefaultCluster", "broker-a", 0, "127.0.0.1:10911", "127.0.0.1:10912")


class Lines:
    """Connections to name servers that answer what a test says."""

    def __init__(self, answer: Callable[[int], Command]) -> None:
        self.asked: list[Command] = []
        self._answer = answer

    async def ask(self, _address: str, request: Command, _timeout_s: float) -> Command:
        """Note a request and answer it."""
        self.asked.append(request)
        await asyncio.sleep(0)
        return self._answer(len(self.asked))


def registrar(lines: Lines, **more: Any) -> Registrar:  # noqa: ANN401
    table = TopicTable(data_version=DataVersion(), topic_config_table={})
    return Registrar(
        WHO,
        ["ns:1"],
        cast("Connections", lines),
        lambda: table,
        interval_s=more.pop("interval_s", 30),
        timeout_s=1,
        **more,
    )


def good(_number: int) -> Command:
    return Command.request(0, 1).response()


def test_changes_that_come_together_are_told_together(run: Run) -> None:
    async def main() -> None:
        lines = Lines(good)
        one = registrar(lines)
        one.start()
        assert await one.wait_known(5)
        for _ in range(50):
            one.changed()
        await asyncio.sleep(0.2)
        assert len(lines.asked) == 2
        await one.stop()
        assert [request.code for request in lines.asked] == [103, 103, 104]

    run(main())


def test_an_answer_that_is_nonsense_ends_nothing(run: Run) -> None:
    def nonsense(number: int) -> Command:
        if number == 1:
            return Command.request(0, 1).response(body=b"no table")
        return good(number)

    async def main() -> None:
        lines, seen = Lines(nonsense), cast("list[frozenset[str]]", [])
        one = registrar(lines, ordered=seen.append)
        one.start()
        assert await one.wait_known(5)
        one.changed()
        await until(lambda: len(lines.asked) > 1)
        assert seen == []
        await one.stop()

    run(main())


def test_a_fault_is_tried_again(run: Run, monkeypatch: Any) -> None:  # noqa: ANN401
    monkeypatch.setattr("gantrymq.node.registrar.RETRY_S", 0.01)

    def fails(number: int) -> Command:
        if number == 1:
            raise ZeroDivisionError("on purpose")
        if number == 2:
            raise PeerLate("no answer")
        return good(number)

    async def main() -> None:
        lines = Lines(fails)
        one = registrar(lines)
        one.start()
        assert await one.wait_known(5)
        assert len(lines.asked) == 3
        await one.stop()

    run(main())


def test_without_name_servers_nobody_waits(run: Run) -> None:
    async def main() -> None:
        table = TopicTable(data_version=DataVersion(), topic_config_table={})
        lines = cast("Connections", Lines(good))
        one = Registrar(WHO, [], lines, lambda: table, interval_s=30, timeout_s=1)
        one.start()
        assert await one.wait_known(0.001)
        await one.stop()

    run(main())
