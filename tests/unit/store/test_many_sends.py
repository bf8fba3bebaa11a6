"""A hundred thousand sends of many connections at once: one order, whole records, dense queues."""

from __future__ import annotations

import random
import struct
from collections import defaultdict
from typing import TYPE_CHECKING

from gantrymq.kernel import kernel
from gantrymq.store.reader import StoreReader
from gantrymq.store.verify import verify
from gantrymq.testing.clock import VirtualClock
from support.small_stores import small_store
from support.store_rig import frames

if TYPE_CHECKING:
    from pathlib import Path

CONNECTIONS = 32
BUFFERS = 25
MESSAGES_A_BUFFER = 125
QUEUES = 4
FILE_BYTES = 1 << 20
SIZES = {
    "mappedFileSizeCommitLog": str(FILE_BYTES),
    "mappedFileSizeConsumeQueue": "20000",
    "messageIndexEnable": "false",
}


def host_of(connection: int) -> bytes:
    """Return a client's address."""
    return bytes([10, 0, 0, connection]) + struct.pack(">i", 40_000 + connection)


def written(root: Path) -> None:
    """Let all connections send, in turns that nobody planned, by a clock that is set back too."""
    dice, clock = random.Random(7), VirtualClock()
    store = small_store(root, clock, **SIZES)
    store.open(1)
    store.open_topic("T", QUEUES)
    turns = [one for one in range(CONNECTIONS) for _ in range(BUFFERS)]
    dice.shuffle(turns)
    for turn, connection in enumerate(turns):
        bodies = [b"%d/%d/%d" % (connection, turn, number) for number in range(MESSAGES_A_BUFFER)]
        buffer = frames(bodies, queue_id=dice.randrange(QUEUES))
        run = store.append_sends(buffer, 0, len(buffer), host_of(connection))
        assert (run.consumed, run.messages) == (len(buffer), MESSAGES_A_BUFFER)
        clock.set_now_ms(clock.now_ms() + dice.choice((-500, -1, 0, 0, 1, 3, 600)))
    assert store.close()


def test_a_hundred_thousand_messages(tmp_path: Path) -> None:
    written(tmp_path / "store")
    end, last_ms = 0, 0
    offsets: dict[int, list[int]] = defaultdict(list)
    by_connection: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
    with StoreReader.open(tmp_path / "store") as reader:
        for record in reader.records():
            raw = record.raw
            at = raw.log_offset
            assert at == end or at % FILE_BYTES == 0, "no two overlap, and nothing lies between"
            end, stored = at + record.stored_bytes, raw.store_timestamp
            assert stored >= last_ms
            last_ms = stored
            crc = reader.log.read(at + 8, 4)
            assert crc is not None
            assert int.from_bytes(crc) == kernel.crc32(raw.body)
            offsets[raw.queue_id].append(raw.queue_offset)
            connection, turn, number = map(int, raw.body.split(b"/"))
            assert raw.born_host == host_of(connection)
            by_connection[raw.born_host].append((turn, number))
        assert verify(reader).is_sound
    assert sum(map(len, offsets.values())) == CONNECTIONS * BUFFERS * MESSAGES_A_BUFFER == 100_000
    assert all(found == list(range(len(found))) for found in offsets.values())
    assert len(by_connection) == CONNECTIONS
    assert all(found == sorted(found) for found in by_connection.values()), "in the order sent"
