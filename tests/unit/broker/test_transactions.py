"""Committing and rolling back: what consumers see, what is refused, what a crash leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING

import pytest

from gantrymq.broker.half import as_half, done_with
from gantrymq.model.names import HALF_OP_TOPIC, HALF_TOPIC
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.properties import decode_properties
from gantrymq.wire.response_errors import (
    IllegalOperation,
    ServiceNotAvailable,
    SlaveNotAvailable,
    SystemBusy,
    SystemFailure,
)
from support.store_rig import Rig, message, sync_rig
from support.transaction_world import COMMIT, ROLLBACK, UNKNOWN, Sent, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Make = Callable[..., World]


@pytest.fixture
def make() -> Iterator[Make]:
    """Return what makes worlds, and lets their loops go."""
    made: list[World] = []

    def new(**more: object) -> World:
        made.append(World(**more))  # type: ignore[arg-type]
        return made[-1]

    yield new
    for world in made:
        world.close()


@pytest.fixture
def world(make: Make) -> World:
    """Return a broker that has just started."""
    return make()


def test_half_message_is_where_no_consumer_looks(world: World) -> None:
    """The real topic and queue stand in properties; the transaction flag is gone."""
    world.send(b"a", queue_id=1)
    assert world.seen("T", 1) == []
    (half,) = world.halves()
    properties = decode_properties(half.properties)
    assert (properties["REAL_TOPIC"], properties["REAL_QID"]) == ("T", "1")
    assert half.sys_flag & 0xC == 0


def test_half_message_cannot_wait_among_the_delayed(world: World) -> None:
    """A delay level would take it out of the half queue, where nobody would find it."""
    half = as_half(message(properties={"DELAY": "3", "TRAN_MSG": "true"}))
    assert "DELAY" not in half.properties
    assert world.rig.store.put([half]).topic == HALF_TOPIC


def test_commit_publishes_what_was_sent(world: World) -> None:
    """Flags, properties, place and time are those of the message that the producer sent."""
    sent = world.send(b"a", queue_id=1, KEYS="k", TAGS="t")
    answer = world.end(sent, COMMIT)
    assert isinstance(answer, Command)
    assert answer.code == ResponseCode.SUCCESS
    (record,) = world.rig.records("T", 1)
    assert record.body == b"a"
    assert record.sys_flag == COMMIT
    assert record.prepared_offset == sent.log_offset
    assert record.born_timestamp == world.halves()[0].born_timestamp
    assert decode_properties(record.properties) == {
        "KEYS": "k",
        "TAGS": "t",
        "PGROUP": "PG",
        "UNIQ_KEY": "a",
    }


def test_op_record_is_as_apache_writes_it(world: World) -> None:
    """Tag `d`, the half offset as decimal text, queue 0."""
    world.end(world.send(b"a"), ROLLBACK)
    world.end(world.send(b"b"), COMMIT)
    first, second = world.rig.records(HALF_OP_TOPIC)
    assert (first.body, second.body) == (b"0", b"1")
    assert decode_properties(first.properties)["TAGS"] == "d"
    assert done_with(second) == [1]


def test_rollback_is_never_seen(world: World) -> None:
    """Not then, and not when the round comes by."""
    producer = world.producer(5)
    world.end(world.send(b"a"), ROLLBACK)
    world.round()
    world.round()
    assert world.seen() == []
    assert world.asked(producer) == []


def test_unknown_is_not_answered_and_changes_nothing(world: World) -> None:
    """The producer will be asked."""
    assert world.end(world.send(b"a"), UNKNOWN) is None
    assert world.ops() == []
    assert world.seen() == []


def test_second_decision_publishes_nothing(world: World) -> None:
    """The same again is fine; another is refused."""
    sent = world.send(b"a")
    world.end(sent, COMMIT)
    again = world.end(sent, COMMIT)
    assert isinstance(again, Command)
    assert again.code == ResponseCode.SUCCESS
    with pytest.raises(SystemFailure, match="no longer open"):
        world.end(sent, ROLLBACK)
    assert world.seen() == [b"a"]
    assert world.ops() == [b"0"]


def test_commit_after_rollback_is_refused(world: World) -> None:
    """A message that was rolled back is never seen."""
    sent = world.send(b"a")
    world.end(sent, ROLLBACK)
    with pytest.raises(SystemFailure, match="no longer open"):
        world.end(sent, COMMIT)
    assert world.seen() == []


@pytest.mark.parametrize(
    ("change", "group", "problem"),
    [
        ((0, 0), "another", "producer group wrong: another"),
        ((1, 0), "PG", "state table offset wrong: 1"),
        ((0, 1), "PG", "no half message at log offset"),
        ((0, 10**6), "PG", "no half message at log offset"),
        ((0, -(10**6)), "PG", "no half message at log offset"),
    ],
)
def test_wrong_place_or_group_is_refused(
    world: World, change: tuple[int, int], group: str, problem: str
) -> None:
    """A decision is only taken for the message that its producer sent."""
    sent = world.send(b"a")
    wrong = Sent(sent.offset + change[0], sent.log_offset + change[1])
    with pytest.raises(SystemFailure, match=problem):
        world.end(wrong, COMMIT, group)
    assert world.seen() == []
    assert world.ops() == []


def test_ordinary_message_cannot_be_committed(world: World) -> None:
    """Whatever offset somebody names: nothing is published twice that way."""
    stored = world.rig.put(b"plain", properties={"PGROUP": "PG"})
    with pytest.raises(SystemFailure, match="no half message"):
        world.end(Sent(0, stored.log_offset), COMMIT)
    assert world.seen() == [b"plain"]


def test_message_without_a_target_is_refused(world: World) -> None:
    """It says whose it is, but not where it belongs."""
    stored = world.rig.put(b"x", topic=HALF_TOPIC, properties={"PGROUP": "PG"})
    with pytest.raises(SystemFailure, match="where it belongs"):
        world.end(Sent(stored.queue_offset, stored.log_offset), COMMIT)


def test_slave_ends_nothing(world: World) -> None:
    """It tells the producer so with Apache's code."""
    sent = world.send(b"a")
    world.is_slave = True
    with pytest.raises(SlaveNotAvailable):
        world.end(sent, COMMIT)


