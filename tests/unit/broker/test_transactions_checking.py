"""Asking producers about half messages: when, whom, how often, and what cannot stop it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from gantrymq.broker import transactions_checking
from gantrymq.broker.stored_again import decode
from gantrymq.kernel import kernel
from gantrymq.model.names import HALF_OP_TOPIC, HALF_TOPIC
from gantrymq.store.get import Found
from gantrymq.store.status import GetStatus
from gantrymq.wire.headers.transaction import CheckTransactionStateRequest
from gantrymq.wire.properties import decode_properties
from gantrymq.wire.response_errors import SystemBusy, SystemFailure
from support.store_rig import LOG, Rig
from support.transaction_world import COMMIT, ROLLBACK, UNKNOWN, Sent, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Done = Callable[[Found], None]

ROOMY = {"mappedFileSizeCommitLog": "65536"}


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Return a broker that has just started; a parameter is settings of its store."""
    world = World(Rig(ROOMY | getattr(request, "param", {})))
    yield world
    world.close()


def test_question_names_the_copy(world: World) -> None:
    """New offsets, one check counted, and the message where its producer wanted it."""
    sent = world.send(b"a", queue_id=1)
    producer = world.producer(5)
    world.round()
    (request,) = producer.told
    header = CheckTransactionStateRequest.decode(request.fields)
    old, copy = world.halves()
    assert old.queue_offset == sent.offset
    assert header.tran_state_table_offset == copy.queue_offset == 1
    assert header.commit_log_offset == copy.log_offset
    assert header.msg_id == header.transaction_id == "a"
    assert header.offset_msg_id == (copy.store_host + copy.log_offset.to_bytes(8)).hex().upper()
    assert decode_properties(copy.properties)["TRANSACTION_CHECK_TIMES"] == "1"
    shown = decode(request.body)
    assert (shown.topic, shown.queue_id, shown.body) == (b"T", 1, b"a")
    assert (shown.queue_offset, shown.log_offset) == (copy.queue_offset, copy.log_offset)
    assert shown.store_timestamp == copy.store_timestamp
    assert kernel.decode_record(request.body, 0, len(request.body), True)[1] == len(request.body)


def test_another_instance_decides(world: World) -> None:
    """The one that sent it says "unknown" and dies; another of its group is asked and commits."""
    first = world.producer(5)
    world.end(world.send(b"a"), UNKNOWN)
    world.tables.clients.peer_closed(first)
    first.close("killed")
    second = world.producer(6)
    world.round()
    (question,) = world.asked(second)
    assert first.told == []
    world.end(question, COMMIT)
    world.round()
    assert world.seen() == [b"a"]
    assert world.asked(second) == []


def test_unknown_is_asked_again_next_round(world: World) -> None:
    """Each question is about a newer copy; the last answer decides."""
    producer = world.producer(5)
    world.send(b"a")
    for offset in (1, 2, 3):
        world.round()
        (question,) = world.asked(producer)
        assert question.offset == offset
        world.end(question, UNKNOWN)
    world.end(question, ROLLBACK)
    world.round()
    assert world.asked(producer) == []
    assert world.seen() == []


def test_late_decision_about_the_first_offset_counts_once(world: World) -> None:
    """The producer commits its own way just after it was asked: one message, no more questions."""
    producer = world.producer(5)
    sent = world.send(b"a")
    world.round()
    (question,) = world.asked(producer)
    world.end(sent, COMMIT)
    world.end(question, COMMIT)
    assert world.seen() == [b"a"]
    world.round()
    assert world.asked(producer) == []


def test_young_message_is_left_alone(world: World) -> None:
    """Not before transactionTimeOut; the settings of the moment count."""
    producer = world.producer(5)
    world.tick(59)
    world.send(b"a")
    world.tick(1)
    assert world.asked(producer) == []
    assert len(world.halves()) == 1
    world.set(transaction_interval_ms=10_000)
    world.tick(10)
    assert [one.body for one in world.asked(producer)] == [b"a"]


def test_wrong_clock_of_a_producer_does_not_hurry(world: World) -> None:
    """Its message is as old as we have had it, whatever birthday it has."""
    producer = world.producer(5)
    world.tick(58)
    half = world.send(b"a")
    record = world.halves()[0]
    assert record.queue_offset == half.offset
    for born in (0, world.clock.now_ms() + 10**9):
        world.rig.put(
            b"x",
            topic=HALF_TOPIC,
            properties=decode_properties(record.properties),
            born_timestamp=born,
        )
    world.tick(2)
    assert world.asked(producer) == []
    assert world.given_up() == []
    world.round()
    assert len(world.asked(producer)) == 3


