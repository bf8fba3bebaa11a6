"""The writers, as Spark calls them: rows on executors, commit and abort on the driver.

Spark makes a new writer for every commit, so whatever a commit needs is in the messages that tasks
hand over. A commit may be called again for the same batch after a restart.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from gantrymq.client.results import TransactionState
from gantrymq.clock import SystemClock
from gantrymq.spark.link import link_to
from gantrymq.spark.places import Place, group_of, here

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from gantrymq.blocking.call import Call
    from gantrymq.model.queue import MessageQueue
    from gantrymq.spark.options import SinkOptions
    from gantrymq.spark.sending import Sender
    from gantrymq.spark.transactional import Handle

_NO_ROWS: Final = 0


@dataclass
class Written(WriterCommitMessage):
    """What a task has done."""

    place: Place
    rows: int = _NO_ROWS
    begins: dict[MessageQueue, int] = field(default_factory=dict)
    handles: list[Handle] = field(default_factory=list)


def sender_of(options: SinkOptions, place: Place) -> Sender:
    """Return what sends the rows of a task at a level."""
    link = link_to(options.connection)
    if options.level == "idempotent":
        from gantrymq.spark.idempotent import IdempotentSender  # noqa: PLC0415

        return IdempotentSender(link, options, place)
    if options.level == "transactional":
        from gantrymq.spark.transactional import HalfSender  # noqa: PLC0415

        return HalfSender(link, options, place)
    from gantrymq.spark.sending import Sender  # noqa: PLC0415

    return Sender(link, options, place)


def write_rows(options: SinkOptions, place: Place, batches: Iterator[pa.RecordBatch]) -> Written:
    """Send the rows of a task; return when every one is stored.

    Raises:
        GantryError: one is not, and the task has failed.
    """
    from gantrymq.spark.rows import rows_of  # noqa: PLC0415

    sender = sender_of(options, place)
    thread = sender.link.thread
    coming: Call[None] | None = None
    try:
        for batch in batches:
            rows = list(rows_of(batch, options))
            if coming is not None:
                thread.wait(coming)
            coming = thread.begin(sender.add(rows))
        if coming is not None:
            thread.wait(coming)
        coming = None
        thread.call(sender.finish())
    finally:
        if coming is not None:
            coming.cancel()
    return Written(place, sender.sent, sender.begins, getattr(sender, "handles", []))


def all_handles(messages: Sequence[WriterCommitMessage | None]) -> list[Handle]:
    """Return the half messages that tasks have reported."""
    return [
        handle for message in messages if isinstance(message, Written) for handle in message.handles
    ]


class BatchWriter(DataSourceArrowWriter):
    """Writes a DataFrame once."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._job = f"job-{secrets.token_hex(8)}"
        self._begun_ms = SystemClock().now_ms()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of a task; called on executors."""
        return write_rows(self._options, here(self._job, self._begun_ms), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make the rows visible, if they are not yet."""
        if self._options.level == "transactional":
            end_all(self._options, all_handles(messages), TransactionState.COMMIT)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Take back what can be taken back."""
        if self._options.level == "transactional":
            end_all(self._options, all_handles(messages), TransactionState.ROLLBACK)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of a task; called on executors."""
        return write_rows(self._options, here("stream", 0), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Make the rows of a batch visible, and note that they need not be looked for again."""
        written = [message for message in messages if isinstance(message, Written)]
        if not written or self._options.level == "at_least_once":
            return
        link, query = link_to(self._options.connection), written[0].place.query
        if self._options.level == "transactional":
            from gantrymq.spark.transactional import Endings, check_handles  # noqa: PLC0415

            handles = all_handles(messages)
            check_handles(handles)
            link.run(Endings(link, self._options).commit_batch(query, batchId, handles))
            return
        from gantrymq.spark.tails import Tails  # noqa: PLC0415

        begins: dict[MessageQueue, int] = {}
        for message in written:
            for queue, begin in message.begins.items():
                begins[queue] = min(begins.get(queue, begin), begin)
        tails = Tails(link, group_of(query))
        for queue, begin in sorted(begins.items()):
            link.run(tails.set_base(queue, begin))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Take back what can be taken back."""
        if self._options.level == "transactional":
            end_all(self._options, all_handles(messages), TransactionState.ROLLBACK)


def end_all(options: SinkOptions, handles: Sequence[Handle], state: TransactionState) -> None:
    """Commit or roll back half messages."""
    from gantrymq.spark.transactional import Endings, check_handles  # noqa: PLC0415

    if handles:
        check_handles(handles)
        link = link_to(options.connection)
        link.run(Endings(link, options).end(handles, state))