def test_late_end_waits_for_the_question(world: World) -> None:
    """As with 5.x: past its own immunity only an answer to a question counts."""
    sent = world.send(b"a", CHECK_IMMUNITY_TIME_IN_SECONDS="30")
    world.clock.jump(31)
    with pytest.raises(IllegalOperation, match="30 s"):
        world.end(sent, COMMIT)
    world.end(sent._replace(asked=True), COMMIT)
    assert world.seen() == [b"a"]


def test_op_record_waits_for_the_message_to_be_safe(make: Make) -> None:
    """SYNC_FLUSH: no op record, no answer and no second message before the disk has the first."""
    world = make(rig=sync_rig(mappedFileSizeCommitLog="65536"))
    sent = world.send(b"a")
    pending = world.begin_end(sent, COMMIT)
    assert isinstance(pending, asyncio.Future)
    before = world.rig.store.log.wrote_offset
    with pytest.raises(SystemBusy, match="being ended"):
        world.begin_end(sent, COMMIT)
    with pytest.raises(SystemBusy):
        world.begin_end(sent, ROLLBACK)
    assert world.rig.store.log.wrote_offset == before
    assert not pending.done()
    world.rig.settle()
    answer = pending.result()
    assert isinstance(answer, Command)
    assert answer.code == ResponseCode.SUCCESS
    assert world.seen() == [b"a"]
    assert world.ops() == [b"0"]


def test_op_record_is_written_for_a_producer_that_has_gone(make: Make) -> None:
    """Its connection is closed while the disk works; the decision counts all the same."""
    world = make(rig=sync_rig(mappedFileSizeCommitLog="65536"))
    pending = world.begin_end(world.send(b"a"), COMMIT)
    assert isinstance(pending, asyncio.Future)
    pending.cancel()
    world.rig.settle()
    assert world.ops() == [b"0"]


def test_refused_commit_stays_open(world: World) -> None:
    """A store that takes nothing loses nothing: the same commit works later."""
    sent = world.send(b"a")
    world.rig.store.writability.forbid("test", "no room")
    with pytest.raises(ServiceNotAvailable, match="no room"):
        world.end(sent, COMMIT)
    world.rig.store.writability.allow("test")
    world.end(sent, COMMIT)
    assert world.seen() == [b"a"]


def test_refused_rollback_is_still_a_rollback(world: World) -> None:
    """Its op record could not be stored, but nobody sees the message any more."""
    sent = world.send(b"a")
    world.rig.store.writability.forbid("test", "no room")
    with pytest.raises(ServiceNotAvailable):
        world.end(sent, ROLLBACK)
    world.rig.store.writability.allow("test")
    with pytest.raises(SystemFailure, match="no longer open"):
        world.end(sent, COMMIT)
    assert world.seen() == []


def test_commit_has_its_delay_no_more(world: World) -> None:
    """Transactions are not delayed: the message is there at once."""
    world.end(world.send(b"a", DELAY="3"), COMMIT)
    assert world.seen() == [b"a"]


# -- restarts ------------------------------------------------------------------------------------


