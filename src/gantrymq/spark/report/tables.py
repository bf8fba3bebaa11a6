"""The tables of a report as Parquet files, so that they can be joined with anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.spark.report.values import Report, Row


def write_tables(report: Report, directory: Path) -> list[Path]:
    """Write each table as `NAME.parquet`, and the checks as `checks.parquet`; return the files."""
    import pyarrow as pa  # noqa: PLC0415  (of the extra `spark`)
    from pyarrow import parquet  # noqa: PLC0415

    directory.mkdir(parents=True, exist_ok=True)
    checks: list[Row] = [
        {"name": check.name, "passed": check.passed, "said": check.said} for check in report.checks
    ]
    written = []
    for name, rows in {**report.tables, "checks": checks}.items():
        if not rows:
            continue
        path = directory / f"{name.replace(' ', '_')}.parquet"
        parquet.write_table(pa.Table.from_pylist(rows), path)
        written.append(path)
    return written
