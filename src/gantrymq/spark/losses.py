"""Messages that should be there and are not: expired, cut off, damaged, or their topic is gone.

`failOnDataLoss` says what happens: `fail` ends the query with the queue and the offsets, `warn` and
`skip` go on behind them. With `lostRangesPath` each loss is also a JSON file, one for each range
with the range in its name: a range that is met twice is written once.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gantrymq.errors import GantryError

if TYPE_CHECKING:
    from gantrymq.spark.slices import Queue

logger = logging.getLogger(__name__)


class DataLoss(GantryError):
    """Messages of a range cannot be read any more."""


@dataclass(frozen=True)
class Losses:
    """What is done about messages that are not there."""

    policy: str = "fail"
    path: str = ""

    def lost(self, queue: Queue, begin: int, end: int, why: str) -> None:
        """Note that messages from `begin` to before `end` are gone.

        Raises:
            DataLoss: that is what the options ask for.
        """
        what = f"messages {begin} to {end} (exclusive) of {queue} cannot be read: {why}"
        if self.policy == "fail":
            raise DataLoss(f"{what}. To go on without them set failOnDataLoss to warn or skip")
        if self.policy == "warn":
            logger.warning("%s; going on behind them, as failOnDataLoss=warn says", what)
        if self.path:
            self._record(queue, begin, end, why)

    def _record(self, queue: Queue, begin: int, end: int, why: str) -> None:
        directory = Path(self.path.removeprefix("file://"))
        directory.mkdir(parents=True, exist_ok=True)
        row = {
            "topic": queue.topic,
            "brokerName": queue.broker,
            "queueId": queue.queue_id,
            "begin": begin,
            "end": end,
            "why": why,
        }
        topic = queue.topic.replace("/", "_")
        path = directory / f"{topic}-{queue.broker}-{queue.queue_id}-{begin}-{end}.json"
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(row) + "\n", encoding="utf-8")
        unfinished.replace(path)
