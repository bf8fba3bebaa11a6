"""The short way of a pull: whenever it answers, it answers what the long way would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.kernel import kernel
from gantrymq.store import packed_read
from support.queues import tag_filter
from support.store_rig import LOG, Rig

if TYPE_CHECKING:
    from gantrymq.store.get import Found

TAGS = ("", "A", "B", "C")
FILES = {"mappedFileSizeConsumeQueue": "20000", "mappedFileSizeCommitLog": "16384"}


def fill(rig: Rig, tags: list[str], body_bytes: int = 40) -> None:
    for number, tag in enumerate(tags):
        properties = {"TAGS": tag} if tag else {}
        rig.put(b"%d" % number + bytes(body_bytes), properties=properties)
    rig.settle()


def short(rig: Rig, offset: int, count: int, tags: tuple[str, ...]) -> Found | None:
    hashes = tuple(kernel.string_hash(tag.encode()) for tag in tags)
    return rig.store.reads._packed.read(rig.store.queues.find("T", 0), offset, count, hashes)


def long(rig: Rig, offset: int, count: int, tags: tuple[str, ...]) -> Found:
    choose = tag_filter(*tags) if tags else None
    out: list[Found] = []
    rig.store.begin_get("T", 0, offset, count, choose, out.append)
    rig.settle()
    (found,) = out
    return found


def begin_pull(rig: Rig, offset: int, count: int, tags: tuple[str, ...]) -> Found:
    choose = tag_filter(*tags) if tags else None
    hashes = tuple(kernel.string_hash(tag.encode()) for tag in tags)
    out: list[Found] = []
    rig.store.reads.begin_pull("T", 0, offset, count, choose, hashes, out.append)
    rig.settle()
    (found,) = out
    return found


def joined(found: Found) -> bytes:
    return b"".join(found.records)


@given(
    tags=st.lists(st.sampled_from(TAGS), max_size=120),
    wanted=st.sets(st.sampled_from(TAGS[1:])),
    offset=st.integers(-1, 125),
    count=st.integers(-1, 40),
    body_bytes=st.sampled_from([1, 300, 4000]),
)
def test_the_short_way_is_the_long_way(
    tags: list[str], wanted: set[str], offset: int, count: int, body_bytes: int
) -> None:
    rig = Rig(FILES)
    fill(rig, tags, body_bytes)
    chosen = tuple(sorted(wanted))
    expected = long(rig, offset, count, chosen)
    packed = short(rig, offset, count, chosen)
    if packed is not None:
        assert packed.messages > 0
        assert packed.status == expected.status
        least = joined(packed)
        if packed.next_offset == expected.next_offset:
            assert least == joined(expected)
            assert packed.messages == expected.messages
        else:
            # It stops at the border of a log file, of what it knows to be in memory or of a chunk.
            assert packed.next_offset < expected.next_offset
            assert joined(expected).startswith(least)
        assert (packed.min_offset, packed.max_offset) == (expected.min_offset, expected.max_offset)
        assert packed.record_bytes == len(least)
        assert packed.from_slave == expected.from_slave
    found = begin_pull(rig, offset, count, chosen)
    assert found.status == expected.status
    if packed is None:
        assert joined(found) == joined(expected)


@given(
    tags=st.lists(st.sampled_from(TAGS), min_size=1, max_size=150),
    wanted=st.sets(st.sampled_from(TAGS[1:])),
    count=st.integers(1, 40),
)
def test_reading_on_and_on_finds_every_message_once(
    tags: list[str], wanted: set[str], count: int
) -> None:
    rig = Rig(FILES)
    fill(rig, tags)
    chosen = tuple(sorted(wanted))
    offset, bodies = 0, b""
    while offset < len(tags):
        found = begin_pull(rig, offset, count, chosen)
        assert found.next_offset > offset
        bodies += joined(found)
        offset = found.next_offset
    every = [
        record for record in rig.records() if not wanted or tag_of(record.properties) in wanted
    ]
    seen: list[bytes] = []
    position = 0
    while position < len(bodies):
        record, position = kernel.decode_record(bodies, position, len(bodies), True)
        seen.append(record.body)
    assert seen == [record.body for record in every]


def tag_of(properties: bytes) -> str:
    return properties.decode().removeprefix("TAGS\x01").strip("\x02") if properties else ""


def test_a_pull_of_hot_messages_is_one_piece() -> None:
    rig = Rig(FILES)
    fill(rig, ["A"] * 40)
    found = begin_pull(rig, 0, 32, ())
    assert (found.packed, len(found.records), found.next_offset) == (32, 1, 32)


def test_whole_chunks_of_units_are_remembered(monkeypatch: object) -> None:
    rig = Rig(FILES | {"mappedFileSizeConsumeQueue": "60000", "mappedFileSizeCommitLog": "4194304"})
    fill(rig, ["A", "B"] * 1100, body_bytes=1)
    queue = rig.store.queues.find("T", 0)
    assert queue is not None
    for offset in (0, 5, 2047, 2048, 2100):
        for tags in ((), ("B",)):
            packed = short(rig, offset, 32, tags)
            assert packed is not None
            expected = long(rig, offset, 32, tags)
            assert joined(expected).startswith(joined(packed))
            assert packed.next_offset <= expected.next_offset
    chunks = rig.store.reads._packed._chunks
    assert len(chunks._chunks) == 1, "the last one is not whole"
    assert len(chunks._chunks) <= packed_read.CHUNKS_MAX


def test_a_topic_that_comes_again_has_other_units() -> None:
    rig = Rig(FILES | {"mappedFileSizeConsumeQueue": "60000", "mappedFileSizeCommitLog": "4194304"})
    fill(rig, ["A"] * 1100, body_bytes=1)
    assert short(rig, 0, 1, ()) is not None
    rig.store.delete_topic("T")
    rig.settle()
    rig.store.open_topic("T", 2)
    rig.put(b"new")
    rig.settle()
    first = begin_pull(rig, 0, 32, ())
    record, _ = kernel.decode_record(joined(first), 0, len(joined(first)), True)
    assert record.body == b"new"


def test_cold_messages_are_left_to_the_worker() -> None:
    rig = Rig({"mappedFileSizeCommitLog": str(64 << 20), "maxMessageSize": "4194304"})
    rig.put(b"old")
    for _ in range(5):
        rig.put(bytes(4 << 20))
    rig.settle()
    rig.disk.evict(LOG / "00000000000000000000")
    assert short(rig, 0, 1, ()) is None
    found = begin_pull(rig, 0, 1, ())
    assert found.packed == 0
    record, _ = kernel.decode_record(found.records[0], 0, len(found.records[0]), True)
    assert record.body == b"old"
