"""Topics of Kafka as a source of `migrate`: partitions become queues, headers properties.

Read by `confluent-kafka`, which is an extra (`pip install "gantrymq[kafka]"`): tasks read ranges of
offsets, so that no jar is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gantrymq.clock import SystemClock
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.spark.jobs.origin import (
    ORIGIN_BORN,
    ORIGIN_OFFSET,
    ORIGIN_QUEUE,
    ORIGIN_STORED,
    ORIGIN_TOPIC,
    sink_batch,
)
from gantrymq.spark.slices import Queue

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

BROKER: Final = "kafka"
"""What stands for a broker's name in offsets and maps."""
GROUP: Final = "gantrymq-migrate"
NO_VALUE: Final = "KAFKA_NULL"
"""Property of a message whose record had no value: `true` for a null, else `empty`."""
BATCH_ROWS: Final = 2000
ANSWER_S: Final = 30.0
CONSUME_S: Final = 0.2
"""How long records that are there wait for more of them."""


class KafkaError(GantryError):
    """Kafka did not do what it was asked for."""


def _client() -> Any:  # noqa: ANN401  (confluent_kafka has no types)
    try:
        import confluent_kafka  # noqa: PLC0415  (an extra)
    except ImportError:
        raise InvalidValue(
            '--kafka needs confluent-kafka, which is not installed: pip install "gantrymq[kafka]"'
        ) from None
    return confluent_kafka


def _consumer(servers: str, group: str = GROUP) -> Any:  # noqa: ANN401
    return _client().Consumer({
        "bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False,
        "auto.offset.reset": "error", "enable.partition.eof": True,
        "isolation.level": "read_committed",
    })  # fmt: skip


def kafka_items(servers: str, topics: Collection[str]) -> dict[Queue, tuple[int, int]]:
    """Return the partitions of topics and the offsets that they have.

    Raises:
        InvalidValue: no topic was named, or one does not exist.
        KafkaError: nobody answers.
    """
    if not topics:
        raise InvalidValue("--kafka needs --topic")
    kafka = _client()
    consumer = _consumer(servers)
    found: dict[Queue, tuple[int, int]] = {}
    try:
        for topic in topics:
            known = consumer.list_topics(topic, timeout=ANSWER_S).topics[topic]
            if known.error is not None or not known.partitions:
                raise InvalidValue(f"Kafka has no topic {topic}: {known.error}")
            for partition in known.partitions:
                place = kafka.TopicPartition(topic, partition)
                low, high = consumer.get_watermark_offsets(place, timeout=ANSWER_S)
                found[Queue(topic, BROKER, partition)] = (low, high)
    except kafka.KafkaException as error:
        raise KafkaError(f"Kafka at {servers}: {error}") from None
    finally:
        consumer.close()
    return found


def kafka_committed(servers: str, group: str, queues: Collection[Queue]) -> dict[Queue, int]:
    """Return what a group of Kafka has committed.

    Raises:
        KafkaError: nobody answers.
    """
    kafka = _client()
    consumer = _consumer(servers, group)
    try:
        asked = [kafka.TopicPartition(queue.topic, queue.queue_id) for queue in queues]
        answers = consumer.committed(asked, timeout=ANSWER_S)
        return {
            Queue(one.topic, BROKER, one.partition): one.offset
            for one in answers
            if one.offset >= 0
        }
    except kafka.KafkaException as error:
        raise KafkaError(f"Kafka at {servers}, group {group}: {error}") from None
    finally:
        consumer.close()


class KafkaItems(NamedTuple):
    """Reads partitions."""

    servers: str

    def batches(self, item: tuple[Queue, int, int, Queue]) -> Iterator[Any]:
        """Yield the messages of a partition as rows of the sink.

        Raises:
            KafkaError: they cannot be read.
        """
        source, begin, end, target = item
        kafka, position, clock = _client(), begin, SystemClock()
        consumer = _consumer(self.servers)
        try:
            consumer.assign([kafka.TopicPartition(source.topic, source.queue_id, begin)])
            late_at = clock.monotonic() + ANSWER_S
            while position < end:
                # Returns when so many are there or the time is over: offsets may have gaps.
                records = consumer.consume(min(BATCH_ROWS, end - position), timeout=CONSUME_S)
                if not records:
                    if clock.monotonic() > late_at:
                        raise KafkaError(f"{source}: nothing came from offset {position} on")
                    continue
                late_at = clock.monotonic() + ANSWER_S
                rows = []
                for record in records:
                    error = record.error()
                    if error is not None and error.code() == kafka.KafkaError._PARTITION_EOF:
                        position = max(position, record.offset())
                    elif error is not None:
                        raise KafkaError(f"{source} at {position}: {error}")
                    elif record.offset() < end:
                        rows.append(self._row(record, source, target))
                        position = record.offset() + 1
                    else:
                        position = end
                if rows:
                    yield sink_batch(rows)
        finally:
            consumer.close()

    @staticmethod
    def _row(record: Any, source: Queue, target: Queue) -> dict[str, Any]:  # noqa: ANN401
        headers = {
            name: value.decode(errors="replace")
            for name, value in record.headers() or ()
            if value is not None
        }
        _kind, at_ms = record.timestamp()
        key, value = record.key(), record.value()
        if not value:
            # A message has a body here; this one says that it had none, or a null.
            headers[NO_VALUE] = "true" if value is None else "empty"
        return {
            "topic": target.topic, "body": value or b"\0", "tags": None,
            "keys": None if key is None else key.decode(errors="replace"), "flag": 0,
            "queueId": target.queue_id, "brokerName": target.broker,
            "properties": {
                **headers, ORIGIN_TOPIC: source.topic,
                ORIGIN_QUEUE: f"{BROKER}:{source.queue_id}", ORIGIN_OFFSET: str(record.offset()),
                ORIGIN_BORN: str(at_ms), ORIGIN_STORED: str(at_ms),
            },
        }  # fmt: skip