def test_immunity_is_no_check(world: World) -> None:
    """A message that asks for time gets it: no copies, and none of its checks are used up."""
    producer = world.producer(5)
    world.send(b"a", CHECK_IMMUNITY_TIME_IN_SECONDS="600")
    for _ in range(9):
        world.round()
    assert len(world.halves()) == 1
    world.round()
    (question,) = world.asked(producer)
    copy = world.halves()[question.offset]
    assert decode_properties(copy.properties)["TRANSACTION_CHECK_TIMES"] == "1"


def test_nobody_online_is_no_check(world: World) -> None:
    """Nobody was asked; the others are; when one comes online, it is."""
    other = world.producer(5, "other")
    world.send(b"a")
    world.send(b"b", PGROUP="other")
    for _ in range(20):
        world.round()
        for question in world.asked(other):
            assert question.body == b"b"
            world.end(question, COMMIT, "other")
    assert world.given_up() == []
    producer = world.producer(6)
    world.round()
    (question,) = world.asked(producer)
    world.end(question, COMMIT)
    assert world.seen() == [b"b", b"a"]


def test_long_wait_is_carried_on(world: World) -> None:
    """A copy each hour, lest the log file be deleted; the producer's own offset still works."""
    sent = world.send(b"a", CHECK_IMMUNITY_TIME_IN_SECONDS="14400")
    for _ in range(125):
        world.round()
    assert len(world.halves()) == 3
    properties = decode_properties(world.halves()[2].properties)
    assert properties["TRAN_PREPARED_QUEUE_OFFSET"] == "0"
    assert "TRANSACTION_CHECK_TIMES" not in properties
    after = world.killed()
    after.round()  # finds the copy, and whose it is
    after.end(sent._replace(asked=True), COMMIT)
    assert after.seen() == [b"a"]
    producer = after.producer(5)
    for _ in range(200):
        after.round()
    assert after.asked(producer) == []
    assert after.seen() == [b"a"]


def test_carried_on_message_is_open_after_a_kill(world: World) -> None:
    """Its first copy is done with, as the op queue says; the copy is not."""
    world.send(b"a", CHECK_IMMUNITY_TIME_IN_SECONDS="14400")
    for _ in range(30):
        world.round()
    world.send(b"b", CHECK_IMMUNITY_TIME_IN_SECONDS="14400")
    world.end(world.send(b"c"), ROLLBACK)
    for _ in range(32):
        world.round()
    assert world.ops() == [b"2", b"0"]
    assert world.progress() == (1, 0)
    world.save()
    after = world.killed()
    producer = after.producer(5)
    for _ in range(250):
        after.round()
        for question in after.asked(producer):
            after.end(question, COMMIT)
    assert sorted(after.seen()) == [b"a", b"b"]


def test_given_up_after_so_many_checks(world: World) -> None:
    """It is where an operator finds it, and nobody is asked any more."""
    world.set(transaction_checks_max=3)
    producer = world.producer(5)
    world.send(b"a", KEYS="k")
    for _ in range(6):
        world.round()
    assert len(world.asked(producer)) == 3
    assert world.given_up() == [b"a"]
    (parked,) = world.rig.records("TRANS_CHECK_MAX_TIME_TOPIC")
    properties = decode_properties(parked.properties)
    assert properties["REAL_TOPIC"] == "T"
    assert properties["TRANSACTION_CHECK_TIMES"] == "3"
    assert world.tables.topics.find("TRANS_CHECK_MAX_TIME_TOPIC") is not None
    assert world.seen() == []


def test_commit_of_what_was_given_up_is_refused(world: World) -> None:
    """A commit that publishes nothing is not acknowledged."""
    world.set(transaction_checks_max=1)
    producer = world.producer(5)
    world.send(b"a")
    world.round()
    (question,) = world.asked(producer)
    world.round()
    with pytest.raises(SystemFailure, match="no longer open"):
        world.end(question, COMMIT)


def test_given_up_when_older_than_the_log(world: World) -> None:
    """Nobody came online for as long as messages are kept."""
    world.reserved_ms = 7_200_000
    world.send(b"a")
    for _ in range(119):
        world.round()
    assert world.given_up() == []
    world.round()
    world.round()
    assert world.given_up() == [b"a"]
    assert world.progress()[0] == len(world.halves())


