"""The jobs of the pipeline; each is a module with a `JOB`, and can be given to `spark-submit`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gantrymq.spark.jobs.job import Job

JOB_MODULES: Final[dict[str, tuple[str, str]]] = {
    "archive": ("archive", "topics to a Parquet lake, exactly once, with a manifest"),
    "compact": ("compact", "small files of a lake become large ones"),
    "replay": ("replay", "a lake, or a part of it, back to a topic, in order"),
    "audit": ("audit", "every record of a store checked: check sums, gaps, sizes"),
    "rebuild-cq": ("rebuild_cq", "consume queues made again from the commit log"),
    "rebuild-index": ("rebuild_index", "index files made again from the commit log"),
    "search": ("search", "messages by key, text, JSON path or time, in a lake and live"),
    "dlq": ("dlq", "dead letters: causes, a redrive plan, and sending them again"),
    "lag": ("lag", "how far groups are behind, in messages, bytes and seconds"),
    "latency": ("latency", "percentiles from birth to store, by topic, client and minute"),
    "trace": ("trace", "one row for each message's life, from the trace topic"),
    "window": ("window", "counts and sums in windows of time, with late messages"),
    "dedup": ("dedup", "a topic without the messages that were sent twice"),
    "delay": ("delay", "delayed messages: what is due when, what is overdue"),
    "retention": ("retention", "what is deleted when, who would lose data, how it grows"),
    "migrate": ("migrate", "topics and group offsets from another system"),
}
"""Name -> module and a line of help; `load_job` brings the rest."""


def load_job(name: str) -> Job[Any]:
    """Return a job by its name.

    Raises:
        KeyError: there is none.
    """
    module, _summary = JOB_MODULES[name]
    job: Job[Any] = import_module(f"gantrymq.spark.jobs.{module}").JOB
    return job
