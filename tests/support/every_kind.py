"""A store with one of everything, written by our own `MessageStore`.

The messages are the same on every run. `write` puts them where they belong and returns where each
one went; a test that only has the directory left (the writer was killed) gets the same messages
from `contents` and the places from what the writer printed:

    python -m support.every_kind ROOT       writes, prints the places as JSON, waits to be killed

Files are as small as those of the golden stores, so that every kind of them rolls. The index does
so once, before the queues are flushed: Apache, recovering a store, makes what comes behind the last
safe index file anew, and names files by the millisecond. Two that are made within one are one file
to it, and the keys of the first are lost; so there must not be two.
"""

from __future__ import annotations

import random
import signal
import sys
import zlib
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from gantrymq.kernel.values import BINARY_HEADER, JSON_HEADER
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.names import SCHEDULE_TOPIC
from gantrymq.model.offsets import DataVersion
from gantrymq.model.queue import QueueId, QueueOffset
from gantrymq.model.topic import TopicConfig
from gantrymq.store import config_files
from gantrymq.store.files import OsFiles
from gantrymq.store.message_store import Identity, MessageStore, Workers
from gantrymq.store.put import NewMessage
from gantrymq.store.settings import StoreSettings, read_settings
from gantrymq.store.status import PutStatus
from gantrymq.store.worker import InlineWorker
from gantrymq.testing.clock import START_MS, VirtualClock
from gantrymq.wire.batch import BatchMessage, encode_batch
from gantrymq.wire.bodies.group import GROUP_TABLE, GroupTable
from gantrymq.wire.bodies.offsets import (
    CONSUMER_OFFSETS,
    DELAY_OFFSETS,
    ConsumerOffsets,
    DelayOffsets,
)
from gantrymq.wire.bodies.topic import TOPIC_TABLE, TopicTable
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.command import Command
from gantrymq.wire.frame import FrameParser, encode_frame
from gantrymq.wire.headers.send import SendMessageResponse, SendMessageV2Request
from gantrymq.wire.properties import encode_properties

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LOG_FILE_BYTES: Final = 524288
QUEUE_FILE_BYTES: Final = 1000
SETTINGS: Final = {
    "mappedFileSizeCommitLog": str(LOG_FILE_BYTES),
    "mappedFileSizeConsumeQueue": str(QUEUE_FILE_BYTES),
    "maxHashSlotNum": "200",
    "maxIndexNum": "1300",
    "messageDelayLevel": "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 2h 3650d",
    "messageIndexSafe": "true",
    "deleteWhen": "04",
    "fileReservedTime": "480000",
}
"""What every opener of such a store must know; level 18 is ten years."""
FLUSHED_NUMBER: Final = 520
"""The message before which consume queues are flushed: later ones must survive without that."""
READER_GROUP: Final = "reader"
STORED_MS: Final = START_MS
"""The clock of the writer begins here and goes on by a few milliseconds with each message."""
BORN_MS: Final = STORED_MS - 700
STORE_HOST: Final = ip_address("127.0.0.1").packed + (10911).to_bytes(4)
BORN_HOST: Final = ip_address("10.1.2.3").packed + (50000).to_bytes(4)
V6_HOST: Final = ip_address("fd00::2").packed + (50001).to_bytes(4)
LONG_TOPIC: Final = "Long_" + "x" * 122
HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"

TOPICS: Final = {
    "PlainTopic": 4,
    "BatchTopic": 2,
    "TagTopic": 1,
    "BigTopic": 2,
    "CompTopic": 1,
    "V6Topic": 1,
    "DelayTopic": 1,
    "TransTopic": 1,
    HALF_TOPIC: 1,
    OP_TOPIC: 1,
    f"%RETRY%{READER_GROUP}": 1,
    f"%DLQ%{READER_GROUP}": 1,
    "t-Safe_%7C|Name-09": 1,
    LONG_TOPIC: 1,
    "EmptyTopic": 8,
}
"""Topic to its number of queues."""


COMMITTED: Final = {QueueId(0): QueueOffset(7), QueueId(3): QueueOffset(9)}
"""How far the reader is in PlainTopic."""


