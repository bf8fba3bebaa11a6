"""Readers that ask for more than a queue has: nothing is corrected in silence.

A group's offset lies behind the end of its queue after a failover that lost messages nobody had
acknowledged, after a restore, or when a topic was made anew. What happens then is the group's
choice (attribute `offset.beyond.end`, or the broker's `offsetBeyondEnd`):

    NEAREST    it goes on at the queue's end, as with Apache's broker
    EARLIEST   it reads everything again that there is
    STOP       its pulls of the queue are refused until an operator resets the offset

Each time it is said in the log and counted. A queue that was stopped stays so when it has grown
past the offset, which would skip what came in between; so that is saved. For the same reason a
broker that becomes master remembers where its queues ended: pulls of each group are held against
that, however far the queue has grown meanwhile, until one comes that lies before it.

Consumers commit what they have read from the old master, most often with that very pull. Such a
commit counts only as far as the queue reached: behind that lie messages which they have never
seen. It may send a group back that has read this log by way of a slave and never from here; that
brings messages twice, where the other way round acknowledged ones would never be delivered.

Owned by the event loop's task.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import msgspec

from gantrymq.broker.saved_state import SavedState
from gantrymq.errors import ContentError
from gantrymq.model.group import OffsetBeyondEnd
from gantrymq.wire.response_errors import SystemFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.broker.consumer_offsets import ConsumerOffsets
    from gantrymq.broker.groups import Groups
    from gantrymq.broker.settings import LiveSettings

log = logging.getLogger(__name__)

ATTRIBUTE: Final = "offset.beyond.end"
_POLICIES: Final = {policy.name: policy for policy in OffsetBeyondEnd}
_IN_WORDS: Final = {
    OffsetBeyondEnd.NEAREST: "it goes on at the end",
    OffsetBeyondEnd.EARLIEST: "it begins again with the first message",
    OffsetBeyondEnd.STOP: "it is stopped until its offset is reset",
}
STOPPED_MAX: Final = 100_000
PASSED_MAX: Final = 1_000_000


class Reader(NamedTuple):
    """A group's place in a queue."""

    group: str
    topic: str
    queue_id: int


class _File(msgspec.Struct):
    stopped: list[tuple[str, str, int, int]] = []


