"""Where a message that a job sends came from, as properties; and messages as rows of the sink."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gantrymq.wire.properties import decode_properties

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ORIGIN_TOPIC: Final = "ORIGIN_TOPIC"
ORIGIN_QUEUE: Final = "ORIGIN_QUEUE"
"""`broker:queue`."""
ORIGIN_OFFSET: Final = "ORIGIN_OFFSET"
ORIGIN_BORN: Final = "ORIGIN_BORN_MS"
ORIGIN_STORED: Final = "ORIGIN_STORE_MS"
SINK_NAMES: Final = ("body", "topic", "tags", "keys", "properties", "queueId", "brokerName", "flag")


def sink_schema() -> Any:  # noqa: ANN401  (pyarrow has no types)
    """Return the Arrow schema of the rows that are sent."""
    import pyarrow as pa  # noqa: PLC0415  (of the extra `spark`)

    return pa.schema([
        ("body", pa.binary()), ("topic", pa.string()), ("tags", pa.string()),
        ("keys", pa.string()), ("properties", pa.map_(pa.string(), pa.string())),
        ("queueId", pa.int32()), ("brokerName", pa.string()), ("flag", pa.int32()),
    ])  # fmt: skip


def sink_batch(rows: Sequence[Mapping[str, Any]]) -> Any:  # noqa: ANN401
    """Return rows as a batch."""
    import pyarrow as pa  # noqa: PLC0415

    schema = sink_schema()
    arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def origin_properties(row: Mapping[str, Any]) -> dict[str, str]:
    """Return a message's own properties, and those that say where it came from."""
    return {
        **decode_properties(row["properties"] or ""),
        ORIGIN_TOPIC: row["topic"],
        ORIGIN_QUEUE: f"{row['brokerName']}:{row['queueId']}",
        ORIGIN_OFFSET: str(row["queueOffset"]),
        ORIGIN_BORN: str(_ms(row["bornTimestamp"])),
        ORIGIN_STORED: str(_ms(row["storeTimestamp"])),
    }


def _ms(moment: Any) -> int:  # noqa: ANN401
    at_ms: int = round(moment.timestamp() * 1000)
    return at_ms