class Content(NamedTuple):
    """What somebody sent."""

    message: NewMessage
    how: str = "put"
    """`json` and `binary` go through the kernel's lane with such a header; `batch` lies in one."""

    @property
    def stored_topic(self) -> str:
        """Return the topic that the record has."""
        return SCHEDULE_TOPIC if "DELAY" in self.message.properties else self.message.topic

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the words it can be found by."""
        return tuple(self.message.properties.get("KEYS", "").split())

    @property
    def unique_key(self) -> str | None:
        """Return the key that no other message has."""
        return self.message.properties.get("UNIQ_KEY")


class Placed(NamedTuple):
    """Where a message went; `number` is its index in `contents`."""

    number: int
    topic: str
    queue_id: int
    queue_offset: int
    log_offset: int
    is_counted: bool
    """Prepared messages are in the log and in no queue."""


# -- what is sent --------------------------------------------------------------------------------


def contents() -> list[Content]:
    """Return the messages in the order in which they are sent; those of a batch are neighbours."""
    dice = random.Random(4)
    groups = [
        list(_plain(dice)),
        list(_batches(dice)),
        list(_tags()),
        list(_big(dice)),
        list(_compressed()),
        list(_hosts()),
        list(_delayed()),
        list(_transactions()),
        list(_others()),
    ]
    # Plain sends before and behind everything else, so that the last file has many small records.
    return [*groups[0][:300], *(each for group in groups[1:] for each in group), *groups[0][300:]]


def unique_key(number: int) -> str:
    """Return a client's key as Java writes it."""
    return f"0A01020300002A139A55{number:012X}"


def _plain(dice: random.Random) -> Iterator[Content]:
    for n in range(600):
        odd = " unicode-\u00fc\u6d88\u606f" if n % 50 == 0 else ""
        properties = {
            "UNIQ_KEY": unique_key(n),
            "TAGS": f"Tag{n % 5}",
            "KEYS": f"order-{n} customer-{n % 97}{odd}",
            "a": f"\u503c{n}",
        }
        body = f"message {n} \u6d88\u606f \U0001f600 ".encode() + dice.randbytes(n % 64)
        message = NewMessage(
            "PlainTopic", n % 4, body, properties, BORN_MS + n, BORN_HOST, flag=n * 7919 - 2**20
        )
        yield Content(message, "binary" if n % 3 else "json")


def _batches(dice: random.Random) -> Iterator[Content]:
    for n in range(60):
        for inner in range(1 + n % 9):
            key = unique_key(10_000 + n * 10 + inner)
            properties = {"UNIQ_KEY": key, "TAGS": "Batch", "KEYS": f"batch-{n}"}
            body = f"batch {n}.{inner} ".encode() + dice.randbytes(inner)
            message = NewMessage("BatchTopic", n % 2, body, properties, BORN_MS + n, BORN_HOST)
            yield Content(message, "batch")


def _tags() -> Iterator[Content]:
    # Two pairs with equal hashes, one with a negative one, one that is not ASCII, and none.
    for n, tag in enumerate(["AaAa", "BBBB", "polygenelubricants", "\u6807\u7b7e", "", "A" * 200]):
        properties = {"UNIQ_KEY": unique_key(20_000 + n), "KEYS": "AaAa BBBB"}
        if tag:
            properties["TAGS"] = tag
        yield Content(NewMessage("TagTopic", 0, b"t", properties, BORN_MS, BORN_HOST))


def _big(dice: random.Random) -> Iterator[Content]:
    for n, size in enumerate([1, 4096, 65536, 262144, 300_000, 400_000, 100_000]):
        body = bytes(size) if n % 3 == 2 else dice.randbytes(size)
        properties = {"UNIQ_KEY": unique_key(30_000 + n), "KEYS": f"big-{size}"}
        message = NewMessage("BigTopic", n % 2, body, properties, BORN_MS, BORN_HOST)
        yield Content(message, "binary" if n % 2 else "put")
    long = {"UNIQ_KEY": unique_key(30_100), "p": "v" * 32_000}
    yield Content(NewMessage("BigTopic", 0, b"long", long, BORN_MS, BORN_HOST))


def _compressed() -> Iterator[Content]:
    for n, flag in enumerate([0x1, 0x301]):
        body = zlib.compress(b"compressed " * 1000, 5)
        properties = {"UNIQ_KEY": unique_key(40_000 + n)}
        message = NewMessage("CompTopic", 0, body, properties, BORN_MS, BORN_HOST, sys_flag=flag)
        yield Content(message, "json")


