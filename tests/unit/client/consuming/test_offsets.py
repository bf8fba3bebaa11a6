"""Where offsets are kept, and where reading begins without one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, cast

import pytest

from gantrymq.client.consuming.offsets import LocalOffsets, RemoteOffsets
from gantrymq.client.consuming.process_queue import HoldLimits, ProcessQueue
from gantrymq.client.consuming.start_position import StartPosition, milliseconds
from gantrymq.client.errors import ClientError, InvalidValue, PeerGone
from gantrymq.model.group import ConsumeFromWhere
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.wire.response_errors import TopicNotExist

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.client.consuming.calls import ConsumerCalls

QUEUES = [MessageQueue("T", "b", QueueId(number)) for number in range(3)]
RETRY = MessageQueue("%RETRY%G", "b", QueueId(0))


class FakeCalls:
    """A broker that says what a test wants."""

    def __init__(self) -> None:
        self.offsets: dict[MessageQueue, int] = {}
        self.asked: list[str] = []
        self.problem: Exception | None = None

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.problem is not None:
            raise self.problem

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return what was committed."""
        self._ask("committed")
        return self.offsets.get(queue)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Keep an offset."""
        self._ask("commit")
        self.offsets[queue] = offset

    async def max_offset(self, _queue: MessageQueue) -> int:
        """Return the end."""
        self._ask("max")
        return 100

    async def min_offset(self, _queue: MessageQueue) -> int:
        """Return the beginning."""
        self._ask("min")
        return 10

    async def offset_at(self, _queue: MessageQueue, time_ms: int) -> int:
        """Return an offset made of the time."""
        self._ask(f"at {time_ms}")
        return 50


def calls_of(fake: FakeCalls) -> ConsumerCalls:
    """Return the fake under the name of the real thing."""
    return cast("ConsumerCalls", fake)


def read(queue: MessageQueue, position: int) -> ProcessQueue:
    """Return a queue that is read up to a position."""
    return ProcessQueue(queue, position, HoldLimits())


def test_a_file_keeps_offsets_and_java_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "10.0.0.1@DEFAULT" / "G" / "offsets.json"

    async def main() -> None:
        store = LocalOffsets(path)
        await store.open()
        assert await store.load(QUEUES[0]) is None
        mine = [read(queue, 5 + queue.queue_id) for queue in QUEUES]
        assert await store.save(mine)
        assert [one.uncommitted for one in mine] == [None] * 3
        await store.close()
        again = LocalOffsets(path)
        await again.open()
        assert [await again.load(queue) for queue in QUEUES] == [5, 6, 7]
        await again.close()

    asyncio.run(main())
    assert path.read_text().startswith('{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}')
    assert sorted(one.name for one in path.parent.iterdir()) == ["offsets.json", "offsets.lock"]


def test_two_consumers_do_not_share_a_file(tmp_path: Path) -> None:
    async def main() -> None:
        first, second = LocalOffsets(tmp_path / "o.json"), LocalOffsets(tmp_path / "o.json")
        await first.open()
        with pytest.raises(ClientError, match="instance="):
            await second.open()
        await first.close()
        await second.open()
        await second.close()

    asyncio.run(main())


def test_a_file_that_cannot_be_read_is_not_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "o.json").write_text('{"offsetTable":{{"brokerName"')

    with pytest.raises(InvalidValue, match="delete it to begin anew"):
        asyncio.run(LocalOffsets(tmp_path / "o.json").open())


def test_the_broker_is_told_what_has_changed_only() -> None:
    fake = FakeCalls()
    mine = [read(queue, 5) for queue in QUEUES]
    mine[2].drop()

    async def main() -> None:
        store = RemoteOffsets(calls_of(fake))
        assert await store.save(mine)
        assert fake.asked == ["commit"] * 2
        mine[0].position = 9
        assert await store.save(mine)

    asyncio.run(main())
    assert fake.asked == ["commit"] * 3
    assert fake.offsets == {QUEUES[0]: 9, QUEUES[1]: 5}


def test_a_broker_that_is_gone_is_asked_once_and_told_later() -> None:
    fake = FakeCalls()
    mine = [read(queue, 5) for queue in QUEUES]

    async def main() -> None:
        store = RemoteOffsets(calls_of(fake))
        fake.problem = PeerGone("gone")
        assert not await store.save(mine)
        assert fake.asked == ["commit"]
        fake.problem = TopicNotExist("deleted")
        assert await store.save(mine)
        fake.problem = None
        assert await store.save(mine)

    asyncio.run(main())
    assert fake.offsets == dict.fromkeys(QUEUES, 5)


def test_a_newer_offset_waits_for_an_older_one_on_its_way() -> None:
    """A broker may handle two requests of one connection in either order."""
    on_their_way: list[int] = []
    first_arrived = asyncio.Event()

    class Slow(FakeCalls):
        async def commit(self, queue: MessageQueue, offset: int) -> None:
            on_their_way.append(offset)
            assert len(on_their_way) == 1, "two commits of one queue at the same time"
            if offset == 5:
                await first_arrived.wait()
            on_their_way.remove(offset)
            await super().commit(queue, offset)

    fake = Slow()
    mine = read(QUEUES[0], 5)

    async def main() -> None:
        store = RemoteOffsets(calls_of(fake))
        by_the_clock = asyncio.create_task(store.save([mine]))
        await asyncio.sleep(0)
        mine.position = 9
        last = asyncio.create_task(store.save_one(mine))
        await asyncio.sleep(0)
        first_arrived.set()
        assert await by_the_clock
        assert await last

    asyncio.run(main())
    assert fake.asked == ["commit"] * 2
    assert fake.offsets == {QUEUES[0]: 9}


def test_a_commit_that_waited_while_the_queue_was_given_up_is_not_made() -> None:
    fake = FakeCalls()
    mine = read(QUEUES[0], 5)

    async def main() -> None:
        store = RemoteOffsets(calls_of(fake))
        async with mine.committing:
            by_the_clock = asyncio.create_task(store.save([mine]))
            await asyncio.sleep(0)
            mine.drop()
        assert await by_the_clock
        assert fake.asked == []
        assert await store.save_one(mine), "who gives it up may still say how far it is"

    asyncio.run(main())
    assert fake.offsets == {QUEUES[0]: 5}


@pytest.mark.parametrize(
    ("start", "queue", "expected", "asked"),
    [
        ("first", QUEUES[0], 10, "min"),
        ("last", QUEUES[0], 100, "max"),
        (datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), QUEUES[0], 50, "at 1700000000000"),
        ("last", RETRY, 10, "min"),
    ],
)
def test_a_queue_that_was_never_read(
    start: object, queue: MessageQueue, expected: int, asked: str
) -> None:
    fake = FakeCalls()

    async def main() -> int:
        position = StartPosition(start)  # type: ignore[arg-type]
        return await position.offset(queue, RemoteOffsets(calls_of(fake)), calls_of(fake))

    assert asyncio.run(main()) == expected
    assert fake.asked == ["committed", asked]


def test_what_was_committed_wins() -> None:
    fake = FakeCalls()
    fake.offsets[QUEUES[0]] = 0
    store = RemoteOffsets(calls_of(fake))
    found = asyncio.run(StartPosition("last").offset(QUEUES[0], store, calls_of(fake)))
    assert (found, fake.asked) == (0, ["committed"])


def test_nothing_is_guessed_when_the_broker_does_not_say() -> None:
    fake = FakeCalls()
    fake.problem = PeerGone("gone")
    with pytest.raises(PeerGone):
        asyncio.run(
            StartPosition("last").offset(QUEUES[0], RemoteOffsets(calls_of(fake)), calls_of(fake))
        )


def test_times() -> None:
    assert StartPosition("first").where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    assert StartPosition("last").where is ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    east = timezone(timedelta(hours=8))
    assert milliseconds(datetime(1970, 1, 1, 8, 0, 1, tzinfo=east)) == 1000
    assert milliseconds(77) == 77
    with pytest.raises(InvalidValue, match="start is"):
        StartPosition("middle")  # type: ignore[arg-type]
