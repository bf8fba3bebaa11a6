"""Which task of which batch of which query is writing, and the mark that it puts on messages.

    SPK = query : partition : batch : number

Spark tells writers none of it, but the task's context does. The query is that of the checkpoint, so
a query that is started again goes on under the same name. A batch job has a name of its own, made
when it is planned, which all attempts of its tasks share.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MARK: Final = "SPK"
"""The property's name."""


class Place(NamedTuple):
    """A task."""

    query: str
    partition: int
    batch: int
    attempt: int
    is_stream: bool
    begun_ms: int
    """When the job was planned; only for batch jobs."""

    def mark(self, number: int) -> str:
        """Return what a message says about where it comes from."""
        return f"{self.query}:{self.partition}:{self.batch}:{number}"

    @property
    def group(self) -> str:
        """Return the consumer group under which the query's progress is kept."""
        return group_of(self.query)


def group_of(query: str) -> str:
    """Return the consumer group of a query's sink."""
    return f"spark-sink-{query}"


def here(job: str, begun_ms: int) -> Place:
    """Return the task that runs now."""
    from pyspark import TaskContext  # noqa: PLC0415 - only there in a task

    context = TaskContext.get()
    if context is None:
        return Place(job, 0, 0, 0, is_stream=False, begun_ms=begun_ms)
    query = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    return Place(
        query or job,
        context.partitionId(),
        int(batch or 0),
        context.attemptNumber(),
        bool(query),
        begun_ms,
    )