# -- what must not stop it -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "missing",
    [
        {"PGROUP": None},
        {"REAL_TOPIC": None},
        {"REAL_QID": None},
        {"REAL_QID": "minus one"},
        {"REAL_QID": "99999999999"},
    ],
)
def test_message_that_nobody_can_decide(world: World, missing: dict[str, str | None]) -> None:
    """It is put aside; those around it are asked about."""
    producer = world.producer(5)
    given = {"PGROUP": "PG", "REAL_TOPIC": "T", "REAL_QID": "0", "UNIQ_KEY": "x"} | missing
    world.send(b"a")
    world.rig.put(
        b"poison",
        topic=HALF_TOPIC,
        properties={name: value for name, value in given.items() if value is not None},
    )
    world.send(b"b")
    world.round()
    assert [one.body for one in world.asked(producer)] == [b"a", b"b"]
    assert world.given_up() == [b"poison"]


def test_message_that_cannot_be_read(world: World) -> None:
    """Its bytes are damaged on the disk; the others are asked about all the same."""
    producer = world.producer(5)
    sent = [world.send(body) for body in (b"a", b"damaged", b"b")]
    file = world.rig.store.log.file_at(sent[1].log_offset)
    assert file is not None
    assert file.start == 0
    assert world.rig.disk.size(LOG / f"{0:020}") == 65536
    file.region.buffer[sent[1].log_offset + 4 : sent[1].log_offset + 8] = b"\0\0\0\1"
    world.round()
    assert [one.body for one in world.asked(producer)] == [b"a", b"b"]
    assert world.ops() == [b"0", b"1", b"2"]


def test_message_that_can_be_stored_no_more(world: World) -> None:
    """One more property is too much for it: its producer is asked about the message itself."""
    producer = world.producer(5)
    world.send(b"a", filler="x" * (32767 - 80))
    world.send(b"b")
    world.round()
    questions = world.asked(producer)
    assert [one.body for one in questions] == [b"a", b"b"]
    assert questions[0].offset == 0
    world.end(questions[0], COMMIT)
    assert world.seen() == [b"a"]


def test_store_that_takes_nothing_only_delays(world: World) -> None:
    """The round goes on where it was when there is room again; no message is asked about twice."""
    producer = world.producer(5)
    world.send(b"a")
    world.send(b"b")
    world.rig.store.writability.forbid("test", "no room")
    world.round()
    assert world.asked(producer) == []
    world.rig.store.writability.allow("test")
    world.tick(1)
    assert [one.body for one in world.asked(producer)] == [b"a", b"b"]


@pytest.mark.parametrize("world", [{"mappedFileSizeCommitLog": "4096"}], indirect=True)
def test_deleted_half_messages_are_passed_over(world: World) -> None:
    """Their log files are gone; the queue begins behind them."""
    producer = world.producer(5)
    for number in range(40):
        world.send(b"%d" % number)
    files = list(world.rig.store.log.files)
    assert len(files) > 1
    queue = world.rig.store.queues.find(HALF_TOPIC, 0)
    assert queue is not None
    queue.correct_min_offset(files[1].start)
    least = queue.min_offset
    assert least > 0
    world.round()
    assert [one.body for one in world.asked(producer)] == [b"%d" % n for n in range(least, 40)]
    assert world.progress()[0] == 40


@pytest.mark.parametrize("gone", [0, 1, 2, 3])
def test_message_that_is_gone_is_passed_over(world: World, gone: int) -> None:
    """Its log file was deleted, and its queue does not know yet; its neighbours are there."""
    producer = world.producer(5)
    for number in range(4):
        world.send(b"%d" % number)
    reads = world.rig.store.reads

    def begin(
        topic: str, queue_id: int, offset: int, count: int, _choose: object, done: Done
    ) -> None:
        found = reads.get(topic, queue_id, offset, count)
        if topic == HALF_TOPIC:
            kept = [raw for raw in found.records if decode(raw).queue_offset != gone]
            found = found._replace(records=kept)
        done(found)

    reads.begin_get = begin  # type: ignore[assignment,method-assign]
    world.round()
    left = [b"%d" % number for number in range(4) if number != gone]
    assert [one.body for one in world.asked(producer)] == left
    assert world.progress()[0] == 4


