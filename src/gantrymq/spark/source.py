"""The format `rocketmq` as Spark sees it: one class that makes readers and writers.

Spark's method names are kept as it calls them, parameters included: some are passed by name.
Imported by every planning worker, so nothing heavy is imported with it.

`pushFilters` is not overridden, on purpose: in Spark up to 4.3 two queries over one DataFrame get
each other's filters, and so wrong rows. Columns are chosen by a schema, rows by options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from gantrymq.errors import InvalidValue
from gantrymq.spark.options import Positions, read_sink_options, read_source_options
from gantrymq.spark.reading import BatchReader
from gantrymq.spark.schema import default_schema, wanted_columns

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
    )
    from pyspark.sql.types import StructType


class RocketMQSource(DataSource):
    """Topics of RocketMQ, over the wire or out of store directories."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "rocketmq"

    def schema(self) -> str:
        """Return the columns of a read that names none."""
        return default_schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what a batch is read with.

        Raises:
            InvalidValue: options or columns that cannot be; all of the options are named.
        """
        if str(self.options.get("commitOffsets", "")).lower() == "true":
            raise InvalidValue("commitOffsets is for streams: a batch is no progress of a group")
        return BatchReader(read_source_options(self.options), wanted_columns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return what a stream is read with.

        Raises:
            InvalidValue: options or columns that cannot be; all of the options are named.
        """
        from gantrymq.spark.stream import StreamReader  # noqa: PLC0415

        options = read_source_options(self.options)
        if options.ending != Positions("latest"):
            raise InvalidValue(
                "endingOffsets, endingTimestamp and the like are for batches: a stream has no end; "
                "with trigger(availableNow=True) it ends where the topic ends when it starts"
            )
        return StreamReader(options, wanted_columns(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return what a DataFrame is written with.

        Raises:
            InvalidValue: options or columns that cannot be, or mode("overwrite").
        """
        from gantrymq.spark.rows import check_schema  # noqa: PLC0415
        from gantrymq.spark.sink import BatchWriter  # noqa: PLC0415

        if overwrite:
            raise InvalidValue('a topic cannot be overwritten: write with mode("append")')
        options = read_sink_options(self.options)
        check_schema(schema, options)
        return BatchWriter(options)

    def streamWriter(
        self,
        schema: StructType,
        overwrite: bool,
    ) -> DataSourceStreamArrowWriter:
        """Return what micro-batches are written with.

        Raises:
            InvalidValue: options or columns that cannot be.
        """
        from gantrymq.spark.rows import check_schema  # noqa: PLC0415
        from gantrymq.spark.sink import StreamWriter  # noqa: PLC0415

        options = read_sink_options(self.options)
        check_schema(schema, options)
        return StreamWriter(options)