class OffsetGuard(SavedState):
    """Decides about offsets behind the end of a queue."""

    file_name: ClassVar[str] = "offsetStops.json"
    is_checked: ClassVar[bool] = True

    def __init__(self, groups: Groups, offsets: ConsumerOffsets, settings: LiveSettings) -> None:
        super().__init__()
        self._groups = groups
        self._offsets = offsets
        self._settings = settings
        self._stopped: dict[Reader, int] = {}
        """Where the queue ended when its reader was stopped."""
        self._ends: Mapping[tuple[str, int], int] = {}
        self._passed: set[Reader] = set()
        self.beyond_total = 0
        """Times that a reader was found behind the end of its queue."""
        self.sooner: Callable[[], object] = lambda: None
        """Has what was stopped saved."""

    @property
    def is_stopping(self) -> bool:
        """Tell whether any reader is stopped."""
        return bool(self._stopped)

    @property
    def is_watching(self) -> bool:
        """Tell whether pulls have to be shown to `check`."""
        return bool(self._stopped or self._ends)

    @property
    def stopped(self) -> Mapping[Reader, int]:
        """Return who is stopped, and where the queue ended then."""
        return self._stopped

    def lets_pass(self, reader: Reader) -> bool:
        """Tell whether a reader's pulls need not be shown to `check` any more."""
        return (reader.topic, reader.queue_id) not in self._ends or reader in self._passed

    def promoted(self, ends: Mapping[tuple[str, int], int]) -> None:
        """Note where the queues end with which this broker becomes master."""
        self._ends, self._passed = ends, set()
        self._offsets.believed = self._believed
        ahead = {
            Reader(group, topic, queue_id)
            for topic in {topic for topic, _ in ends}
            for group in self._offsets.groups_of(topic)
            for queue_id, offset in (self._offsets.all_of(group, topic) or {}).items()
            if offset > ends.get((topic, queue_id), offset)
        }
        if ahead:
            log.warning(
                "%d offsets of consumer groups lie behind the end of their queues, %s among them: "
                "this broker became master without messages that were read already",
                len(ahead),
                "; ".join(sorted(f"{one.group} in {one.topic}" for one in ahead)[:3]),
            )

    def check(self, reader: Reader, offset: int, least: int) -> int | None:
        """Look at a pull before the queue is read; return where it is sent instead, if it is.

        Raises:
            SystemFailure: the reader is stopped.
        """
        end = self._stopped.get(reader)
        if end is not None:
            if offset > end:
                raise _refused(reader, offset, end)
            del self._stopped[reader]
            self.want_saved()
            self.sooner()
            log.warning(
                "group %s reads queue %d of %s again, from %d", reader.group, reader.queue_id,
                reader.topic, offset,
            )  # fmt: skip
        end = self._ends.get((reader.topic, reader.queue_id))
        if end is None or reader in self._passed:
            return None
        if offset <= end:
            self.let_pass(reader)
            return None
        after = self.beyond(reader, offset, least, end)
        if self._offsets.find(reader.group, reader.topic, reader.queue_id) > after:
            # A member that begins later asks for it, and must not begin behind what is sent back.
            self._offsets.commit(reader.group, reader.topic, reader.queue_id, after)
        return after

    def let_pass(self, reader: Reader) -> None:
        """Believe a reader from now on: it has come by a place of this log, or was sent to one."""
        self._passed.add(reader)
        if len(self._passed) > PASSED_MAX:
            self._ends, self._passed = {}, set()
            self._offsets.believed = None

    def _believed(self, group: str, topic: str, queue_id: int, offset: int) -> int:
        """Return how much of a commit may be believed."""
        end = self._ends.get((topic, queue_id), offset)
        if offset <= end or Reader(group, topic, queue_id) in self._passed:
            return offset
        return end

    def beyond(self, reader: Reader, offset: int, least: int, end: int) -> int:
        """Return where a reader goes that is behind the end of its queue.

        Raises:
            SystemFailure: it is stopped.
        """
        self.beyond_total += 1
        policy = self._policy(reader.group)
        log.warning(
            "group %s asks for offset %d of queue %d of %s, which ends at %d: %s (%s)",
            reader.group,
            offset,
            reader.queue_id,
            reader.topic,
            end,
            _IN_WORDS[policy],
            ATTRIBUTE,
        )
        if policy is OffsetBeyondEnd.EARLIEST:
            return least
        if policy is OffsetBeyondEnd.NEAREST:
            return end
        if len(self._stopped) < STOPPED_MAX:
            self._stopped[reader] = end
            self.want_saved()
            self.sooner()
        raise _refused(reader, offset, end)

    def _policy(self, name: str) -> OffsetBeyondEnd:
        group = self._groups.find(name)
        chosen = "" if group is None else group.attributes.get(ATTRIBUTE, "")
        return _POLICIES.get(chosen, self._settings.now.offset_beyond_end)

    # -- the file ---------------------------------------------------------------------------------

    def snapshot(self) -> Callable[[], bytes]:
        """Take a picture."""
        file = _File([(*reader, end) for reader, end in self._stopped.items()])
        return lambda: msgspec.json.encode(file)

    def load(self, content: bytes) -> None:
        """Take over a file.

        Raises:
            ContentError: it is not `offsetStops.json`.
        """
        try:
            file = msgspec.json.decode(content, type=_File)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ContentError(self.file_name, str(error)) from None
        self._stopped = {Reader(*one[:3]): one[3] for one in file.stopped[:STOPPED_MAX]}


def _refused(reader: Reader, offset: int, end: int) -> SystemFailure:
    return SystemFailure(
        f"group {reader.group} is stopped in queue {reader.queue_id} of {reader.topic}: its offset "
        f"{offset} lies behind the end of the queue, which was {end}; reset the offset, or set "
        f"{ATTRIBUTE} of the group to NEAREST or EARLIEST"
    )