def test_disk_that_fails_for_a_while_only_delays(world: World) -> None:
    """Reads that come to nothing are tried again a second later, of both queues."""
    sent = [world.send(body) for body in (b"a", b"b")]
    world.end(sent[0], ROLLBACK)
    world.is_slave = True
    world.tick()
    world.is_slave = False
    reads, calls = world.rig.store.reads, Counter[str]()
    real = reads.begin_get

    def begin(
        topic: str, queue_id: int, offset: int, count: int, _choose: object, done: Done
    ) -> None:
        calls[topic] += 1
        if calls[topic] % 2:
            status = GetStatus.NO_MATCHED_MESSAGE
            done(Found(status, offset, 0, 2, [], trouble="the disk failed"))
        else:
            real(topic, queue_id, offset, count, None, done)

    reads.begin_get = begin  # type: ignore[assignment,method-assign]
    producer = world.producer(5)
    for _ in range(100):
        world.tick(0.7)
    assert calls[HALF_OP_TOPIC] >= 2
    assert calls[HALF_TOPIC] >= 4  # looked through for copies, and gone over
    assert {one.body for one in world.asked(producer)} == {b"b"}


def test_op_record_that_cannot_be_read_is_passed_over(world: World) -> None:
    """What it was about is asked about again; the records behind it count."""
    first, second = world.send(b"a"), world.send(b"b")
    world.end(first, ROLLBACK)
    world.end(second, ROLLBACK)
    record = world.rig.records(HALF_OP_TOPIC)[0]
    file = world.rig.store.log.file_at(record.log_offset)
    assert file is not None
    file.region.buffer[record.log_offset + 4 : record.log_offset + 8] = b"\0\0\0\1"
    world.is_slave = True
    world.tick()
    world.is_slave = False
    producer = world.producer(5)
    world.round()
    world.round()
    assert [one.body for one in world.asked(producer)] == [b"a"]


# -- bounds --------------------------------------------------------------------------------------


def test_round_is_cut_into_slices(world: World) -> None:
    """Others have their turn after so many messages."""
    producer = world.producer(5)
    for number in range(450):
        world.send(b"%d" % number)
    world.clock.jump(60)
    slices: list[int] = []
    now = world.clock.monotonic()
    while not slices or world.due <= now:
        world.due = world.transactions.tick(now)
        slices.append(len(world.asked(producer)))
    assert sum(slices) == 450
    assert max(slices) <= transactions_checking.SLICE + transactions_checking.READ_COUNT
    assert len(slices) >= 3


def test_progress_lets_go_of_what_is_done(world: World) -> None:
    """Nothing is kept of transactions that are over, and the saved offsets say so."""
    for number in range(100):
        world.end(world.send(b"%d" % number), COMMIT if number % 2 else ROLLBACK)
    world.round()
    assert world.progress() == (100, 100)
    held = world.send(b"open")
    world.end(world.send(b"later"), COMMIT)
    world.round()
    assert world.progress() == (held.offset, 100)


def test_full_window_carries_on_what_waits(world: World) -> None:
    """One that stays open for long does not make the ledger grow."""
    world.transactions.ledger.window = 64
    world.send(b"waits", CHECK_IMMUNITY_TIME_IN_SECONDS="3000")
    for number in range(40):
        world.end(world.send(b"%d" % number), ROLLBACK)
    world.round()
    assert world.progress()[0] == 41
    world.round()
    assert world.transactions.ledger.base == 41
    producer = world.producer(5)
    for _ in range(50):
        world.round()
    assert {one.body for one in world.asked(producer)} == {b"waits"}


def test_decision_outside_of_the_window_is_asked_for_later(world: World) -> None:
    """There is no room to remember it; nothing is lost, since its producer is asked."""
    world.transactions.ledger.window = 8
    producer = world.producer(5)
    sent = [world.send(b"%d" % number) for number in range(20)]
    with pytest.raises(SystemBusy, match="too far behind"):
        world.end(sent[19], COMMIT)
    for _ in range(10):
        world.round()
        for question in world.asked(producer):
            world.end(question, COMMIT)
    assert sorted(world.seen()) == sorted(b"%d" % number for number in range(20))


def test_long_op_queue_is_read_in_parts(world: World) -> None:
    """After a start far behind: more decisions than the window has room for."""
    sent = [world.send(b"%d" % number) for number in range(100)]
    for one in reversed(sent):
        if one.offset % 10:
            world.end(one, COMMIT if one.offset % 2 else ROLLBACK)
    committed = world.seen()
    world.saved = b""
    rig = world.rig.again()
    after = World(rig, loop=world.loop)
    after.transactions.ledger.window = 16
    after.is_slave = True
    after.tick()
    after.is_slave = False
    after.tick(5)
    producer = after.producer(5)
    for _ in range(20):
        after.round()
    asked = {one.body for one in after.asked(producer)}
    assert asked == {b"%d" % number for number in range(0, 100, 10)}
    assert after.seen() == committed