def test_decisions_are_known_after_a_kill(make: Make) -> None:
    """The op queue is read again; what is open is asked about, the rest is not."""
    world = make()
    first, second, third = (world.send(body) for body in (b"a", b"b", b"c"))
    world.end(first, COMMIT)
    world.end(third, ROLLBACK)
    after = world.killed()
    producer = after.producer(5)
    after.round()
    (question,) = after.asked(producer)
    assert question.body == b"b"
    after.end(question, COMMIT)
    assert after.seen() == [b"a", b"b"]
    with pytest.raises(SystemFailure, match="no longer open"):
        after.end(first, COMMIT)
    after.end(second, COMMIT)  # late, about the offset before the question: it is the same message
    assert after.seen() == [b"a", b"b"]


def test_kill_between_message_and_op_record(make: Make) -> None:
    """The one crash that doubles: at least once, and never lost."""
    world = make(rig=sync_rig(mappedFileSizeCommitLog="65536"))
    world.begin_end(world.send(b"a"), COMMIT)
    after = world.killed()
    assert after.seen() == [b"a"]
    assert after.ops() == []
    producer = after.producer(5)
    after.round()
    (question,) = after.asked(producer)
    after.end(question, COMMIT)
    assert after.seen() == [b"a", b"a"]
    after.round()
    assert after.asked(producer) == []


def test_decision_waits_for_the_op_queue(make: Make) -> None:
    """A decision that comes while the op queue is being read is taken when that is done."""
    world = make()
    sent = world.send(b"a")
    world.is_slave = True
    world.tick()
    world.is_slave = False  # it is a master now, and knows nothing yet
    assert not world.transactions.ledger.is_loaded

    async def run() -> None:
        pending = world.begin_end(sent, COMMIT)
        assert isinstance(pending, Coroutine)
        task = asyncio.ensure_future(pending)
        await asyncio.sleep(0)
        assert not task.done()
        assert world.seen() == []
        world.tick(5)
        answer = await task
        assert isinstance(answer, Command)
        assert answer.code == ResponseCode.SUCCESS

    world.loop.run_until_complete(run())
    assert world.seen() == [b"a"]


def test_waiting_decision_is_let_go_when_the_broker_stops(make: Make) -> None:
    """It is refused: its producer will be asked."""
    world = make()
    sent = world.send(b"a")
    world.is_slave = True
    world.tick()
    world.is_slave = False

    async def run() -> None:
        pending = world.begin_end(sent, COMMIT)
        assert isinstance(pending, Coroutine)
        task = asyncio.ensure_future(pending)
        await asyncio.sleep(0)
        world.transactions.close()
        world.rig.store.writability.is_open = False
        with pytest.raises(SystemBusy, match="stopping"):
            await task

    world.loop.run_until_complete(run())


def test_offsets_ahead_of_a_cut_log_hide_nothing(make: Make) -> None:
    """Saved progress may name offsets that went with a torn end; they are given out again."""
    world = make()
    for body in (b"a", b"b", b"c"):
        world.end(world.send(body), COMMIT)
    world.round()
    assert world.progress() == (3, 3)
    world.save()
    fresh = make(rig=Rig(world.rig.settings), saved=world.saved)
    sent = fresh.send(b"new")
    assert sent.offset == 0
    producer = fresh.producer(5)
    fresh.round()
    (question,) = fresh.asked(producer)
    fresh.end(question, COMMIT)
    assert fresh.seen() == [b"new"]


# -- resuming ------------------------------------------------------------------------------------


def test_message_that_was_given_up_can_be_resumed(world: World) -> None:
    """RESUME_CHECK_HALF_MESSAGE: an operator lets it be asked about again, from zero."""
    world.set(transaction_checks_max=1)
    world.send(b"a")
    producer = world.producer(5)
    world.round()
    world.round()
    assert world.given_up() == [b"a"]
    (parked,) = world.rig.records("TRANS_CHECK_MAX_TIME_TOPIC")
    message_id = (parked.store_host + parked.log_offset.to_bytes(8)).hex().upper()
    resume = Command.request(RequestCode.RESUME_CHECK_HALF_MESSAGE, 1, {"msgId": message_id})
    answer = world.router.handle(resume, world.peer)
    assert isinstance(answer, Command)
    assert answer.code == ResponseCode.SUCCESS
    world.asked(producer)
    world.round()
    (question,) = world.asked(producer)
    world.end(question, COMMIT)
    assert world.seen() == [b"a"]


@pytest.mark.parametrize(
    ("message_id", "code"),
    [("x", ResponseCode.INVALID_PARAMETER), ("0" * 32, ResponseCode.SYSTEM_ERROR)],
)
def test_nothing_else_can_be_resumed(world: World, message_id: str, code: int) -> None:
    """An id that is none, or of a message that was never given up."""
    world.send(b"a")
    resume = Command.request(RequestCode.RESUME_CHECK_HALF_MESSAGE, 1, {"msgId": message_id})
    answer = world.router.handle(resume, world.peer)
    assert isinstance(answer, Command)
    assert answer.code == code
    assert len(world.halves()) == 1
