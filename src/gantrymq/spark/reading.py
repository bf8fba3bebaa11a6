"""A batch read, and the reading of one slice, which streams do as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from gantrymq.spark.slices import Pack, pack

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from gantrymq.spark.options import SourceOptions
    from gantrymq.spark.schema import WantedColumn
    from gantrymq.spark.slices import Slice


class BatchReader(DataSourceReader):
    """Reads what is there when it is planned: evaluating a DataFrame again reads the same."""

    def __init__(self, options: SourceOptions, columns: tuple[WantedColumn, ...]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        """Return the slices; called on the driver."""
        from gantrymq.spark.backend import open_backend  # noqa: PLC0415
        from gantrymq.spark.planning import batch_slices  # noqa: PLC0415

        backend = open_backend(self._options)
        try:
            slices = batch_slices(self._options, backend)
            return pack(slices, slices_min=self._options.slices_min)
        finally:
            backend.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a slice; called on executors."""
        yield from read_pack(self._options, self._columns, partition)


def read_pack(
    options: SourceOptions, columns: tuple[WantedColumn, ...], partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of what a task reads.

    Raises:
        GantryError: it cannot be read.
    """
    if isinstance(partition, Pack):  # Spark makes up another one where there is none
        for part in partition.slices:
            yield from read_slice(options, columns, part)


def read_slice(
    options: SourceOptions, columns: tuple[WantedColumn, ...], part: Slice
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a slice.

    Raises:
        DataLoss: something of it is gone, and that matters.
        GantryError: it cannot be read.
    """
    # Workers start often: what reading needs is imported where it reads.
    from gantrymq.spark.batches import Batches  # noqa: PLC0415
    from gantrymq.spark.filters import filter_of  # noqa: PLC0415
    from gantrymq.spark.planning import losses_of  # noqa: PLC0415

    row_filter = filter_of(options)
    batches = Batches(
        columns, row_filter, decompress=options.decompress, verify_crc=options.verify_crc
    )
    if options.reads_broker:
        from gantrymq.spark.broker_reading import BrokerSlice  # noqa: PLC0415

        yield from BrokerSlice(part, options, batches, losses_of(options)).read(row_filter)
        return
    from gantrymq.spark.store_reading import StoreSlice, store_at  # noqa: PLC0415

    (path,) = (store for store in options.stores if store.broker == part.broker)
    store = store_at(path, recovered=part.is_recovered)
    yield from StoreSlice(part, store, batches, losses_of(options)).read(row_filter)
