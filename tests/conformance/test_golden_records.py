"""Every byte of the golden stores, through both kernels.

The stores were written by Apache brokers; `messages.jsonl.gz` is what such a broker serves from
them. Consume queues and index files follow from the commit log, so what the kernel builds from the
log must be what stands in them. Where a store is an exception, the test says which and why.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

import pytest

from gantrymq.kernel.values import COLUMN_NAMES, Stop
from support.arrow import as_pylists
from support.golden import (
    HA,
    HA_FILES,
    STORE,
    STORE_FILES,
    STORE_LABELS,
    WIRE,
    WIRE_FILE_COUNT,
    WIRE_FILES,
    wire_files,
)
from support.stores import GoldenStore, LogFile, golden_store

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.kernel.interface import Kernel
    from support.arrow import Cell

ALL = 10**9
UNIT = struct.Struct(">qiq")
BYTES_MAX = 2**29


@pytest.fixture(params=STORE_LABELS)
def store(request: pytest.FixtureRequest) -> GoldenStore:
    label: str = request.param
    return golden_store(label)


def test_nothing_of_the_golden_data_is_missing() -> None:
    """A store or a conversation that is not there would be tests that are not there."""
    assert len(STORE_LABELS) == 9
    assert {path.name for path in STORE.iterdir()} == set(STORE_LABELS)
    for label in STORE_LABELS:
        assert sorted(path.name for path in (STORE / label).iterdir()) == list(STORE_FILES)
    assert {path.name for path in HA.iterdir()} == {*HA_FILES, "README.md"}
    assert all((HA / name).stat().st_size for name in HA_FILES)
    assert len(WIRE_FILES) == WIRE_FILE_COUNT == 368


def test_a_missing_conversation_is_noticed(tmp_path: Path) -> None:
    for path in [WIRE / "index.json", *WIRE_FILES]:
        link = tmp_path / path.relative_to(WIRE)
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(path)
    assert len(wire_files(tmp_path)) == WIRE_FILE_COUNT
    (tmp_path / "java-5.5.0" / "pop.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match=r"367 conversations.*java-5\.5\.0/pop\.jsonl"):
        wire_files(tmp_path)


def good_files(store: GoldenStore) -> list[tuple[LogFile, int]]:
    """Return the log files that hold records, and where the good ones end at the latest."""
    files = [file for file in store.log_files() if file.base < store.end]
    return [(file, min(len(file.raw), store.end - file.base)) for file in files]


def test_the_log_ends_where_apache_says(store: GoldenStore, kernel: Kernel) -> None:
    stop = Stop.BLANK
    end = 0
    for base, raw in store.log_files():
        if stop is not Stop.BLANK:
            break
        scan = kernel.scan_records(raw, 0, len(raw), base, True, ALL)
        stop, end = scan.stop, base + scan.end
    assert end == store.end
    # Behind an end there are zeros, never used; a torn record begins well and runs into them.
    assert stop is (Stop.BAD_SIZE if store.is_torn else Stop.BAD_MAGIC)


def test_every_record_is_encoded_to_the_same_bytes(store: GoldenStore, kernel: Kernel) -> None:
    target = bytearray(1 << 18)
    count = 0
    for log_offset, raw, record in store.records(kernel):
        assert record.log_offset == log_offset
        assert kernel.record_bytes(record) == len(raw)
        assert kernel.encode_record(target, 0, len(target), record) == len(raw)
        assert target[: len(raw)] == raw
        count += 1
    assert count >= len(store.messages)


def host(raw: bytes) -> str:
    (port,) = struct.unpack(">i", raw[-4:])
    if len(raw) == 8:
        return f"{'.'.join(map(str, raw[:4]))}:{port}"
    groups = struct.unpack(">8H", raw[:16])
    return f"{':'.join(f'{group:x}' for group in groups)}:{port}"


def property_map(raw: bytes) -> dict[str, str]:
    entries = (entry.partition("\x01") for entry in raw.decode().split("\x02"))
    return {name: value for name, _separator, value in entries if name and value}


def test_every_listed_message_is_there_and_equal(store: GoldenStore, kernel: Kernel) -> None:
    missing = dict(store.messages)
    unlisted: list[str] = []
    for log_offset, raw, record in store.records(kernel):
        listed = missing.pop(log_offset, None)
        if listed is None:
            unlisted.append(record.topic.decode())
            continue
        properties = property_map(record.properties)
        expected = dict(listed)
        expected.pop("bodyLen", None)  # of the decompressed body
        expected.pop("bodySha256", None)
        assert expected == {
            "topic": record.topic.decode(),
            "queueId": record.queue_id,
            "queueOffset": record.queue_offset,
            "commitLogOffset": record.log_offset,
            "storeSize": len(raw),
            "magic": raw[4:8].hex(),
            "msgId": (record.store_host + struct.pack(">q", log_offset)).hex().upper(),
            "uniqKey": properties.get("UNIQ_KEY"),
            "tags": properties.get("TAGS"),
            "keys": properties.get("KEYS"),
            "properties": properties,
            "bodyCRC": kernel.crc32(record.body),
            "storedBodyLen": len(record.body),
            "storedBodySha256": hashlib.sha256(record.body).hexdigest(),
            "sysFlag": record.sys_flag,
            "flag": record.flag,
            "bornTimestamp": record.born_timestamp,
            "bornHost": host(record.born_host),
            "storeTimestamp": record.store_timestamp,
            "storeHost": host(record.store_host),
            "reconsumeTimes": record.reconsume_times,
            "preparedTransactionOffset": record.prepared_offset,
            "recordSha256": hashlib.sha256(raw).hexdigest(),
        }
    assert missing == {}
    # Its consume queue was deleted, so no broker can serve what the log still holds.
    assert set(unlisted) <= {"DeletedTopic"}
    assert len(unlisted) in {0, 6}


def built_units(store: GoldenStore, kernel: Kernel) -> dict[tuple[str, int, int], bytes]:
    """Return the units that the kernel builds from the log; the topic deleted on disk left out."""
    units: dict[tuple[str, int, int], bytes] = {}
    for (base, raw), end in good_files(store):
        result = kernel.dispatch_records(raw, 0, end, base, True, ALL, store.delays_ms)
        assert result.stop in {Stop.BLANK, Stop.END}
        assert result.multi == []
        for run in result.runs:
            for number in range(len(run.units) // 20):
                place = (run.topic.decode(), run.queue_id, run.first_queue_offset + number)
                assert place not in units
                units[place] = run.units[20 * number : 20 * number + 20]
            offset, size, _tags_code = struct.unpack(">qiq", run.units[-20:])
            assert run.log_end == offset + size
    return {place: unit for place, unit in units.items() if place[0] != "DeletedTopic"}


def test_consume_queues_follow_from_the_log(store: GoldenStore, kernel: Kernel) -> None:
    built = built_units(store, kernel)
    on_disk = store.queue_units()
    if store.is_torn:
        # Units may point behind the torn record: recovery cuts them off. Others were wiped out by
        # the damage: recovery builds them again.
        on_disk = {p: u for p, u in on_disk.items() if int.from_bytes(u[:8]) < store.end}
        wiped = built.keys() - on_disk.keys()
        assert {topic for topic, _queue, _offset in wiped} <= {"SpamA", "BatchTopic"}
        built = {place: unit for place, unit in built.items() if place not in wiped}
    if "cqext" in store.label:
        # Where the tags code should stand there is an address; the code is in the extension.
        for place, unit in on_disk.items():
            offset, size, address = struct.unpack(">qiq", unit)
            tags_code, stored_at = store.extended(place[0], place[1], address)
            assert stored_at == store.messages[offset]["storeTimestamp"]
            on_disk[place] = struct.pack(">qiq", offset, size, tags_code)
    assert built == on_disk


def tag_keys(store: GoldenStore, kernel: Kernel) -> list[tuple[int, int]]:
    """Return what 5.5.0 adds to the index: `topic#T#tag`, behind the record's own keys."""
    keys: list[tuple[int, int]] = []
    for log_offset, _raw, record in store.records(kernel):
        tag = property_map(record.properties).get("TAGS")
        if tag is not None:
            keys.append((abs(kernel.string_hash(record.topic + f"#T#{tag}".encode())), log_offset))
    return keys


