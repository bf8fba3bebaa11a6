"""How far groups have read: commits, resets, pulls, and the file that Apache reads too."""

from __future__ import annotations

import pytest

from gantrymq.broker import offset_table
from gantrymq.broker.consumer_offsets import ConsumerOffsets, MovedBack
from gantrymq.errors import ContentError, InvalidValue
from gantrymq.limits import QUEUES_MAX
from gantrymq.model.offsets import DataVersion, OffsetKey
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire import fastjson
from gantrymq.wire.bodies import offsets as bodies
from support.golden import STORE_LABELS
from support.stores import golden_store


def offsets() -> ConsumerOffsets:
    return ConsumerOffsets(VirtualClock())


def some() -> ConsumerOffsets:
    made = offsets()
    for group, topic, queue_id, offset in (
        ("g1", "A", 0, 10), ("g1", "A", 1, 20), ("g1", "B", 0, 30), ("g2", "A", 0, 5),
    ):  # fmt: skip
        made.commit(group, topic, queue_id, offset)
    return made


def test_what_is_committed_is_found() -> None:
    made = some()
    assert made.find("g1", "A", 1) == 20
    assert made.find("g1", "A", 2) == -1
    assert made.find("g3", "A", 0) == -1
    assert made.all_of("g1", "A") == {0: 10, 1: 20}
    assert made.all_of("g3", "A") is None
    assert made.topics_of("g1") == {"A", "B"}
    assert made.groups_of("A") == {"g1", "g2"}
    assert made.groups_of("nothing") == frozenset()
    assert len(made) == 4


def test_a_commit_behind_the_one_before_is_taken_and_told() -> None:
    told: list[MovedBack] = []
    made = ConsumerOffsets(VirtualClock(), moved_back=told.append)
    made.commit("g", "T", 0, 10, who="c")
    made.commit("g", "T", 0, 10, who="c")
    made.commit("g", "T", 0, 3, who="10.0.0.1:5")
    assert made.find("g", "T", 0) == 3
    assert told == [MovedBack(OffsetKey("T", "g"), 0, 10, 3, "10.0.0.1:5")]


def test_minus_one_is_taken_and_counts_as_none() -> None:
    made = offsets()
    made.commit("g", "T", 0, -1)
    assert made.find("g", "T", 0) == -1
    assert made.all_of("g", "T") == {0: -1}


@pytest.mark.parametrize(
    ("queue_id", "offset"), [(-1, 0), (QUEUES_MAX, 0), (0, 1 << 63), (0, -(1 << 63) - 1)]
)
def test_what_cannot_be_leaves_nothing_behind(queue_id: int, offset: int) -> None:
    made = offsets()
    with pytest.raises(InvalidValue):
        made.commit("g", "T", queue_id, offset)
    assert len(made) == 0
    assert made.topics_of("g") == frozenset()
    assert not made.is_dirty


def test_there_is_room_for_so_many_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_table, "OFFSETS_MAX", 4)
    made = some()
    with pytest.raises(InvalidValue, match="delete groups"):
        made.commit("g9", "T", 0, 1)
    with pytest.raises(InvalidValue, match="delete groups"):
        made.clone("g1", "g9", "B")
    assert made.topics_of("g9") == frozenset()
    made.commit("g1", "A", 0, 11)
    made.remove_group("g2")
    made.commit("g9", "T", 0, 1)
    with pytest.raises(InvalidValue, match="5 offsets"):
        made.load(b'{"offsetTable":{"T@g":{0:0,1:0,2:0,3:0,4:0}}}')
    assert made.find("g9", "T", 0) == 1


def test_groups_and_topics_are_forgotten_with_all_they_have() -> None:
    made = some()
    made.reset("g1", "A", 0, 7)
    made.note_pull("g1", "A", 0, 50)
    assert made.remove_group("g1")
    assert not made.remove_group("g1")
    assert made.find("g1", "A", 0) == -1
    assert made.pull_offset("g1", "A", 0) == -1
    assert made.pending_reset("g1", "A", 0) is None
    assert made.groups_of("A") == {"g2"}
    assert made.remove_topic("A")
    assert not made.remove_topic("A")
    assert len(made) == 0


def test_a_group_takes_another_s_place() -> None:
    made = some()
    made.commit("g2", "A", 9, 9)
    assert made.clone("g1", "g2", "A")
    assert made.all_of("g2", "A") == {0: 10, 1: 20}
    assert not made.clone("g2", "g1", "B")
    made.commit("g2", "A", 0, 99)
    assert made.find("g1", "A", 0) == 10


def test_the_slowest_group_that_can_still_read() -> None:
    made = some()
    made.commit("g3", "A", 0, 1)
    least = {("A", 0): 2, ("A", 1): 0}
    slowest = made.slowest("A", lambda topic, queue_id: least[topic, queue_id])
    assert slowest == {0: 5, 1: 20}
    assert made.slowest("A", lambda *_: 0, without=["g2", "g3"]) == {0: 10, 1: 20}
    assert made.find("g2", "A", 0) == 5


def test_offsets_that_nobody_wants_and_nothing_is_behind_are_forgotten() -> None:
    made = some()
    removed = made.scan_unsubscribed(
        lambda group, topic: (group, topic) == ("g2", "A"),
        lambda topic, _: 20 if topic == "A" else 29,
    )
    assert removed == [OffsetKey("A", "g1")]
    assert made.topics_of("g1") == {"B"}
    assert made.find("g2", "A", 0) == 5


