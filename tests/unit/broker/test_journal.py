"""The journal: changes of the tables as records of the log, applied by whoever has the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from gantrymq.broker.config_saving import stamped
from gantrymq.broker.journal.changes import Changes, decode, encode, split_offsets
from gantrymq.errors import InvalidValue
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.names import JOURNAL_TOPIC
from gantrymq.model.topic import TopicConfig
from gantrymq.wire.bodies.assignment import RequestMode, RequestModeSetting
from support.broker_rig import BrokerRig, pull
from support.samples import json_request

if TYPE_CHECKING:
    from pathlib import Path

NO_PERMISSION, TOPIC_NOT_EXIST, MESSAGE_ILLEGAL = 16, 17, 13
GATHERED_S = 0.3


def journaled() -> BrokerRig:
    return BrokerRig(metadata_in_log=True)


def later(rig: BrokerRig, seconds: float = GATHERED_S) -> None:
    rig.tick(seconds)
    rig.turns()


def config(rig: BrokerRig, name: str) -> Path:
    return rig.broker.store_settings.paths.config / name


def records(rig: BrokerRig) -> int:
    return rig.store.reads.max_offset(JOURNAL_TOPIC, 0)


def test_a_record_keeps_everything() -> None:
    changes = Changes(
        topics={"T": TopicConfig("T", 3, 5), "gone": None},
        groups={"g": (SubscriptionGroup("g", consume_enabled=False), {"T": 4}), "gone": None},
        offsets={"T@g": {0: 5, 3: 1 << 40}, "T@gone": None},
        delays={3: 7},
        modes={
            ("T", "g"): RequestModeSetting(topic="T", consumer_group="g", mode=RequestMode.POP),
            ("T", "gone"): None,
        },
    )
    assert decode(encode(changes)) == changes


def test_what_is_no_record_is_refused_and_what_is_new_is_passed_over() -> None:
    for body in (b"", b"[]", b'{"format":1,"offsets":{"a":{"0":"x"}}}', b'{"format":1,"topics":3}'):
        with pytest.raises(InvalidValue):
            decode(body)
    assert decode(b'{"format":2,"anything":[1]}') is None


def test_many_offsets_become_records_of_a_bounded_size() -> None:
    offsets = {f"topic-{n}@group": dict.fromkeys(range(16), 1 << 40) for n in range(5000)}
    parts = list(split_offsets(dict(offsets)))
    assert len(parts) > 5
    assert max(len(encode(part)) for part in parts) < 512 << 10
    assert {key: one for part in parts for key, one in part.offsets.items()} == offsets


def test_a_plain_broker_writes_none() -> None:
    rig = BrokerRig()
    rig.broker.tables.offsets.commit("g", "T", 0, 5)
    later(rig)
    assert (records(rig), rig.store.log.wrote_offset) == (0, 0)
    assert rig.broker.tables.topics.find(JOURNAL_TOPIC) is None


def test_offsets_are_gathered_and_only_changes_are_written() -> None:
    rig = journaled()
    later(rig)
    before = records(rig)
    for offset in range(1000):
        rig.broker.tables.offsets.commit("g", "T", offset % 2, offset)
    later(rig)
    assert records(rig) == before + 1
    for _ in range(5):
        rig.broker.tables.offsets.commit("g", "T", 0, 998)  # nothing new
        later(rig)
    assert records(rig) == before + 1
    end = rig.store.log.wrote_offset
    rig.broker.tables.offsets.commit("g", "T", 1, 1000)
    later(rig)
    assert 0 < rig.store.log.wrote_offset - end < 250, "one queue of one group"


def test_a_topic_is_in_the_log_before_its_first_message() -> None:
    rig = journaled()
    assert rig.send(b"x", b="Fresh").code == 0
    rig.turns()
    found = rig.store.get(JOURNAL_TOPIC, 0, 0, 32)
    assert any(b'"Fresh"' in bytes(raw) for raw in found.records)
    again = rig.again()
    assert again.broker.tables.topics.find("Fresh") == rig.broker.tables.topics.find("Fresh")


def test_a_kill_costs_no_more_than_what_was_not_gathered() -> None:
    rig = journaled()
    offsets, groups = rig.broker.tables.offsets, rig.broker.tables.groups
    offsets.commit("g", "T", 0, 5)
    offsets.commit("away", "T", 0, 6)
    groups.put(SubscriptionGroup("g", retry_times_max=3))
    groups.forbid("g", "T", forbidden=True)
    rig.broker.tables.delays.set(3, 9)
    later(rig)
    offsets.remove_group("away")
    offsets.commit("g", "T", 0, 7)
    later(rig)
    offsets.commit("g", "T", 0, 8)  # not gathered
    tables = rig.again().broker.tables
    assert tables.offsets.find("g", "T", 0) == 7
    assert tables.offsets.find("away", "T", 0) == -1
    assert tables.groups.with_forbidden("g") == groups.with_forbidden("g")
    assert tables.delays.find(3) == 9


def test_a_file_says_how_much_of_the_journal_it_has() -> None:
    rig = journaled()
    rig.broker.tables.offsets.commit("g", "T", 0, 5)
    later(rig)
    rig.broker.close()
    content = rig.disk.read(config(rig, "consumerOffset.json"))
    assert b'"gantrymqJournal":%d,"gantrymqCheck":' % records(rig) in content
    assert msgspec.json.decode(stamped(b'{"a":1}', 7)) == {"a": 1, "gantrymqJournal": 7}
    again = rig.again(rig.disk)
    assert again.broker.journal.reader.applied == 0, "there was nothing new in the log"
    assert again.broker.tables.offsets.find("g", "T", 0) == 5


def test_what_another_program_wrote_counts_more_than_an_old_journal() -> None:
    rig = journaled()
    rig.broker.tables.offsets.commit("g", "T", 0, 5)
    later(rig)
    rig.broker.close()
    path = config(rig, "consumerOffset.json")
    theirs = b'{"offsetTable":{"T@g":{0:500}}}'
    rig.disk.place(path, theirs)
    assert rig.again(rig.disk).broker.tables.offsets.find("g", "T", 0) == 500


def test_lost_files_are_made_again_from_the_journal() -> None:
    rig = journaled()
    rig.broker.tables.topics.put(TopicConfig("Wide", 12, 12))
    rig.broker.tables.offsets.commit("g", "Wide", 11, 5)
    later(rig)
    rig.broker.close()
    for name in ("topics.json", "consumerOffset.json", "subscriptionGroup.json"):
        for path in (config(rig, name), config(rig, f"{name}.bak")):
            if rig.disk.exists(path):
                rig.disk.remove(path)
    tables = rig.again(rig.disk).broker.tables
    assert tables.topics.find("Wide") == TopicConfig("Wide", 12, 12)
    assert tables.offsets.find("g", "Wide", 11) == 5


def test_nobody_sends_to_the_journal() -> None:
    for rig in (journaled(), BrokerRig()):
        assert rig.send(b"{}", b=JOURNAL_TOPIC).code in {NO_PERMISSION, MESSAGE_ILLEGAL, 1}
        assert rig.broker.tables.topics.find("T") is not None


def test_a_store_that_takes_no_writes_is_tried_again() -> None:
    rig = journaled()
    later(rig)
    before = records(rig)
    rig.store.writability.forbid("test", "full")
    rig.broker.tables.topics.put(TopicConfig("Later", 1, 1))
    rig.broker.tables.offsets.commit("g", "T", 0, 5)
    later(rig)
    assert records(rig) == before
    rig.store.writability.allow("test")
    later(rig)
    tables = rig.again().broker.tables
    assert tables.topics.find("Later") is not None
    assert tables.offsets.find("g", "T", 0) == 5


def test_without_a_journal_lost_files_cost_settings_and_no_message() -> None:
    rig = BrokerRig()
    rig.store_some(b"one", b"two")
    rig.broker.tables.offsets.commit("group", "T", 0, 1)
    rig.settle(10.0)
    rig.broker.close()
    directory = rig.broker.store_settings.paths.config
    for name in rig.disk.names(directory):
        rig.disk.remove(directory / name)
    again = rig.again(rig.disk)
    assert again.bodies() == [b"one", b"two"]
    assert again.ask(pull(0)).code == 0, "the topic was made again for its messages"
    assert again.send(b"three").code == 0
    assert again.broker.tables.offsets.find("group", "T", 0) == -1
    answer = again.ask(json_request(14, {"consumerGroup": "group", "topic": "T", "queueId": "0"}))
    assert (answer.code, answer.fields["offset"]) == (0, "0"), "as for a group that is new"
