"""The stream reader: which offsets a micro-batch takes, and progress told to the brokers.

What Spark calls, and when, differs from what one would think (`docs/internals/spark.md`):

- `initialOffset` may be called several times and must always say the same;
- `latestOffset(start, limit)` is called when the batch that ended at `start` is done, so that is
  where progress is committed: Spark's own `commit` comes a batch later, and for the last batch of
  an available-now run not at all. Spark 4.1 calls it without arguments;
- a batch may be planned again after a crash, from the same two offsets, and must be the same rows.

Runs in a process of its own on the driver; pickled, without its backend, for the executors.
"""

from __future__ import annotations

import logging
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from gantrymq.clock import SystemClock
from gantrymq.errors import GantryError
from gantrymq.spark import limits
from gantrymq.spark.losses import DataLoss
from gantrymq.spark.offsets import OffsetJson, Offsets, decode, encode
from gantrymq.spark.options import Positions
from gantrymq.spark.reading import read_pack
from gantrymq.spark.slices import Span, pack

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )

    HAS_LIMITS = True
except ImportError:  # Spark 4.1 has none of these, and asks for none
    HAS_LIMITS = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in for a class that is not there."""


if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from gantrymq.spark.backend import Backend, Bounds
    from gantrymq.spark.options import SourceOptions
    from gantrymq.spark.progress import GroupProgress
    from gantrymq.spark.schema import WantedColumn
    from gantrymq.spark.slices import Queue

logger = logging.getLogger(__name__)
_CLOCK = SystemClock()
IDLE_S: Final = 0.1
"""Between two questions whether there is anything new, when there was nothing."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what arrives, batch by batch."""

    def __init__(self, options: SourceOptions, columns: tuple[WantedColumn, ...]) -> None:
        self._options = options
        self._columns = columns
        self._backend: Backend | None = None
        self._progress: GroupProgress | None = None
        self._initial: Offsets | None = None
        self._latest: Offsets = {}
        self._planned: Offsets = {}  # for Spark 4.1, which does not say where a batch begins
        self._is_bounded = False
        self._target: Offsets | None = None
        self._waits_since = _CLOCK.monotonic()
        self._is_idle = False
        self._asked_at = 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Leave files and connections where they are: executors read, and do not plan."""
        return {**self.__dict__, "_backend": None, "_progress": None}

    # -- offsets ---------------------------------------------------------------------------------

    def initialOffset(self) -> OffsetJson:
        """Return where a query without a checkpoint begins."""
        if self._initial is None:
            options = self._options
            if options.pin_path:
                from gantrymq.spark.pinning import pinned  # noqa: PLC0415

                self._initial = pinned(options.pin_path, self._starting)
            else:
                self._initial = self._starting()
        return encode(self._initial)

    def _starting(self) -> Offsets:
        from gantrymq.spark.positions import resolve  # noqa: PLC0415

        starting = self._options.starting or Positions("latest")
        bounds = self._planner().bounds()
        return resolve(starting, bounds, self._planner(), "startingOffsets")

    def prepareForTriggerAvailableNow(self) -> None:
        """Take no more than what is there when the first batch is planned."""
        self._is_bounded = True

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return one of the limits; `latestOffset` looks at all of them."""
        options = self._options
        if options.trigger_rows_max:
            return ReadMaxRows(options.trigger_rows_max)
        if options.trigger_bytes_max:
            return ReadMaxBytes(options.trigger_bytes_max)
        if options.trigger_rows_min and not self._is_bounded:
            return ReadMinRows(options.trigger_rows_min)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> OffsetJson | None:
        """Return the end of every queue, as it was seen last: lag is what lies before it."""
        return encode(self._latest) if self._latest else None

    def latestOffset(self, start: OffsetJson | None = None, limit: object = None) -> OffsetJson:
        """Return where the next batch ends."""
        knows_begin = True
        if start is None:
            # Spark 4.1 after a restart: nobody says where the query is, so no limit can be kept.
            knows_begin = bool(self._planned)
            begins = self._planned or decode(self.initialOffset())
        else:
            begins = decode(start)
            self._commit(begins)
        self._pace()
        bounds = self._planner().bounds(missing_ok=self._options.on_loss != "fail")
        self._latest = {queue: one.most for queue, one in bounds.items()}
        spans = self._spans(begins, bounds)
        is_limited = knows_begin and not (HAS_LIMITS and isinstance(limit, ReadAllAvailable))
        ends = self._limited(spans, limit if is_limited else None, is_limited=is_limited)
        self._planned = {**begins, **ends}
        self._is_idle = self._planned == begins
        return encode(self._planned)

    def _pace(self) -> None:
        """Wait a moment if there was nothing just now: Spark would ask a hundred times a second."""
        now = _CLOCK.monotonic()
        if self._is_idle and now < self._asked_at + IDLE_S:
            Event().wait(self._asked_at + IDLE_S - now)
        self._asked_at = _CLOCK.monotonic()

    def _spans(self, begins: Offsets, bounds: dict[Queue, Bounds]) -> dict[Queue, Span]:
        """Return what each queue has to read; a new queue gets its begin first."""
        target = self._fixed_target(bounds)
        spans = {}
        for queue, (least, most) in bounds.items():
            if queue not in begins:
                # From the next batch on its begin is in the checkpoint, and retention cannot move
                # it any more without somebody noticing.
                spans[queue] = Span(least, least)
                continue
            end = most if target is None else min(target.get(queue, most), most)
            begin = begins[queue]
            if begin > most:
                end = self._went_back(queue, begin, most)
                spans[queue] = Span(end, end)
            else:
                spans[queue] = Span(begin, max(begin, end))
        self._check_missing(begins, bounds)
        return spans

    def _fixed_target(self, bounds: dict[Queue, Bounds]) -> Offsets | None:
        if not self._is_bounded:
            return None
        if self._target is None:
            self._target = {queue: one.most for queue, one in bounds.items()}
        return self._target

    def _went_back(self, queue: Queue, begin: int, most: int) -> int:
        from gantrymq.spark.planning import losses_of  # noqa: PLC0415

        losses_of(self._options).lost(
            queue, most, begin,
            f"the queue ends at {most}, before what was read of it: the topic was deleted and made "
            "again, or the broker lost messages",
        )  # fmt: skip
        return most

    def _check_missing(self, begins: Offsets, bounds: dict[Queue, Bounds]) -> None:
        # Of a queue at offset 0 nothing was read, and there may be nothing of it yet.
        missing = sorted(queue for queue in set(begins).difference(bounds) if begins[queue])
        if not missing:
            return
        listed = ", ".join(map(str, missing[:8]))
        if self._options.on_loss == "fail":
            raise DataLoss(
                f"queues that this query reads are gone: {listed}. Was a topic deleted, or is a "
                "broker down? With failOnDataLoss=warn the query waits for them at their offsets"
            )
        logger.warning("queues are gone, their offsets are kept: %s", listed)

    def _limited(self, spans: dict[Queue, Span], limit: object, *, is_limited: bool) -> Offsets:
        options = self._options
        rows = sum(span.end - span.begin for span in spans.values())
        if not is_limited:
            return limits.ends_of(spans)
        least = getattr(limit, "min_rows", None) or options.trigger_rows_min
        is_early = _CLOCK.monotonic() - self._waits_since < options.trigger_delay_s
        if least and rows < least and is_early and not self._is_bounded:
            return {queue: span.begin for queue, span in spans.items()}
        if rows:
            self._waits_since = _CLOCK.monotonic()
        rows_max = getattr(limit, "max_rows", None) or options.trigger_rows_max
        bytes_max = getattr(limit, "max_bytes", None) or options.trigger_bytes_max
        if rows_max:
            spans = limits.share_rows(spans, rows_max)
        if bytes_max:
            spans = limits.share_bytes(spans, bytes_max, self._planner())
        return limits.ends_of(spans)

    # -- a batch ---------------------------------------------------------------------------------

    def partitions(self, start: OffsetJson, end: OffsetJson) -> list[InputPartition]:
        """Return the slices of a batch."""
        from gantrymq.spark.planning import checked_begin, losses_of, slices_of  # noqa: PLC0415

        begins, ends, losses = decode(start), decode(end), losses_of(self._options)
        self._planned = ends
        bounds = self._planner().bounds(missing_ok=True)
        spans = {}
        for queue, stop in ends.items():
            begin = begins.get(queue, stop)
            if begin == stop:
                continue
            there = bounds.get(queue)
            if there is None:
                losses.lost(queue, begin, stop, "the queue is gone")
            elif stop < begin:
                # It began anew, which `latestOffset` has said; all of it is new.
                spans[queue] = Span(min(there.least, stop), stop)
            else:
                spans[queue] = Span(checked_begin(queue, begin, stop, there, losses), stop)
        slices = slices_of(self._options, self._planner(), spans, is_replayable=True)
        return pack(slices, slices_min=self._options.slices_min)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a slice; called on executors."""
        yield from read_pack(self._options, self._columns, partition)

    def commit(self, end: OffsetJson) -> None:
        """Tell the brokers how far the group is."""
        self._commit(decode(end))

    def stop(self) -> None:
        """End; not always called, so nothing depends on it."""
        if self._backend is not None:
            self._backend.close()
            self._backend = None

    def _commit(self, offsets: Offsets) -> None:
        """Tell the brokers how far the group is; a failure is logged, and made good later."""
        if not self._options.commits:
            return
        from gantrymq.spark.progress import GroupProgress  # noqa: PLC0415

        try:
            if self._progress is None:
                self._progress = GroupProgress(self._options.connection)
            self._progress.commit(offsets)
        except GantryError as error:
            logger.warning("progress is not committed, it is tried again: %s", error)

    def _planner(self) -> Backend:
        if self._backend is None:
            from gantrymq.spark.backend import open_backend  # noqa: PLC0415

            self._backend = open_backend(self._options)
        return self._backend