def test_a_reset_waits_for_the_next_pull_whatever_is_committed() -> None:
    made = some()
    made.reset("g1", "A", 0, 3)
    made.commit("g1", "A", 0, 12)
    assert made.has_reset("g1", "A", 0)
    assert made.find("g1", "A", 0) == 3
    assert made.pending_reset("g1", "A", 1) is None
    assert made.pending_reset("g1", "A", 0) == 3
    assert made.pending_reset("g1", "A", 0) is None
    assert made.find("g1", "A", 0) == 12
    with pytest.raises(InvalidValue, match="0 or more"):
        made.reset("g1", "A", 0, -1)


def test_several_resets_are_taken_one_by_one() -> None:
    made = offsets()
    for queue_id in range(3):
        made.reset("g", "T", queue_id, queue_id + 5)
    assert [made.pending_reset("g", "T", queue_id) for queue_id in (1, 0, 2)] == [6, 5, 7]
    assert [made.find("g", "T", queue_id) for queue_id in range(3)] == [5, 6, 7]


def test_pulls_are_noted_beside_commits() -> None:
    made = some()
    saved = made.changes
    assert made.pull_offset("g1", "A", 0) == 10
    made.note_pull("g1", "A", 0, 50)
    assert made.pull_offset("g1", "A", 0) == 50
    assert made.find("g1", "A", 0) == 10
    assert made.changes == saved
    made.clear_pulls("g1", "A")
    assert made.pull_offset("g1", "A", 0) == 10


def test_a_picture_stays_as_it_was() -> None:
    made = some()
    text = made.snapshot()
    made.commit("g1", "A", 0, 1000)
    made.commit("g7", "A", 0, 1)
    made.remove_group("g2")
    made.note_pull("g1", "A", 0, 5)
    again = offsets()
    again.load(text())
    assert again.all_of("g1", "A") == {0: 10, 1: 20}
    assert again.find("g2", "A", 0) == 5
    assert again.find("g7", "A", 0) == -1
    assert made.find("g1", "A", 0) == 1000


def test_the_file_has_apache_s_form() -> None:
    made = offsets()
    made.commit("g", "T", 1, 7)
    made.commit("g", "T", 0, 8)
    assert b'"offsetTable":{"T@g":{1:7,0:8}}' in made.encode()
    assert b'"groupTopicMap":{"g":["T"]}' in made.encode()


def test_the_version_moves_every_five_hundred_commits() -> None:
    made = offsets()
    for number in range(1000):
        made.commit("g", "T", 0, number)
    assert made.data_version.counter == 2


@pytest.mark.parametrize("label", STORE_LABELS)
def test_apache_s_file_is_written_again_as_it_was(label: str) -> None:
    content = golden_store(label).files["config/consumerOffset.json"]
    made = offsets()
    made.load(content)
    assert not made.is_dirty
    before, after = fastjson.parse(content), fastjson.parse(made.encode())
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert before["offsetTable"]
    for table in (before, after):
        topics = table.get("groupTopicMap", {})
        table["groupTopicMap"] = {group: set(topics[group]) for group in topics}
    if "5.5.0" in label:
        assert after == before
    else:
        assert after["offsetTable"] == before["offsetTable"]


def test_what_fastjson_reads_is_read() -> None:
    made = offsets()
    made.load(b"{'offsetTable':{'T@g':{0:'7',1:8}},}")
    assert made.all_of("g", "T") == {0: 7, 1: 8}
    made.load(b'{"offsetTable":{"a,5:b@g":{0:7}}}')
    assert made.find("g", "a,5:b", 0) == 7


def test_keys_that_are_nobody_s_are_left_out() -> None:
    made = offsets()
    made.load(b'{"offsetTable":{"T":{0:7},"T@":{0:7},"@g":{0:7},"T@g@h":{0:1},"T@g":{}}}')
    assert len(made) == 0
    assert made.groups_of("T") == frozenset()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"offsetTable":{"T@g":{"x":1}}}',
        b'{"offsetTable":{"T@g":{0:9999999999999999999999}}}',
    ],
)
def test_a_file_that_is_none_changes_nothing(content: bytes) -> None:
    made = some()
    before = made.encode()
    with pytest.raises(ContentError, match=r"consumerOffset\.json"):
        made.load(content)
    assert made.encode() == before


def test_more_offsets_than_a_body_may_hold_are_read_from_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fastjson, "JSON_ENTRIES_MAX", 100)
    made = offsets()
    for number in range(1000):
        made.commit("g", "T", number, number)
    content = made.encode()
    with pytest.raises(ContentError, match="at most 100"):
        bodies.CONSUMER_OFFSETS.decode(content)
    again = offsets()
    again.load(content)
    assert len(again) == 1000
    assert again.find("g", "T", 999) == 999


def test_a_slave_becomes_its_master() -> None:
    made = some()
    table = bodies.CONSUMER_OFFSETS.decode(
        b'{"offsetTable":{"X@h":{0:4}},"dataVersion":{"counter":3,"stateVersion":1,"timestamp":2}}'
    )
    made.adopt(table)
    assert made.find("h", "X", 0) == 4
    assert made.find("g1", "A", 0) == -1
    assert made.data_version == DataVersion(1, 2, 3)
    assert made.is_dirty
