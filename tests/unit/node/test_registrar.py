"""Registering with name servers: whatever one of them answers, the broker stays in the routes."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from gantrymq.model.offsets import DataVersion
from gantrymq.model.topic import TopicConfig
from gantrymq.node.registrar import BrokerAddress, Registrar, Rules
from gantrymq.wire.bodies.route import TOPIC_ROUTE
from gantrymq.wire.bodies.topic import TopicTable
from gantrymq.wire.command import Command
from gantrymq.wire.peer import PeerLate
from support.transport import until

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from gantrymq.transport.requester import Connections
    from support.transport import Run

WHO = BrokerAddress("DefaultCluster", "broker-a", 0, "127.0.0.1:10911", "127.0.0.1:10912")


class Lines:
    """Connections to name servers that answer what a test says."""

    def __init__(self, answer: Callable[[int], Command]) -> None:
        self.asked: list[Command] = []
        self.is_open = True
        self._answer = answer

    def open_connection(self, _address: str) -> object | None:
        """Return the connection, if there is one."""
        return self if self.is_open else None

    async def ask(self, _address: str, request: Command, _timeout_s: float) -> Command:
        """Note a request and answer it."""
        self.asked.append(request)
        await asyncio.sleep(0)
        return self._answer(len(self.asked))


def registrar(lines: Lines, **more: Any) -> Registrar:  # noqa: ANN401
    versions = count()  # something has changed, whenever somebody looks
    return Registrar(
        WHO,
        ["ns:1"],
        cast("Connections", lines),
        lambda: TopicTable(data_version=DataVersion(counter=next(versions))),
        interval_s=more.pop("interval_s", 30),
        **more,
    )


def good(_number: int) -> Command:
    return Command.request(0, 1).response()


def test_changes_that_come_together_are_told_together(run: Run) -> None:
    async def main() -> None:
        lines, topics = Lines(good), Growing("A", "B")
        one = growing(lines, topics)
        one.start()
        assert await one.wait_known(5)
        del topics.topics["A"]
        topics.counter += 1
        for _ in range(50):
            one.changed()
        await asyncio.sleep(0.2)
        assert len(lines.asked) == 2
        one.changed()  # although nothing has
        await asyncio.sleep(0.1)
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


def test_a_name_server_that_was_started_again_is_told_at_once(run: Run) -> None:
    async def main() -> None:
        lines = Lines(good)
        one = growing(lines, Growing("A"))
        one.start()
        assert await one.wait_known(5)
        await asyncio.sleep(0.05)
        one.line_closed()  # another one: this is still there
        await asyncio.sleep(0.05)
        assert codes(lines) == [103]
        lines.is_open = False
        one.line_closed()
        assert one.known_to == set()
        await asked(lines, 2)
        assert codes(lines) == [103, 103], "everything, long before its time"
        await one.stop()

    run(main())


def test_without_name_servers_nobody_waits(run: Run) -> None:
    async def main() -> None:
        table = TopicTable(data_version=DataVersion(), topic_config_table={})
        lines = cast("Connections", Lines(good))
        one = Registrar(WHO, [], lines, lambda: table, interval_s=30)
        one.start()
        assert await one.wait_known(0.001)
        await one.stop()

    run(main())


def test_without_force_a_name_server_is_told_only_what_it_does_not_know(
    run: Run,
    monkeypatch: Any,  # noqa: ANN401
) -> None:
    monkeypatch.setattr("gantrymq.node.registrar.SETTLE_S", 0)
    has_lost_it = False

    async def main() -> None:
        nonlocal has_lost_it

        def answer(_number: int) -> Command:
            changed = "true" if has_lost_it else "false"
            return Command.request(0, 1).response(0, {"changed": changed})

        lines = Lines(answer)
        one = registrar(lines, interval_s=0.01, rules=lambda: Rules(always=False))
        one.start()
        await until(lambda: len(lines.asked) >= 4)
        codes = [request.code for request in lines.asked]
        assert codes[:4] == [103, 322, 322, 322]
        assert b"counter" in lines.asked[1].body
        has_lost_it = True  # as one that was started again
        await until(lambda: [one.code for one in lines.asked].count(103) == 2)
        has_lost_it = False
        one.changed()
        await until(lambda: [one.code for one in lines.asked].count(103) == 3)
        await one.stop()

    run(main())


def test_a_name_server_that_never_answers_is_named_once(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(number: int) -> Command:
        if number != 3:
            raise PeerLate("ns:1: no connection within 3 s")
        return good(number)

    async def main() -> None:
        lines = Lines(answer)
        one = registrar(lines)
        one.start()
        while len(lines.asked) < 5:
            one.changed()
            await asyncio.sleep(0.001)
        await one.stop()

    run(main())
    told = [line for line in caplog.messages if "ns:1 does not answer" in line]
    assert len(told) == 2, "before it answered, and when it stopped to"
    assert "no connection" in told[0]


def test_a_stop_right_after_a_change_is_a_stop(run: Run) -> None:
    async def main() -> None:
        one = registrar(Lines(good))
        one.start()
        assert await one.wait_known(5)
        await asyncio.sleep(0.05)
        one.changed()
        await asyncio.wait_for(one.stop(), 5)

    run(main())


class Growing:
    """A broker's topics, as a registrar sees them."""

    def __init__(self, *names: str) -> None:
        self.topics = {name: TopicConfig(name) for name in names}
        self.counter = 0

    def put(self, config: TopicConfig) -> None:
        self.topics[config.name] = config
        self.counter += 1

    def table(self) -> TopicTable:
        version = DataVersion(counter=self.counter)
        return TopicTable(data_version=version, topic_config_table=dict(self.topics))


