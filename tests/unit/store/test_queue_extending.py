"""enableConsumeQueueExt: what dispatch writes beside a queue, and what readers make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.broker.filter.bloom import is_marked
from gantrymq.kernel import kernel
from gantrymq.model.group import Subscription
from gantrymq.store.consume_queue_ext import ExtUnit, is_ext_address
from gantrymq.store.queue_table import EXT_DIRECTORY
from gantrymq.wire.codes import RequestCode
from support.broker_rig import BrokerRig, pull
from support.samples import json_request
from support.store_rig import ROOT, Rig
from support.timed_rig import TimedRig

if TYPE_CHECKING:
    from gantrymq.store.message_store import MessageStore

EXT = {"enableConsumeQueueExt": "true", "mappedFileSizeConsumeQueueExt": "1024"}
SQL: dict[str, Any] = {"expressionType": "SQL92", "subscription": "a > 5"}


def units(store: MessageStore, topic: str = "T", queue_id: int = 0) -> list[ExtUnit | None]:
    """Return what the extension has for each message of a queue; None for a plain entry."""
    queue = store.queues.find(topic, queue_id)
    assert queue is not None
    extension = store.queues.extension(queue)
    assert extension is not None
    found = [queue.unit(offset) for offset in range(queue.min_offset, queue.max_offset)]
    return [
        extension.read(unit.tags_code) if is_ext_address(unit.tags_code) else None
        for unit in found
        if unit is not None
    ]


def test_every_message_has_its_tag_and_time_there() -> None:
    rig = Rig(EXT)
    rig.put(b"x", properties={"TAGS": "a"})
    rig.clock.jump(5)
    rig.put(b"y")
    times = [record.store_timestamp for record in rig.records()]
    assert units(rig.store) == [
        ExtUnit(kernel.string_hash(b"a"), times[0], b""),
        ExtUnit(0, times[1], b""),
    ]
    assert rig.bodies() == [b"x", b"y"]


def test_without_the_setting_nothing_is_written() -> None:
    rig = Rig()
    rig.put(b"x", properties={"TAGS": "a"})
    assert rig.store.close()
    assert not rig.disk.exists(ROOT / EXT_DIRECTORY)


def test_a_clean_restart_finds_all_of_it_and_goes_on() -> None:
    rig = Rig(EXT)
    for number in range(40):  # several files of both kinds
        rig.put(b"%d" % number, properties={"TAGS": f"t{number}"})
    before = units(rig.store)
    assert rig.store.close()
    assert len(rig.disk.names(ROOT / EXT_DIRECTORY / "T" / "0")) > 0
    again = rig.again(rig.disk)
    assert units(again.store) == before
    again.put(b"next", properties={"TAGS": "n"})
    last = units(again.store)[-1]
    assert last is not None
    assert last.tags_code == kernel.string_hash(b"n")


def test_after_a_crash_every_message_is_served_with_its_tag() -> None:
    rig = Rig(EXT)
    for number in range(10):
        rig.put(b"%d" % number, properties={"TAGS": "a"})
    again = rig.again()
    assert again.bodies() == [b"%d" % number for number in range(10)]
    queue = again.store.queues.find("T", 0)
    assert queue is not None
    for offset, more in enumerate(units(again.store)):
        unit = queue.unit(offset)
        assert unit is not None
        assert (unit.tags_code if more is None else more.tags_code) == kernel.string_hash(b"a")
    again.put(b"10", properties={"TAGS": "a"})
    assert units(again.store)[-1] is not None


def with_sql_consumer(**settings: Any) -> BrokerRig:  # noqa: ANN401
    """Return a broker whose group g wants what has a > 5, and three messages since."""
    rig = BrokerRig(EXT, property_filter=True, **settings)
    wanted = Subscription("T", "a > 5", version=1, expression_type="SQL92")
    filters = rig.broker.tables.filters
    filters.register("g", [wanted], rig.clock.now_ms())
    rig.clock.jump(1)
    for value in (3, 7, 4):
        rig.send(b"%d" % value, i=f"a\x01{value}")
    rig.turns()
    return rig


def test_the_bitmap_says_who_wants_a_message() -> None:
    rig = with_sql_consumer(filter_bitmap=True)
    known = rig.broker.tables.filters.get("T", "g")
    assert known is not None
    assert known.bits is not None
    found = units(rig.store)
    assert [one is not None and is_marked(one.bitmap, known.bits) for one in found] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(("consumers", "bits"), [(32, 112), (64, 216)])
def test_the_filter_says_how_long_a_bitmap_is(consumers: int, bits: int) -> None:
    rig = BrokerRig(EXT | {"bitMapLengthConsumeQueueExt": "8"}, filter_consumers=consumers)
    asked = rig.ask(json_request(RequestCode.GET_BROKER_CONFIG, {}))
    assert f"bitMapLengthConsumeQueueExt={bits}".encode() in asked.body.splitlines()
    rig = with_sql_consumer(filter_bitmap=True, filter_consumers=consumers)
    assert [len(one.bitmap) for one in units(rig.store) if one is not None] == [bits // 8] * 3


def test_without_a_bitmap_the_messages_decide() -> None:
    rig = with_sql_consumer(filter_bitmap=False)
    assert [one.bitmap for one in units(rig.store) if one is not None] == [b"", b"", b""]


def test_sql_and_tag_consumers_get_what_they_want() -> None:
    rig = with_sql_consumer(filter_bitmap=True)
    rig.send(b"tagged", i="TAGS\x01A\x02a\x012")
    rig.turns()
    fields: dict[str, Any] = {"sysFlag": "4", "consumerGroup": "g"}
    answer = rig.ask(pull(0, **SQL, **fields))
    assert (answer.code, answer.body.count(b"a\x017")) == (0, 1)
    assert b"a\x013" not in answer.body
    tagged = rig.ask(pull(0, subscription="A", expressionType="TAG", **fields))
    assert (tagged.code, b"tagged" in tagged.body, b"a\x017" in tagged.body) == (0, True, False)


def test_delayed_messages_wait_as_long_as_they_should() -> None:
    rig = TimedRig(EXT)
    assert rig.send(b"later", DELAY="3").code == 0  # ten seconds
    assert units(rig.broker.store, "SCHEDULE_TOPIC_XXXX", 2)[0] is not None
    rig.wait(8.0)
    assert rig.broker.store.reads.max_offset("T", 0) == 0
    rig.wait(4.0)
    assert rig.bodies("T") == [b"later"]
