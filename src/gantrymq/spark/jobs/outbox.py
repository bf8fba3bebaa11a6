"""Sending from a job so that every message is sent once, also if the job is killed and run again.

What is sent is cut into items: the messages of one source queue, in their order. An item has a
number and each of its messages a number in it, and both go along as a property (`places.MARK`).
A state directory has the name of the run, the moment it began, and a file for each item that is
done. A run that is started again leaves those out; of the others it first looks at the ends of the
target queues, from the moment on at which the run began, and sends only what is not there.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from gantrymq.clock import SystemClock
from gantrymq.errors import InvalidValue
from gantrymq.spark.jobs.log_scan import answers
from gantrymq.spark.options import read_sink_options
from gantrymq.spark.places import Place
from gantrymq.spark.sink import write_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gantrymq.spark.jobs.job import Context

COLUMNS: Final = "item int, sent long"
BATCH_ROWS: Final = 2000
STATE_NAME: Final = "state.json"
WAIT_MAX_S: Final = 3600.0
"""Longest pause that a speed of its own makes between two messages."""


class RunState(msgspec.Struct, rename="camel"):
    """What a state directory knows of its run."""

    job: str
    run: str
    began_ms: int
    digest: str


class State:
    """A state directory."""

    def __init__(self, path: Path, known: RunState, *, resumed: bool) -> None:
        self.path = path
        self.known = known
        self.is_resumed = resumed

    @classmethod
    def open(cls, directory: str, job: str, items: object, now_ms: int) -> State:
        """Begin a run, or go on with the one that was begun here.

        Raises:
            InvalidValue: that one had something else to send.
        """
        path = Path(directory).absolute()
        digest = hashlib.sha256(msgspec.json.encode(items, order="deterministic")).hexdigest()
        place = path / STATE_NAME
        if place.exists():
            known = msgspec.json.decode(place.read_bytes(), type=RunState)
            if (known.job, known.digest) != (job, digest):
                raise InvalidValue(
                    f"{path} is of a {known.job} with other messages or another target; name "
                    "another --state, or remove it to begin anew"
                )
            return cls(path, known, resumed=True)
        path.mkdir(parents=True, exist_ok=True)
        known = RunState(job, f"{job}-{secrets.token_hex(6)}", now_ms, digest)
        write_whole(place, msgspec.json.encode(known))
        return cls(path, known, resumed=False)

    def done(self) -> set[int]:
        """Return the items that are sent for good."""
        return {int(path.stem) for path in self.path.glob("*.done")}


def write_whole(place: Path, data: bytes) -> None:
    """Write a file, forced, whole or not at all."""
    work = place.with_name(f".{place.name}.{os.getpid()}.making")
    with work.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    work.replace(place)


class Pace(NamedTuple):
    """How fast messages are sent; without a rate or a speed as fast as they can be."""

    rate: float | None = None
    """Messages a second, of each task."""
    speed: float | None = None
    """Times the pace at which they were stored."""

    def paced(self, batches: Iterator[Any], times_ms: Callable[[Any], int]) -> Iterator[Any]:
        """Yield batches when they are due; `times_ms` says when a batch was stored."""
        clock, wait = SystemClock(), threading.Event().wait
        began, first_ms, count = clock.monotonic(), None, 0
        for batch in batches:
            due = 0.0
            if self.rate is not None:
                due = count / self.rate
            if self.speed is not None:
                at_ms = times_ms(batch)
                first_ms = at_ms if first_ms is None else first_ms
                due = max(due, (at_ms - first_ms) / 1000 / self.speed)
            late = began + due - clock.monotonic()
            if late > 0:
                wait(min(late, WAIT_MAX_S))
            count += batch.num_rows
            yield batch


class ItemSource(Protocol):
    """Gives the rows of an item as batches with the columns of the sink; can be sent to a task."""

    def batches(self, item: Any) -> Iterator[Any]:  # noqa: ANN401  (each job has its own)
        """Yield the batches."""
        ...


@dataclass(frozen=True)
class SendTask:
    """Sends items."""

    sink: dict[str, str]
    run: str
    began_ms: int
    is_resumed: bool
    state: str
    source: ItemSource

    def __call__(self, item: tuple[int, Any]) -> Iterator[tuple[object, ...]]:
        """Send an item, note that it is sent, and yield how many messages that were."""
        from pyspark import TaskContext  # noqa: PLC0415

        number, what = item
        task = TaskContext.get()
        attempt = 0 if task is None else task.attemptNumber()
        place = Place(
            self.run, number, 0, max(attempt, int(self.is_resumed)),
            is_stream=False, begun_ms=self.began_ms,
        )  # fmt: skip
        options = read_sink_options(self.sink | {"level": "idempotent"})
        written = write_rows(options, place, self.source.batches(what))
        write_whole(Path(self.state) / f"{number}.done", str(written.rows).encode())
        yield number, written.rows


def send_items(
    context: Context,
    state: State,
    items: Sequence[tuple[int, Any]],
    sink: dict[str, str],
    source: ItemSource,
) -> int:
    """Send all items that are not done; return how many messages were sent now."""
    done = state.done()
    left = [item for item in items if item[0] not in done]
    if not left:
        return 0
    read_sink_options(sink)  # says on the driver what is wrong with it
    task = SendTask(
        sink, state.known.run, state.known.began_ms, state.is_resumed, str(state.path), source
    )
    with context.progress(state.known.job):
        rows = answers(context, left, task, COLUMNS)
    return sum(row.sent for row in rows)