def growing(lines: Lines, topics: Growing, interval_s: float = 30) -> Registrar:
    connections = cast("Connections", lines)
    return Registrar(WHO, ["ns:1"], connections, topics.table, interval_s=interval_s)


async def asked(lines: Lines, count: int) -> None:
    await until(lambda: len(lines.asked) == count)


def codes(lines: Lines) -> list[int]:
    return [request.code for request in lines.asked]


def test_a_name_server_that_knows_the_broker_is_told_of_new_topics_alone(run: Run) -> None:
    async def main() -> None:
        lines, topics = Lines(good), Growing("A", "B")
        one = growing(lines, topics)
        one.start()
        assert await one.wait_known(5)
        topics.put(TopicConfig("New", 8, 4))
        topics.put(TopicConfig("A", 1, 1))
        one.changed()
        await until(lambda: len(lines.asked) == 3)
        assert codes(lines) == [103, 217, 217]
        changed, new = lines.asked[1:]
        assert (new.fields["topic"], changed.fields["topic"]) == ("New", "A")
        (queues,) = TOPIC_ROUTE.decode(new.body).queues
        assert (queues.broker_name, queues.read_queues, queues.write_queues) == ("broker-a", 8, 4)
        topics.put(TopicConfig("C"))
        del topics.topics["B"]
        one.changed()
        await until(lambda: len(lines.asked) == 4)
        assert codes(lines)[-1] == 103, "one that is gone can only be left out of all"
        await one.stop()

    run(main())


def test_a_broker_that_gets_topics_all_the_time_registers_all_the_same(run: Run) -> None:
    async def main() -> None:
        lines, topics = Lines(good), Growing("A")
        one = growing(lines, topics, interval_s=0.3)
        one.start()
        assert await one.wait_known(5)
        # Name servers forget who has not registered; to be told of a topic is no sign of life.
        for number in range(100):
            topics.put(TopicConfig(f"New-{number}"))
            one.changed()
            await asyncio.sleep(0.05)
            if codes(lines).count(103) == 3:
                break
        await one.stop()
        assert codes(lines).count(103) == 3
        assert codes(lines).count(217) > 3

    run(main())


def test_one_that_takes_no_single_topics_is_told_everything(run: Run) -> None:
    def old(number: int) -> Command:
        return Command.request(0, 1).response(3, remark="not supported") if number == 2 else good(0)

    async def main() -> None:
        lines, topics = Lines(old), Growing("A")
        one = growing(lines, topics)
        one.start()
        assert await one.wait_known(5)
        for number in (3, 4):
            topics.put(TopicConfig(f"New{number}"))
            one.changed()
            await asked(lines, number)
        assert codes(lines) == [103, 217, 103, 103], "it is asked that once"
        assert b"New4" in lines.asked[-1].body
        await one.stop()

    run(main())


def test_a_topic_that_could_not_be_told_is_told_with_all_others(run: Run) -> None:
    def gone(number: int) -> Command:
        if number == 2:
            raise PeerLate("no answer")
        return good(number)

    async def main() -> None:
        lines, topics = Lines(gone), Growing("A")
        one = growing(lines, topics)
        one.start()
        assert await one.wait_known(5)
        topics.put(TopicConfig("New"))
        one.changed()
        await until(lambda: len(lines.asked) == 3)
        assert codes(lines) == [103, 217, 103]
        assert b'"New"' in lines.asked[-1].body
        await one.stop()

    run(main())