def test_index_entries_follow_from_the_log(store: GoldenStore, kernel: Kernel) -> None:
    built: list[tuple[int, int]] = []
    for (base, raw), end in good_files(store):
        keys = kernel.dispatch_records(raw, 0, end, base, True, ALL, store.delays_ms).keys
        for key_hash, log_offset, stored_at in struct.iter_unpack(">iqq", keys):
            built.append((key_hash, log_offset))
            listed = store.messages.get(log_offset)
            assert listed is None or listed["storeTimestamp"] == stored_at
    if "5.5.0" in store.label:
        # A stable sort by offset puts each tag behind the keys of the same record.
        built = sorted(built + tag_keys(store, kernel), key=lambda entry: entry[1])
    on_disk = store.index_entries()
    assert on_disk[: len(built)] == built
    # Entries of records behind the torn one, which recovery forgets; their tail is overwritten.
    assert store.is_torn or len(on_disk) == len(built)


def columns_of(store: GoldenStore, kernel: Kernel, topics: list[bytes]) -> dict[str, list[Cell]]:
    columns: dict[str, list[Cell]] = {name: [] for name in COLUMN_NAMES}
    for (base, raw), end in good_files(store):
        position = 0
        while True:
            part = kernel.scan_columns(
                raw, position, end, base, True, COLUMN_NAMES, topics, 97, BYTES_MAX
            )
            for name, values in as_pylists(part).items():
                columns[name] += values
            position = part.end
            if part.stop is not Stop.LIMIT:
                break
        assert part.stop in {Stop.BLANK, Stop.END}
    return columns