def _hosts() -> Iterator[Content]:
    for n, (born, stored) in enumerate(
        [(V6_HOST, None), (BORN_HOST, V6_HOST), (V6_HOST, V6_HOST), (BORN_HOST, None)]
    ):
        properties = {"UNIQ_KEY": unique_key(50_000 + n), "KEYS": "v6"}
        message = NewMessage(
            "V6Topic", 0, b"from afar", properties, BORN_MS, born, store_host=stored
        )
        yield Content(message)
    message = NewMessage("V6Topic", 0, b"sent", {"UNIQ_KEY": unique_key(50_100)}, BORN_MS, V6_HOST)
    yield Content(message, "json")


def _delayed() -> Iterator[Content]:
    for n, level in enumerate(["18", "50", "18"]):
        properties = {"UNIQ_KEY": unique_key(60_000 + n), "KEYS": "late", "DELAY": level}
        yield Content(NewMessage("DelayTopic", 0, b"later", properties, BORN_MS, BORN_HOST))


def _transactions() -> Iterator[Content]:
    half = {"TRAN_MSG": "true", "PGROUP": "senders", "REAL_TOPIC": "TransTopic", "REAL_QID": "0"}
    for n, (topic, flag) in enumerate(
        [(HALF_TOPIC, 0), ("TransTopic", 0x4), ("TransTopic", 0xC), ("TransTopic", 0x8)]
    ):
        properties = {**half, "UNIQ_KEY": unique_key(70_000 + n), "KEYS": "trade"}
        message = NewMessage(
            topic, 0, b"half", properties, BORN_MS, BORN_HOST, sys_flag=flag, prepared_offset=n
        )
        yield Content(message)
    done = NewMessage(OP_TOPIC, 0, b"0", {"TAGS": "d"}, BORN_MS, STORE_HOST, waits=False)
    yield Content(done)


def _others() -> Iterator[Content]:
    topics = [f"%RETRY%{READER_GROUP}", f"%DLQ%{READER_GROUP}", "t-Safe_%7C|Name-09", LONG_TOPIC]
    for n, topic in enumerate(topics):
        properties = {"UNIQ_KEY": unique_key(80_000 + n), "KEYS": "other", "RETRY_TOPIC": "P"}
        for times in range(3):
            yield Content(
                NewMessage(
                    topic, 0, b"again", properties, BORN_MS, BORN_HOST, reconsume_times=times
                )
            )
    yield Content(NewMessage("PlainTopic", 0, b"no properties", {}, BORN_MS, BORN_HOST))


# -- writing -------------------------------------------------------------------------------------


def store_settings(root: Path) -> StoreSettings:
    """Return the settings to open such a store with."""
    return read_settings({"storePathRootDir": str(root), **SETTINGS})


def make_store(root: Path, clock: VirtualClock | None = None) -> MessageStore:
    """Return a store at `root` that is not open yet."""
    worker = InlineWorker()
    return MessageStore(
        store_settings(root),
        Identity(STORE_HOST),
        files=OsFiles(),
        clock=clock or VirtualClock(STORED_MS),
        workers=Workers.made(lambda _name: worker),
    )


def write(store: MessageStore, clock: VirtualClock) -> list[Placed]:
    """Send everything to an open store."""
    for topic, queues in TOPICS.items():
        store.open_topic(topic, queues)
    placed: list[Placed] = []
    waiting: list[tuple[int, Content]] = []
    for number, content in enumerate(contents()):
        if waiting and not _same_batch(waiting[-1][1], content):
            placed += _send_batch(store, waiting)
            waiting = []
        if number == FLUSHED_NUMBER:
            store.flush_queues(thorough=True)
        clock.jump(0.007)
        if content.how == "batch":
            waiting.append((number, content))
        elif content.how == "put":
            placed.append(_put(store, number, content))
        else:
            placed += _send(store, number, content)
    return placed


def _same_batch(before: Content, after: Content) -> bool:
    return after.how == "batch" and before.message.born_timestamp == after.message.born_timestamp