# -- safety --------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", [{"flushDiskType": "SYNC_FLUSH"}], indirect=True)
def test_question_waits_for_the_copy_to_be_safe(world: World) -> None:
    """SYNC_FLUSH: a producer is not asked about what the disk does not have."""
    producer = world.producer(5)
    world.send(b"a")
    world.clock.jump(60)
    world.transactions.tick(world.clock.monotonic())
    assert producer.told == []
    world.rig.settle()
    (question,) = world.asked(producer)
    world.end(question, COMMIT)
    assert world.seen() == [b"a"]


def test_kill_after_the_question(world: World) -> None:
    """The saved offsets are from before the round: still one copy, one question, one message."""
    world.save()
    world.send(b"a")
    producer = world.producer(5)
    world.round()
    (before,) = world.asked(producer)
    after = world.killed()
    again = after.producer(6)
    after.round()
    (question,) = after.asked(again)
    after.end(question, COMMIT)
    after.end(before, COMMIT)
    after.round()
    assert after.asked(again) == []
    assert after.seen() == [b"a"]


def test_cold_messages_are_waited_for_without_standing_still(world: World) -> None:
    """A read that needs the disk comes back later; the round goes on from there."""
    producer = world.producer(5)
    world.send(b"a")
    jobs: list[object] = []
    begin = world.rig.store.reads.begin_get

    def later(*given: object) -> None:
        jobs.append(given)

    world.rig.store.reads.begin_get = later  # type: ignore[assignment,method-assign]
    world.clock.jump(60)
    now = world.clock.monotonic()
    assert world.transactions.tick(now) > now
    assert len(jobs) == 1
    world.transactions.tick(now + 1)
    assert len(jobs) == 1
    world.rig.store.reads.begin_get = begin  # type: ignore[method-assign]
    begin(*jobs[0])  # type: ignore[misc]
    assert world.wakes == 1
    world.tick()
    assert [one.body for one in world.asked(producer)] == [b"a"]


def test_slave_asks_nobody_until_it_is_the_master(world: World) -> None:
    """It has its master's log; when it takes over, it reads both queues itself."""
    producer = world.producer(5)
    first, _second = world.send(b"a"), world.send(b"b")
    world.end(first, COMMIT)
    world.is_slave = True
    for _ in range(5):
        world.round()
    assert world.asked(producer) == []
    world.is_slave = False
    world.round()
    world.round()
    assert [one.body for one in world.asked(producer)] == [b"b"]


# -- copies without an op record -----------------------------------------------------------------


def without_op_record(world: World, copies: int = 1) -> None:
    """Store a message and copies of it as an Apache broker does, which writes no op record."""
    world.send(b"a")
    first = world.halves()[-1]
    for checks in range(1, copies + 1):
        world.rig.put(
            b"a",
            topic=HALF_TOPIC,
            properties={
                **decode_properties(first.properties),
                "TRANSACTION_CHECK_TIMES": str(checks),
            },
            born_timestamp=first.born_timestamp,
        )


def test_message_and_its_copies_are_one(world: World) -> None:
    """A broker that was killed had asked already: one question about the last copy, one message."""
    without_op_record(world, copies=2)
    world.send(b"b")
    after = world.killed()
    producer = after.producer(5)
    after.round()
    questions = after.asked(producer)
    assert [one.body for one in questions] == [b"a", b"b"]
    copy = after.halves()[questions[0].offset]
    assert decode_properties(copy.properties)["TRANSACTION_CHECK_TIMES"] == "3"
    for question in questions:
        after.end(question, COMMIT)
    after.round()
    assert after.asked(producer) == []
    assert after.seen() == [b"a", b"b"]


def test_copy_that_was_decided_decides_for_the_message(world: World) -> None:
    """The op record is about the copy alone; the message it was made of is not asked about."""
    without_op_record(world)
    copy = world.halves()[1]
    world.end(Sent(copy.queue_offset, copy.log_offset), COMMIT)
    after = world.killed()
    producer = after.producer(5)
    after.round()
    after.round()
    assert after.asked(producer) == []
    assert after.seen() == [b"a"]


def test_message_that_was_sent_twice_is_two(world: World) -> None:
    """Same key, another birthday: the producer sent again, and decides about both."""
    without_op_record(world)
    world.clock.jump(0.003)
    world.send(b"a")
    after = world.killed()
    producer = after.producer(5)
    after.round()
    assert len(after.asked(producer)) == 2
