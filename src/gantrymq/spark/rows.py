"""Rows of a DataFrame as messages: which columns say what."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gantrymq.client.outgoing import RESERVED
from gantrymq.errors import InvalidValue
from gantrymq.model.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from gantrymq.spark.options import SinkOptions

COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "body": ("binary", "string"),
    "topic": ("string",),
    "tags": ("string",),
    "keys": ("string", "array<string>"),
    "properties": ("map<string,string>",),
    "queueId": ("int", "bigint"),
    "brokerName": ("string",),
    "shardingKey": ("string",),
    "delayLevel": ("int", "bigint"),
    "deliverTimestamp": ("timestamp", "bigint"),
    "flag": ("int",),
}
"""What a row may have, and the types it may have it in."""


class Row(NamedTuple):
    """A message, and where it wants to go."""

    message: Message
    queue_id: int | None
    broker: str | None

    @property
    def is_delayed(self) -> bool:
        """Tell whether it is to be delivered later."""
        return bool(self.message.delay_level) or self.message.deliver_at_ms is not None


def check_schema(schema: StructType, options: SinkOptions) -> None:
    """Refuse a DataFrame that cannot be sent; called on the driver, before anything runs.

    Raises:
        InvalidValue: a column is missing, unknown, or of a type that cannot be.
    """
    for field in schema.fields:
        allowed = COLUMNS.get(field.name)
        if allowed is None:
            near = get_close_matches(field.name, COLUMNS, 1, 0.5)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InvalidValue(
                f"messages are made of {', '.join(COLUMNS)}; there is a column {field.name}{hint}"
            )
        given = field.dataType.simpleString()
        if given not in allowed:
            raise InvalidValue(
                f"the column {field.name} is {given}: cast it to {' or '.join(allowed)}"
            )
    names = set(schema.names)
    if "body" not in names:
        raise InvalidValue("there is no column body: a message has one, binary or string")
    if "topic" not in names and not options.topic:
        raise InvalidValue("where to? Give the option topic, or a column topic")
    if options.level != "at_least_once" and names & {"delayLevel", "deliverTimestamp"}:
        raise InvalidValue(
            f"the level {options.level} knows no delays: what a broker holds back cannot be "
            "looked for after a failure; use at_least_once, or leave out the column"
        )


def rows_of(batch: pa.RecordBatch, options: SinkOptions) -> Iterator[Row]:
    """Yield the messages of a batch.

    Raises:
        InvalidValue: a row makes none; says which value it is.
    """
    columns = {
        name: _values(name, batch.column(index)) for index, name in enumerate(batch.schema.names)
    }
    nothing = [None] * batch.num_rows
    for values in zip(*(columns.get(name, nothing) for name in COLUMNS), strict=True):
        yield _row(*values, options=options)


def _values(name: str, column: pa.Array) -> list[Any]:
    if name == "deliverTimestamp":
        import pyarrow as pa  # noqa: PLC0415 - writers start often

        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def _row(
    body: bytes | str | None,
    topic: str | None,
    tags: str | None,
    keys: str | list[str] | None,
    properties: list[tuple[str, str]] | None,
    queue_id: int | None,
    broker: str | None,
    sharding_key: str | None,
    delay_level: int | None,
    deliver_at_ms: int | None,
    flag: int | None,
    *,
    options: SinkOptions,
) -> Row:
    to = options.topic or topic
    if not to:
        raise InvalidValue("a row has no topic, and there is no option topic")
    if body is None:
        raise InvalidValue(f"a row for {to} has no body: leave it out, or give it one")
    words = keys.split() if isinstance(keys, str) else keys or ()
    message = Message(
        topic=to,
        body=body.encode() if isinstance(body, str) else body,
        tags=tags or options.tags or None,
        keys=tuple(word for word in words if word),
        # A map that came out of a topic has what the system wrote into it; it will again.
        properties={
            name: value for name, value in properties or () if name not in RESERVED and value
        },
        flag=flag or 0,
        delay_level=delay_level or 0,
        deliver_at_ms=deliver_at_ms,
        sharding_key=sharding_key,
    )
    return Row(message, queue_id, broker)