def _put(store: MessageStore, number: int, content: Content) -> Placed:
    stored = store.put([content.message])
    if stored.status is not PutStatus.PUT_OK:
        raise RuntimeError(f"message {number} was refused: {stored.status.name}")
    return Placed(
        number, stored.topic, stored.queue_id, stored.queue_offset, stored.log_offset,
        content.message.is_counted,
    )  # fmt: skip


def _send(store: MessageStore, number: int, content: Content) -> list[Placed]:
    message = content.message
    serialize_type = BINARY_HEADER if content.how == "binary" else JSON_HEADER
    frame = encode_frame(
        Command.request(
            RequestCode.SEND_MESSAGE_V2,
            number,
            send_header(message, {"WAIT": "true", **message.properties}).encode(),
            message.body,
            serialize_type=serialize_type,
        )
    )
    return _through_the_lane(store, frame, [(number, content)])


def _send_batch(store: MessageStore, batch: Sequence[tuple[int, Content]]) -> list[Placed]:
    number, first = batch[0]
    inner = [
        BatchMessage(
            each.message.flag, each.message.body, encode_properties(each.message.properties)
        )
        for _, each in batch
    ]
    header = send_header(first.message, {"WAIT": "true"}, batch=True)
    frame = encode_frame(
        Command.request(
            RequestCode.SEND_BATCH_MESSAGE, number, header.encode(), encode_batch(inner)
        )
    )
    return _through_the_lane(store, frame, batch)


def send_header(
    message: NewMessage, properties: Mapping[str, str], *, batch: bool = False
) -> SendMessageV2Request:
    """Return the header of a send."""
    return SendMessageV2Request(
        producer_group="senders",
        topic=message.topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=message.queue_id,
        sys_flag=message.sys_flag,
        born_timestamp=message.born_timestamp,
        flag=message.flag,
        properties=encode_properties(properties).decode(),
        reconsume_times=message.reconsume_times,
        unit_mode=False,
        max_reconsume_times=16,
        batch=batch,
    )


def _through_the_lane(
    store: MessageStore, frame: bytes, sent: Sequence[tuple[int, Content]]
) -> list[Placed]:
    born_host = sent[0][1].message.born_host
    run = store.append_sends(frame, 0, len(frame), born_host)
    if run.messages != len(sent):
        raise RuntimeError(f"message {sent[0][0]} did not go through the lane: {run.stop!r}")
    (reply,) = FrameParser().feed(run.replies)
    said = SendMessageResponse.decode(reply.fields)
    offsets = [int(text[-16:], 16) for text in said.msg_id.split(",")]
    return [
        Placed(number, each.message.topic, said.queue_id, said.queue_offset + index, at, True)
        for index, ((number, each), at) in enumerate(zip(sent, offsets, strict=True))
    ]


def write_config(root: Path) -> None:
    """Write what a broker keeps beside its store."""
    files, directory = OsFiles(), root / "config"
    files.make_directory(directory)
    version = DataVersion(timestamp_ms=BORN_MS, counter=1)
    topics = {name: TopicConfig(name, count, count) for name, count in TOPICS.items()}
    topics[SCHEDULE_TOPIC] = TopicConfig(SCHEDULE_TOPIC, 18, 18)
    table = TopicTable(data_version=version, topic_config_table=topics)
    config_files.save(files, directory / "topics.json", TOPIC_TABLE.encode(table))
    groups = GroupTable(
        data_version=version,
        subscription_group_table={READER_GROUP: SubscriptionGroup(READER_GROUP)},
    )
    config_files.save(files, directory / "subscriptionGroup.json", GROUP_TABLE.encode(groups))
    committed = ConsumerOffsets(offset_table={f"PlainTopic@{READER_GROUP}": COMMITTED})
    config_files.save(files, directory / "consumerOffset.json", CONSUMER_OFFSETS.encode(committed))
    delays = DelayOffsets(offset_table={18: QueueOffset(0)})
    config_files.save(files, directory / "delayOffset.json", DELAY_OFFSETS.encode(delays))


def main(root: Path) -> None:
    """Write a store and stay alive with it open, so that a kill finds it so."""
    clock = VirtualClock(STORED_MS)
    store = make_store(root, clock)
    store.open(0)
    placed = write(store, clock)
    write_config(root)
    sys.stdout.buffer.write(msgspec.json.encode(placed) + b"\n")
    sys.stdout.flush()
    signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
