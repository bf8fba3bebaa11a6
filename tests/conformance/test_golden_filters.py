"""SQL92 consumers of an Apache broker: its bitmaps, what it delivered, and the file it kept."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from gantrymq.broker.filter.choice import choice_for
from gantrymq.broker.filter.table import FilterTable
from gantrymq.kernel import kernel
from gantrymq.model.group import Subscription
from support.golden import STORE
from support.golden_disk import golden_disk, queue_table
from support.stores import golden_store

if TYPE_CHECKING:
    from gantrymq.kernel import QueueUnit
    from gantrymq.store.consume_queue_ext import ConsumeQueueExt

LABEL = "apache-4.9.7-cqext-sql92"
NOW_MS = 1_794_800_000_000
FILE = "config/consumerFilter.json"


class SqlSubscription(msgspec.Struct):
    topic: str
    expression: str
    delivered: dict[str, list[int]]


class Manifest(msgspec.Struct, rename="camel"):
    sql_subscriptions: dict[str, SqlSubscription]


class Message(msgspec.Struct, rename="camel"):
    topic: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    store_size: int
    properties: dict[str, str]


@cache
def filtered_messages() -> list[Message]:
    """Return the messages of the topics that had SQL92 consumers."""
    found = msgspec.convert(list(golden_store(LABEL).messages.values()), list[Message])
    return [message for message in found if message.topic in {"FilterTopic", "FilterTopic2"}]


def apache_table() -> FilterTable:
    return FilterTable.from_json(golden_store(LABEL).files[FILE], NOW_MS)


def extension_of(topic: str, queue_id: int) -> tuple[ConsumeQueueExt, list[QueueUnit]]:
    """Return a queue's extension and its units."""
    disk = golden_disk(golden_store(LABEL), "consumequeue", "consumequeue_ext")
    table = queue_table(disk, ext=True)
    table.load()
    table.recover()
    queue = table.queue(topic, queue_id)
    extension = table.extension(queue)
    assert extension is not None
    units = [queue.unit(offset) for offset in range(queue.max_offset)]
    return extension, cast("list[QueueUnit]", units)


def subscriptions() -> dict[str, SqlSubscription]:
    raw = (STORE / LABEL / "manifest.json").read_bytes()
    return msgspec.json.decode(raw, type=Manifest).sql_subscriptions


QUEUES = [("FilterTopic", 0), ("FilterTopic", 1), ("FilterTopic2", 0)]


@pytest.mark.parametrize(("topic", "queue_id"), QUEUES)
def test_bitmaps_are_apaches(topic: str, queue_id: int) -> None:
    table = apache_table()
    extension, units = extension_of(topic, queue_id)
    by_offset = {
        message.queue_offset: message
        for message in filtered_messages()
        if (message.topic, message.queue_id) == (topic, queue_id)
    }
    assert len(units) == len(by_offset) >= 60
    for offset, unit in enumerate(units):
        known = extension.read(unit.tags_code)
        assert known is not None
        assert known.bitmap == table.bits_for(topic, by_offset[offset].properties), offset


def test_the_bitmaps_say_something() -> None:
    table = apache_table()
    found = Counter(table.bits_for(one.topic, one.properties) for one in filtered_messages())
    assert len(found) == 7
    assert found[bytes(14)] == 212


@pytest.mark.parametrize("group", ["cg_sql_a", "cg_sql_b", "cg_sql_c", "cg_sql_d"])
def test_the_same_messages_pass(group: str) -> None:
    wanted = subscriptions()[group]
    table = apache_table()
    known = table.get(wanted.topic, group)
    assert known is not None
    assert known.expression == wanted.expression
    subscription = Subscription(wanted.topic, wanted.expression, expression_type="SQL92")
    store = golden_store(LABEL)
    messages = [one for one in filtered_messages() if one.topic == wanted.topic]
    records = {place.log_offset: place.raw for place in store.records(kernel)}
    skipped = 0
    for queue_id in sorted({message.queue_id for message in messages}):
        extension, units = extension_of(wanted.topic, queue_id)
        choice = choice_for(subscription, known, table, read_extension=extension.read)
        assert choice is not None
        passed = []
        for offset, unit in enumerate(units):
            by_record = choice.by_record(memoryview(records[unit.log_offset]))
            if not choice.by_unit(unit):
                skipped += 1
                assert not by_record, "the bitmap must not hide what the expression wants"
            elif by_record:
                passed.append(offset)
        assert passed == wanted.delivered.get(f"{wanted.topic}@{queue_id}", [])
    assert skipped > 50, "the bitmap saves reading"


def test_the_file_is_kept_as_it_was() -> None:
    content = golden_store(LABEL).files[FILE]
    table = apache_table()
    assert len(table) == 4
    assert all(known.is_dead and known.compiled is not None for known in table)
    assert all(table.bloom.bits_of(known.group, known.topic) == known.bits for known in table)
    assert msgspec.json.decode(table.to_json(NOW_MS)) == msgspec.json.decode(content)
