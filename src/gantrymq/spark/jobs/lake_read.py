"""The messages of a lake as a DataFrame: the files that the manifest names, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue
from gantrymq.spark.jobs.key_filter import may_have
from gantrymq.spark.jobs.lake import DATA, KEYS, LAKE_COLUMNS, Lake, LakeFile
from gantrymq.spark.positions import milliseconds
from gantrymq.spark.schema import ddl

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

LAKE_SCHEMA: Final = f"{ddl(LAKE_COLUMNS)}, topic string, day string"


def lake_frame(
    spark: SparkSession, lake: Lake, files: Sequence[LakeFile] | None = None
) -> DataFrame:
    """Return the messages of a lake, or of some of its files."""
    chosen = [one.path for one in (lake.files() if files is None else files) if one.path]
    if not chosen:
        return spark.createDataFrame([], LAKE_SCHEMA)
    reader = spark.read.schema(LAKE_SCHEMA).option("basePath", str(lake.root / DATA))
    return reader.parquet(*(str(lake.root / path) for path in chosen))


def chosen_files(
    lake: Lake,
    *,
    topics: Collection[str] = (),
    from_ms: int | None = None,
    to_ms: int | None = None,
    key: str | None = None,
) -> list[LakeFile]:
    """Return the files that may have messages of topics, a time and a key."""
    return [
        one
        for one in lake.files()
        if one.path
        and (not topics or one.topic in topics)
        and (from_ms is None or one.max_store_ms >= from_ms)
        and (to_ms is None or one.min_store_ms < to_ms)
        and (key is None or _may_have(lake.root, one, key))
    ]


def _may_have(root: Path, one: LakeFile, key: str) -> bool:
    path = root / KEYS / f"{one.path.rpartition('/')[2].removesuffix('.parquet')}.bloom"
    try:
        return may_have(path.read_bytes(), key)
    except (FileNotFoundError, InvalidValue):
        return True  # without its filter the file itself must be looked at


def time_ms(text: str | None, option: str) -> int | None:
    """Return a time that an option names; None if it was not given.

    Raises:
        InvalidValue: it is no time.
    """
    return None if text is None else milliseconds(text, f"--{option}")
