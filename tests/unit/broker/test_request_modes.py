"""Pull or pop by topic and group, and queues shared out as Java's clients share them out."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.broker import request_modes
from gantrymq.broker.request_modes import RequestModes, assign, assign_for_pop
from gantrymq.errors import ContentError, InvalidValue
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.wire.bodies.assignment import RequestMode, RequestModeSetting, RequestModeTable
from support.stores import golden_store

STRATEGIES = ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"]


def queues(count: int) -> list[MessageQueue]:
    return [
        MessageQueue("Orders", f"broker-{'ab'[number % 2]}", QueueId(number // 2))
        for number in range(count)
    ]


def members(count: int) -> list[str]:
    return [f"10.0.0.{number * 7}@{1000 + number * 13}" for number in range(count)]


def setting(topic: str, group: str) -> RequestModeSetting:
    return RequestModeSetting(
        topic=topic, consumer_group=group, mode=RequestMode.POP, pop_share_queue_num=8
    )


@pytest.mark.parametrize(
    ("strategy", "queue_count", "member_count", "owners"),
    [
        ("AVG", 1, 1, "0"),
        ("AVG", 2, 3, "01"),
        ("AVG", 8, 3, "00011122"),
        ("AVG", 16, 5, "0000111222333444"),
        ("AVG", 12, 4, "000111222333"),
        ("AVG", 3, 3, "012"),
        ("AVG", 7, 2, "0000111"),
        ("AVG", 4, 9, "0123"),
        ("AVG", 30, 7, "000001111122223333444455556666"),
        ("AVG_BY_CIRCLE", 1, 1, "0"),
        ("AVG_BY_CIRCLE", 2, 3, "01"),
        ("AVG_BY_CIRCLE", 8, 3, "01201201"),
        ("AVG_BY_CIRCLE", 16, 5, "0123401234012340"),
        ("AVG_BY_CIRCLE", 4, 9, "0123"),
        ("AVG_BY_CIRCLE", 30, 7, "012345601234560123456012345601"),
        ("CONSISTENT_HASH", 1, 1, "0"),
        ("CONSISTENT_HASH", 2, 3, "11"),
        ("CONSISTENT_HASH", 8, 3, "12101112"),
        ("CONSISTENT_HASH", 16, 5, "1220140221140440"),
        ("CONSISTENT_HASH", 12, 4, "122013211303"),
        ("CONSISTENT_HASH", 7, 2, "0100001"),
        ("CONSISTENT_HASH", 4, 9, "1641"),
        ("CONSISTENT_HASH", 30, 7, "152056020202553411406400211110"),
    ],
)
def test_queues_go_where_java_s_client_5_5_0_sends_them(
    strategy: str, queue_count: int, member_count: int, owners: str
) -> None:
    """`owners` was printed by Java: for each queue in order, the place of its member in order."""
    ids = members(member_count)
    expected = {
        client: [
            queue
            for queue, owner in zip(sorted(queues(queue_count)), owners, strict=True)
            if int(owner) == place
        ]
        for place, client in enumerate(sorted(ids))
    }
    found = {client: assign(strategy, client, queues(queue_count), ids) for client in ids}
    assert found == expected


@given(st.sampled_from(STRATEGIES), st.integers(0, 40), st.integers(1, 12), st.randoms())
def test_every_queue_has_one_member_whatever_the_order(
    strategy: str, queue_count: int, member_count: int, random: object
) -> None:
    assert hasattr(random, "shuffle")
    some, ids = queues(queue_count), members(member_count)
    given_out = [queue for client in ids for queue in assign(strategy, client, some, ids)]
    assert sorted(given_out) == sorted(some)
    shuffled, others = list(some), list(ids)
    random.shuffle(shuffled)
    random.shuffle(others)
    for client in ids:
        assert assign(strategy, client, shuffled, others) == assign(strategy, client, some, ids)


def test_who_is_no_member_gets_nothing_and_an_unknown_strategy_is_named() -> None:
    for strategy in STRATEGIES:
        assert assign(strategy, "stranger", queues(4), members(2)) == []
        assert assign(strategy, "stranger", queues(4), []) == []
        assert assign(strategy, members(1)[0], [], members(1)) == []
    with pytest.raises(InvalidValue, match=r"'MACHINE_ROOM'.*AVG_BY_CIRCLE"):
        assign("MACHINE_ROOM", "c", queues(1), ["c"])


def test_members_are_ordered_by_their_utf_16_units() -> None:
    high, rare = "\uffee", "\U0001f600"
    assert assign("AVG", rare, queues(2), [high, rare]) == sorted(queues(2))[:1]


def test_pop_shares_all_or_with_neighbours() -> None:
    some, ids = queues(8), sorted(members(4))
    anyone = [MessageQueue(queue.topic, queue.broker_name, QueueId(-1)) for queue in sorted(some)]
    for shared_with in (0, -1, 3, 8):
        assert assign_for_pop("AVG", ids[0], some, ids, shared_with) == anyone
    assert assign_for_pop("AVG", ids[3], some, ids, 1) == [*sorted(some)[6:], *sorted(some)[:2]]
    assert assign_for_pop("AVG", ids[1], queues(2), ids, 1) == sorted(queues(2))[1:]
    assert assign_for_pop("AVG", ids[2], queues(2), ids, 1) == sorted(queues(2))[:1]
    assert assign_for_pop("AVG", "stranger", some, ids, 1) == []


def test_a_mode_is_kept_over_a_restart() -> None:
    modes = RequestModes()
    assert modes.find("T", "g") is None
    assert modes.changes == 0
    modes.put(setting("T", "g"))
    modes.put(setting("T", "h"))
    modes.put(setting("U", "g"))
    assert modes.is_dirty
    again = RequestModes()
    again.load(modes.encode())
    assert again.find("T", "g") == setting("T", "g")
    again.remove_group("g")
    assert again.find("T", "g") is None
    assert again.find("T", "h") is not None
    again.remove_topic("T")
    assert again.table() == RequestModeTable()
    again.adopt(modes.table())
    assert again.find("U", "g") == setting("U", "g")


def test_there_is_room_for_so_many_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_modes, "REQUEST_MODES_MAX", 2)
    modes = RequestModes()
    modes.put(setting("T", "g"))
    modes.put(setting("T", "h"))
    modes.put(setting("T", "h"))
    with pytest.raises(InvalidValue, match="which is the most"):
        modes.put(setting("U", "g"))
    table = RequestModeTable(
        message_request_mode_map={"T": {group: setting("T", group) for group in "abc"}}
    )
    with pytest.raises(InvalidValue, match="3 request modes"):
        modes.adopt(table)
    with pytest.raises(ContentError, match=r"messageRequestMode\.json"):
        modes.load(b"[]")
    assert modes.find("T", "g") is not None


@pytest.mark.parametrize("label", ["apache-5.5.0-pop-v2records", "apache-5.5.0-clean"])
def test_apache_s_file_is_written_again_as_it_was(label: str) -> None:
    files = golden_store(label).files
    content = files.get("config/messageRequestMode.json", b'{"messageRequestModeMap":{}}')
    modes = RequestModes()
    modes.load(content)
    assert msgspec.json.decode(modes.encode()) == msgspec.json.decode(content)
