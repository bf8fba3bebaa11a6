"""The columns of a message: their names and types in Spark, and where the kernel has them.

A schema that the user gives chooses columns, and nothing that is not asked for is made: it is the
one pruning that Spark's Python sources have. Arrow types must be exactly those that Spark makes of
its own, or it refuses the batch.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class ColumnKind(NamedTuple):
    """A column that can be asked for."""

    spark_type: str
    """As `DataType.simpleString` has it."""
    source: str | None
    """The kernel's column that it is made of; None for those that a slice knows."""


COLUMNS: Final[dict[str, ColumnKind]] = {
    "topic": ColumnKind("string", None),
    "brokerName": ColumnKind("string", None),
    "queueId": ColumnKind("int", None),
    "queueOffset": ColumnKind("bigint", "queue_offset"),
    "physicalOffset": ColumnKind("bigint", "log_offset"),
    "storeSize": ColumnKind("int", "store_size"),
    "body": ColumnKind("binary", "body"),
    "bodyCrc": ColumnKind("int", "body_crc"),
    "flag": ColumnKind("int", "flag"),
    "sysFlag": ColumnKind("int", "sys_flag"),
    "bornTimestamp": ColumnKind("timestamp", "born_timestamp"),
    "storeTimestamp": ColumnKind("timestamp", "store_timestamp"),
    "bornHost": ColumnKind("string", "born_host"),
    "storeHost": ColumnKind("string", "store_host"),
    "reconsumeTimes": ColumnKind("int", "reconsume_times"),
    "preparedTransactionOffset": ColumnKind("bigint", "prepared_offset"),
    "tags": ColumnKind("string", "tags"),
    "keys": ColumnKind("string", "keys"),
    "uniqKey": ColumnKind("string", "unique_key"),
    "msgId": ColumnKind("string", "message_id"),
    "properties": ColumnKind("string", "properties"),
    "propertiesMap": ColumnKind("map<string,string>", "properties"),
}
DEFAULT_COLUMNS: Final = (
    "topic", "brokerName", "queueId", "queueOffset", "storeTimestamp", "bornTimestamp", "flag",
    "tags", "keys", "body", "properties",
)  # fmt: skip


class WantedColumn(NamedTuple):
    """A column of the schema that was asked for."""

    name: str
    nullable: bool


def default_schema() -> str:
    """Return the schema of a read that asks for none, as DDL."""
    return ddl(DEFAULT_COLUMNS)


def ddl(names: tuple[str, ...]) -> str:
    """Return columns as DDL."""
    return ", ".join(f"{name} {COLUMNS[name].spark_type}" for name in names)


def wanted_columns(schema: StructType) -> tuple[WantedColumn, ...]:
    """Return the columns that a schema asks for.

    Raises:
        InvalidValue: a name is unknown, comes twice, or has another type.
    """
    found: dict[str, WantedColumn] = {}
    for field in schema.fields:
        kind = COLUMNS.get(field.name)
        if kind is None:
            near = get_close_matches(field.name, COLUMNS, 1, 0.5)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InvalidValue(
                f"the schema asks for the column {field.name!r}, which messages do not have{hint} "
                f"The columns are {', '.join(COLUMNS)}"
            )
        given = field.dataType.simpleString()
        if given != kind.spark_type:
            raise InvalidValue(
                f"the schema asks for {field.name} as {given}: it is {kind.spark_type}, cast it "
                "after the load"
            )
        if field.name in found:
            raise InvalidValue(f"the schema asks for the column {field.name} twice")
        found[field.name] = WantedColumn(field.name, field.nullable)
    return tuple(found.values())