SAME = {
    "topic": "topic",
    "queue_id": "queueId",
    "queue_offset": "queueOffset",
    "log_offset": "commitLogOffset",
    "store_size": "storeSize",
    "message_id": "msgId",
    "unique_key": "uniqKey",
    "tags": "tags",
    "keys": "keys",
    "body_crc": "bodyCRC",
    "sys_flag": "sysFlag",
    "flag": "flag",
    "born_timestamp": "bornTimestamp",
    "born_host": "bornHost",
    "store_timestamp": "storeTimestamp",
    "store_host": "storeHost",
    "reconsume_times": "reconsumeTimes",
    "prepared_offset": "preparedTransactionOffset",
}


@pytest.mark.parametrize(
    "topics", [[], [b"PlainTopic", b"TagTopic", b"CompTopic"]], ids=["all", "some"]
)
def test_columns_say_the_same(store: GoldenStore, kernel: Kernel, topics: list[bytes]) -> None:
    wanted = {topic.decode() for topic in topics}
    columns = columns_of(store, kernel, topics)
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    found = {row["log_offset"]: row for row in rows if row["topic"] != "DeletedTopic"}
    listed = {o: m for o, m in store.messages.items() if not wanted or m["topic"] in wanted}
    assert list(found) == sorted(listed)
    for offset, message in listed.items():
        row = found[offset]
        assert {ours: row[ours] for ours in SAME} == {
            ours: message[theirs] for ours, theirs in SAME.items()
        }
        body, properties = row["body"], row["properties"]
        assert isinstance(body, bytes)
        assert isinstance(properties, str)
        assert hashlib.sha256(body).hexdigest() == message["storedBodySha256"]
        assert property_map(properties.encode()) == message["properties"]


def test_tags_are_found_in_the_queues(kernel: Kernel) -> None:
    store = golden_store("apache-4.9.7-clean")
    messages = [m for m in store.messages.values() if m["topic"] == "TagTopic"]
    tags = {str(message["tags"] or "") for message in messages}
    units = {place: unit for place, unit in store.queue_units().items() if place[0] == "TagTopic"}
    queue = b"".join(units[place] for place in sorted(units))
    hashes = {tag: kernel.string_hash(tag.encode()) for tag in tags}
    assert len(set(hashes.values())) < len(hashes), "some tags collide on purpose"
    assert min(hashes.values()) < 0
    for tag in tags:
        found = {at for at, _size, tags_code in UNIT.iter_unpack(queue) if tags_code == hashes[tag]}
        expected = {
            message["commitLogOffset"]
            for message in messages
            if hashes[str(message["tags"] or "")] == hashes[tag]
        }
        assert found == expected


def test_a_reader_may_begin_anywhere(kernel: Kernel) -> None:
    store = golden_store("apache-5.5.0-pop-v2records")
    (file,) = (file for file, _end in good_files(store))
    starts = sorted(store.messages)
    for at in range(0, store.end, 101):
        expected = next((start for start in starts if start >= at), -1)
        assert kernel.find_record(file.raw, at, store.end, file.base) == expected
