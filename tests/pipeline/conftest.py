"""One Spark session for all tests of the pipeline in a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.pipeline import spark_session
from support.spark import QUICK_JAVA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """Return the session; two cores, and three attempts for a task."""
    return spark_session()


@pytest.fixture(autouse=True)
def quick_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every Java that a test starts be one that starts quickly."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", QUICK_JAVA)
