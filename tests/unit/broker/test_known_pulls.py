"""Pulls that are known again: the same answers as the ordinary way gives, and no stale one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gantrymq.kernel import kernel
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.topic import Perm, TopicConfig
from gantrymq.testing.disk import SimulatedFiles
from gantrymq.wire.bodies.heartbeat import HEARTBEAT
from support.broker_rig import BINARY, BrokerRig, pull
from support.client_peers import FakePeer, consumer, heartbeat, subscription
from support.remoting import split_records
from support.samples import json_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.wire.command import Command

FOUND, NO_PERMISSION, TOPIC_NOT_EXIST, NOT_FOUND, MOVED = 0, 16, 17, 19, 21
NOT_SUBSCRIBED, GROUP_NOT_EXIST, INVALID = 24, 26, 29
COMMIT, HOLD, SUBSCRIBE = 1, 2, 4
OWN: dict[str, Any] = {"consumerGroup": "Readers"}
BY_GROUP: dict[str, Any] = OWN | {"sysFlag": "0", "subscription": None, "subVersion": "0"}


class Asking:
    """A broker and its reader; knows how often an answer was one of those that are known."""

    def __init__(self, rig: BrokerRig) -> None:
        self.rig = rig
        self.known = self.tried = 0
        real = rig.service.known.take

        def take(*arguments: Any) -> Any:  # noqa: ANN401
            found = real(*arguments)
            self.tried += 1
            self.known += found is not None
            return found

        rig.service.known.take = take  # type: ignore[method-assign, assignment]

    def ask(self, offset: int = 0, **fields: Any) -> Command:  # noqa: ANN401
        """Pull, and return the answer."""
        return self.rig.ask(pull(offset, **OWN | fields))

    def known_answer(self, offset: int = 0, **fields: Any) -> Command:  # noqa: ANN401
        """Pull twice: the second time it must be known."""
        self.ask(offset, **fields)
        before = self.known
        answer = self.ask(offset, **fields)
        assert self.known == before + 1, f"not known: {answer}"
        return answer

    def ordinary_answer(self, offset: int = 0, **fields: Any) -> Command:  # noqa: ANN401
        """Pull as if nothing was ever known."""
        service, before = self.rig.service, self.known
        service.uses_lane = False
        try:
            return self.ask(offset, **fields)
        finally:
            service.uses_lane = True
            assert self.known == before


def asking(*bodies: bytes, store: dict[str, str] | None = None, **changes: Any) -> Asking:  # noqa: ANN401
    rig = BrokerRig(store, **changes)
    rig.broker.tables.groups.put(SubscriptionGroup("Readers"))
    rig.store_some(*bodies)
    return Asking(rig)


def bodies(answer: Command) -> list[bytes]:
    return [
        kernel.decode_record(raw, 0, len(raw), True)[0].body for raw in split_records(answer.body)
    ]


# -- the same answer -------------------------------------------------------------------------------


@settings(max_examples=max(15, settings().max_examples // 4))
@given(
    tags=st.lists(st.sampled_from(["", "A", "B", "C"]), min_size=1, max_size=60),
    wanted=st.sampled_from(["*", "A", "A || B", "B||C", "Nobody"]),
    offsets=st.lists(st.integers(-1, 62), min_size=1, max_size=6),
    count=st.sampled_from([1, 2, 7, 32, 40, 1000, 0, -1]),
    size=st.sampled_from([1, 300, 20_000]),
    codec=st.sampled_from([0, BINARY]),
    limit=st.sampled_from(["262144", "1000"]),
)
def test_the_answer_is_that_of_the_ordinary_way(
    tags: list[str], wanted: str, offsets: list[int], count: int, size: int, codec: int, limit: str
) -> None:
    reader = asking(store={"maxTransferBytesOnMessageInMemory": limit})
    for number, tag in enumerate(tags):
        reader.rig.store_some(b"%d" % number + bytes(size), tags=tag)
    asked: dict[str, Any] = {"subscription": wanted, "maxMsgNums": str(count), "codec": codec}
    for opaque, offset in enumerate([*offsets, *offsets]):
        expected = reader.ordinary_answer(offset, opaque=opaque, **asked)
        assert reader.ask(offset, opaque=opaque, **asked) == expected
    if wanted == "*" and count > 0 and any(0 <= offset < len(tags) for offset in offsets):
        assert reader.known > 0


def test_reading_on_and_on_finds_every_message_once() -> None:
    """Across files of the log, with new messages meanwhile."""
    reader = asking(store={"mappedFileSizeCommitLog": "16384"})
    sent = [b"%03d" % number + bytes(500) for number in range(150)]
    reader.rig.store_some(*sent[:100])
    found: list[bytes] = []
    later = sent[100:]
    for _ in range(200):
        answer = reader.ask(len(found), maxMsgNums="7")
        if answer.code != FOUND:
            break
        found += bodies(answer)
        assert int(answer.fields["nextBeginOffset"]) == len(found)
        if len(found) >= 70 and later:
            reader.rig.store_some(*later)
            later = []
        reader.rig.tick(0.02)
    assert found == sent
    assert reader.known > 15


def test_many_pulls_in_one_read_are_answered_in_their_order() -> None:
    reader = asking(*(b"%d" % number for number in range(10)))
    reader.known_answer(0, maxMsgNums="1")
    data = b"".join(pull(n, opaque=n, **OWN, maxMsgNums="1") for n in range(10))
    answers = reader.rig.begin(data).answers
    assert [(one.opaque, bodies(one)) for one in answers] == [(n, [b"%d" % n]) for n in range(10)]
    assert reader.known == 11


def test_a_pull_that_is_not_known_is_looked_up_once() -> None:
    reader = asking(b"a", b"b")
    reader.known_answer(0)
    before = reader.tried
    assert reader.ask(2).code == NOT_FOUND
    assert reader.tried == before + 1


def test_a_known_pull_in_front_of_a_frame_that_is_none_is_answered() -> None:
    reader = asking(b"a", b"b")
    reader.known_answer(0)
    raw = pull(0, **OWN)
    taken = reader.rig.service.take(raw + b"\xff" * 16, 0, len(raw) + 16, reader.rig.peer)
    assert (taken.end, len(taken.answers)) == (len(raw), 1)


# -- what changes is seen --------------------------------------------------------------------------


def change_topic(reader: Asking, **changed: object) -> None:
    topics = reader.rig.broker.tables.topics
    topic = topics.find("T")
    assert topic is not None
    topics.put(msgspec.structs.replace(topic, **changed))


def write_only(reader: Asking) -> None:
    change_topic(reader, perm=Perm.WRITE)


def fewer_queues(reader: Asking) -> None:
    change_topic(reader, read_queues=1)


def topic_deleted(reader: Asking) -> None:
    assert reader.rig.broker.tables.topics.remove("T")


def group_off(reader: Asking) -> None:
    reader.rig.broker.tables.groups.put(SubscriptionGroup("Readers", consume_enabled=False))


def group_deleted(reader: Asking) -> None:
    assert reader.rig.broker.tables.groups.remove("Readers")


def group_forbidden(reader: Asking) -> None:
    reader.rig.broker.tables.groups.forbid("Readers", "T", forbidden=True)


def broker_write_only(reader: Asking) -> None:
    live = reader.rig.broker.settings
    live.now = replace(live.now, permission=int(Perm.WRITE))


def reset(reader: Asking) -> None:
    reader.rig.broker.tables.offsets.reset("Readers", "T", 1, 1)


CHANGES: list[tuple[Callable[[Asking], None], int]] = [
    (write_only, NO_PERMISSION), (fewer_queues, INVALID), (topic_deleted, TOPIC_NOT_EXIST),
    (group_off, NO_PERMISSION), (group_deleted, GROUP_NOT_EXIST), (group_forbidden, NO_PERMISSION),
    (broker_write_only, NO_PERMISSION), (reset, MOVED),
]  # fmt: skip


@pytest.mark.parametrize(("change", "code"), CHANGES)
def test_who_may_not_read_any_more_is_told_with_the_next_pull(
    change: Callable[[Asking], None], code: int
) -> None:
    reader = asking(creates_groups=False)
    reader.rig.store_some(b"one", b"two", e="1")
    assert bodies(reader.known_answer(0, queueId="1")) == [b"one", b"two"]
    before = reader.known
    change(reader)
    answer = reader.ask(0, queueId="1")
    assert (answer.code, answer.body, reader.known) == (code, b"", before)


def test_a_reset_is_told_once_and_then_the_reader_goes_on() -> None:
    reader = asking(b"a", b"b", b"c")
    reader.known_answer(2)
    reader.rig.broker.tables.offsets.reset("Readers", "T", 0, 1)
    moved = reader.ask(2, sysFlag=COMMIT | SUBSCRIBE, commitOffset="2")
    assert (moved.code, moved.fields["nextBeginOffset"]) == (MOVED, "1")
    assert reader.rig.broker.tables.offsets.find("Readers", "T", 0) == 1
    assert bodies(reader.known_answer(1)) == [b"b", b"c"]


def beat(rig: BrokerRig, peer: FakePeer, expression: str, version: int) -> None:
    said = consumer("Readers", subscription("T", expression, version=version))
    body = HEARTBEAT.encode(heartbeat(f"client-{peer.number}", said))
    assert rig.ask(json_request(34, {}, body), peer).code == FOUND


def test_subscriptions_change_with_heartbeats_and_go_with_their_members() -> None:
    reader, member = asking(), FakePeer(9)
    reader.rig.store_some(b"a", tags="A")
    reader.rig.store_some(b"b", tags="B")
    beat(reader.rig, member, "A", 1)
    assert bodies(reader.known_answer(**BY_GROUP)) == [b"a"]
    beat(reader.rig, member, "B", 2)
    assert bodies(reader.ask(**BY_GROUP)) == [b"b"]
    assert bodies(reader.known_answer(**BY_GROUP)) == [b"b"]
    reader.rig.service.closed(member)
    gone = reader.ask(**BY_GROUP)
    assert (gone.code, gone.body) == (NOT_SUBSCRIBED, b"")


def test_a_deleted_topic_that_comes_again_has_nothing_of_before() -> None:
    reader = asking(b"old", b"older")
    assert bodies(reader.known_answer()) == [b"old", b"older"]
    deleted = reader.rig.begin(json_request(215, {"topic": "T"}))
    reader.rig.settle(1)
    assert deleted.answer.code == FOUND
    assert reader.ask().code == TOPIC_NOT_EXIST
    reader.rig.broker.tables.topics.put(TopicConfig("T", 2, 2))
    assert reader.ask().code in {NOT_FOUND, MOVED}
    reader.rig.store_some(b"new")
    assert bodies(reader.ask(reader.rig.store.reads.min_offset("T", 0))) == [b"new"]


def test_what_was_deleted_with_the_first_file_is_not_answered() -> None:
    small = {
        "mappedFileSizeCommitLog": "65536", "mappedFileSizeConsumeQueue": "200",
        "deleteWhen": ";".join(f"{hour:02d}" for hour in range(24)),
        "maxHashSlotNum": "20", "maxIndexNum": "40",
    }  # fmt: skip
    rig = BrokerRig(small, disk=SimulatedFiles(capacity=1 << 30))
    rig.broker.tables.groups.put(SubscriptionGroup("Readers"))
    reader = Asking(rig)
    for number in range(30):
        assert rig.send(b"%02d" % number + bytes(6000)).code == FOUND
    for _ in range(62):
        rig.settle(1.0)
    rig.clock.jump(4 * 86400.0)
    assert rig.send(b"young").code == FOUND
    for _ in range(60):
        reader.known_answer(29, maxMsgNums="1")  # somebody reads all the time
        assert reader.ask(0) == reader.ordinary_answer(0)
        rig.settle(1.0)
    assert rig.store.log.min_offset > 0
    before = reader.known
    moved = reader.ask(0)
    assert (moved.code, reader.known) == (MOVED, before)
    least = int(moved.fields["minOffset"])
    assert bodies(reader.known_answer(least))[0].startswith(b"%02d" % least)


# -- what comes with a pull ------------------------------------------------------------------------


def test_offsets_are_committed_and_a_slave_commits_nothing() -> None:
    reader = asking(b"a", b"b", b"c")
    offsets = reader.rig.broker.tables.offsets
    asked: dict[str, Any] = {"sysFlag": COMMIT | SUBSCRIBE}
    reader.known_answer(0, commitOffset="1", **asked)
    assert offsets.find("Readers", "T", 0) == 1
    before = reader.known
    reader.ask(2, commitOffset="2", **asked)
    assert (offsets.find("Readers", "T", 0), reader.known) == (2, before + 1)
    reader.known_answer(0, commitOffset="3")
    assert offsets.find("Readers", "T", 0) == 2, "it did not ask for that"
    reader.rig.service.known._is_slave = lambda: True
    reader.known_answer(0, commitOffset="3", **asked)
    reader.rig.service.known._is_slave = lambda: False
    bad = reader.ordinary_answer(0, commitOffset="-5", **asked)
    assert reader.ask(0, commitOffset="-5", **asked) == bad


def test_known_pulls_are_counted_like_others() -> None:
    reader = asking(b"a", b"b", b"c")
    got: list[tuple[int, int, int]] = []
    counting = reader.rig.broker.counting
    counting.store.got_many = lambda *counts: got.append(counts)  # type: ignore[method-assign]
    reader.known_answer(0)
    reader.ask(1)
    assert reader.known == 2
    counting.collect()
    assert got == [(3, 0, 8)]


def test_long_polling_holds_at_the_end_of_a_known_queue_and_wakes() -> None:
    reader = asking(b"a", b"b")
    parked: dict[str, Any] = OWN | {
        "sysFlag": HOLD | SUBSCRIBE, "suspendTimeoutMillis": 15_000,
    }  # fmt: skip
    reader.known_answer(0, **parked)
    waits = reader.rig.begin(pull(2, **parked))
    assert not waits.is_answered
    reader.rig.store_some(b"c")
    assert bodies(waits.answer) == [b"c"]
    late = reader.rig.begin(pull(3, **parked))
    assert not late.is_answered
    reader.rig.tick(15.1)
    assert late.answer.code == NOT_FOUND
    assert bodies(reader.known_answer(2, **parked)) == [b"c"]


# -- what is held ----------------------------------------------------------------------------------


def test_files_are_let_go_when_nobody_pulls() -> None:
    reader = asking(b"a", b"b")
    reader.known_answer()
    buffer = reader.rig.store.log.files[0].region.buffer
    lane = reader.rig.service.known._lane
    reader.rig.tick(4.9)
    reader.known_answer()
    reader.rig.tick(5.1)
    assert len(lane) == 1, "it was used a moment ago"
    if kernel.KERNEL_NAME == "compiled":
        with pytest.raises(BufferError):
            buffer.release()
    reader.rig.tick(5.1)
    reader.rig.tick(5.1)
    assert len(lane) == 0
    assert bodies(reader.known_answer()) == [b"a", b"b"], "it is learnt anew"
    reader.rig.tick(5.1)
    reader.rig.tick(5.1)
    buffer.release()


def test_who_sees_every_request_sees_known_pulls_too() -> None:
    reader = asking(b"a")
    reader.known_answer()
    reader.rig.service.uses_lane = False
    before = reader.known
    assert bodies(reader.ask()) == [b"a"]
    assert reader.known == before
