"""A small store with a file of every kind, and what a broker makes of it with one byte changed.

`Sample` is written once, by a whole broker on a simulated disk: two queues with tags and keys, two
messages that wait (for a delay level and for a timer), a prepared one, a retry, groups, offsets and
a setting that was changed, so that every file and its backup are there. `Sample.outcome` changes
one file, starts a broker on it and reads everything that a client can: pulls, queries by key, and
single messages. What it is served is compared with what was stored, byte for byte. Then two hours
pass, and what waited has to come.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import GantryError
from gantrymq.kernel import kernel
from gantrymq.model.group import SubscriptionGroup
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import SimulatedFiles
from support.broker_rig import BrokerRig, pull
from support.samples import json_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gantrymq.kernel.values import Record
    from gantrymq.wire.command import Command

ROOT: Final = Path("/store")
SIZES: Final = {
    "mappedFileSizeCommitLog": "2048",
    "mappedFileSizeConsumeQueue": "100",
    "maxHashSlotNum": "10",
    "maxIndexNum": "20",
}
QUEUES: Final = (
    ("T", 0), ("T", 1), ("SCHEDULE_TOPIC_XXXX", 0), ("SCHEDULE_TOPIC_XXXX", 17),
    ("RMQ_SYS_TRANS_HALF_TOPIC", 0), ("%RETRY%readers", 0), ("rmq_sys_wheel_timer", 0),
)  # fmt: skip
EXTENDED: Final = {"enableConsumeQueueExt": "true", "mappedFileSizeConsumeQueueExt": "1024"}
WAITING: Final = frozenset({b"later", b"timed"})
WAITING_TOPICS: Final = frozenset({"SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer"})
WAITING_S: Final = 7400.0
"""Until both are due; the highest delay level has two hours."""
WAITED_FOR: Final = ("timerslots", "consumequeue_ext", "config/delayOffset", "config/timercheck")
"""Files that say when something is due: no change of theirs keeps it from coming."""
UPDATE_SETTINGS: Final = 25
KEYS: Final = tuple(f"key{number}" for number in range(12))
PULLS_MAX: Final = 64
"""Of one queue; a reader that is not through by then goes round in circles."""
QUERY, VIEW = 12, 33

NO_RECORD: Final = "no record"
NO_PLACE: Final = "a place that there is not"
CHECK_SUM: Final = "check sum"
UNCHECKED: Final = frozenset(
    {
        "flag", "sys_flag", "born_timestamp", "born_host", "store_timestamp", "store_host",
        "reconsume_times", "prepared_offset", "properties",
    }
)  # fmt: skip
"""Fields of a record that no check sum of Apache's format covers, and nothing else repeats."""
REBUILT: Final = frozenset({"topic", "queue_id", "queue_offset"})
"""Fields that a queue repeats, so that its readers are safe; whoever asks for a place in the log
is not, nor is anybody once the queue had to be built from the log."""

TOLD: Final = ("Nothing was cut", "a message says that it has queue offset")
"""After a crash the log is not opened where opening it would cost good messages: behind damage to
what was forced before, and where queues are built from a record with an offset that cannot be."""

Place = tuple[str, int, int]


class Served(NamedTuple):
    """A record that a client was given, and the queue and offset at which it was."""

    place: Place | None
    raw: bytes


@dataclass
class Outcome:
    """What became of a store with a change in it."""

    refused: str = ""
    """Why it was not opened."""
    wrong: list[str] = field(default_factory=list)
    """What a queue served that had never been stored so, by the field that differs."""
    viewed_wrong: list[str] = field(default_factory=list)
    """The same of what was asked for by key or by its place in the log."""
    missing: list[Place] = field(default_factory=list)
    """Messages that a reader of their queue does not get."""
    stuck: list[tuple[str, int]] = field(default_factory=list)
    """Queues of which a reader does not reach the end."""
    not_come: list[bytes] = field(default_factory=list)
    """Messages that waited, and still do when they are due."""


class Sample:
    """A store as it lies on the disk, and what is in it; `extended`, with queues that know more."""

    def __init__(self, *, clean: bool, extended: bool = False) -> None:
        self.clean = clean
        self.clock = VirtualClock()
        self._sizes = SIZES | (EXTENDED if extended else {})
        rig = BrokerRig(self._sizes, disk=SimulatedFiles(clock=self.clock), clock=self.clock)
        disk = _write(rig, clean=clean)
        self.files: dict[Path, bytes] = {path: disk.read(path) for path in _paths(disk, ROOT)}
        self._disk = disk
        self.stored: dict[Place, bytes] = {}
        untouched = self._opened(disk.kill())
        for place, raw in self._pulled(untouched):
            assert place is not None
            self.stored[place] = raw
        self._raws = frozenset(self.stored.values())
        self.records = sorted(
            (kernel.decode_record(raw, 0, len(raw), True)[0] for raw in self._raws),
            key=lambda record: record.log_offset,
        )

    def outcome(
        self, path: Path, change: Callable[[bytes], bytes], *, waits: bool = False
    ) -> Outcome:
        """Start a broker on a copy of the store with one file changed, and read everything.

        With `waits`, and where the file says when something is due, see what comes later.
        """
        disk = self._disk.kill()
        disk.place(path, change(self.files[path]), self._disk.modified_ms(path))
        found = Outcome()
        try:
            rig = self._opened(disk)
        except (GantryError, OSError) as error:
            found.refused = str(error) or type(error).__name__
            return found
        seen: set[Place] = set()
        for place, raw in self._pulled(rig, found):
            if place is not None:
                seen.add(place)
            if place is None or raw != self.stored.get(place):
                found.wrong.append(self._difference(place, raw))
        for raw in self._asked(rig):
            if raw not in self._raws:
                found.viewed_wrong.append(self._difference(None, raw))
        found.missing = sorted(self.stored.keys() - seen)
        if waits or path.relative_to(ROOT).as_posix().startswith(WAITED_FOR):
            rig.settle(WAITING_S)
            rig.settle(2.0)  # what is late comes with the next second
            found.not_come = sorted(WAITING - _bodies(rig))
        return found

    def _opened(self, disk: SimulatedFiles) -> BrokerRig:
        return BrokerRig(self._sizes, disk=disk, clock=VirtualClock(), is_first=False)

    def _pulled(self, rig: BrokerRig, found: Outcome | None = None) -> Iterator[Served]:
        for topic, queue_id in QUEUES:
            offset, end = 0, rig.store.reads.max_offset(topic, queue_id)
            for _ in range(PULLS_MAX):
                asked = pull(offset, topic=topic, queueId=str(queue_id))
                answer = _answer(rig, asked)
                if answer is None:
                    break
                yield from (_placed(topic, queue_id, raw) for raw in _records(answer.body))
                following = int(answer.fields.get("nextBeginOffset", offset))
                if following <= offset and answer.code != 0:
                    break
                offset = following
            if found is not None and offset < end:
                found.stuck.append((topic, queue_id))

    def _asked(self, rig: BrokerRig) -> Iterator[bytes]:
        for key in KEYS:
            fields = {
                "topic": "T", "key": key, "maxNum": "32", "beginTimestamp": "0",
                "endTimestamp": str(2**62),
            }  # fmt: skip
            if (answer := _answer(rig, json_request(QUERY, fields))) is not None:
                yield from _records(answer.body)
        for record in self.records:
            asked = json_request(VIEW, {"offset": str(record.log_offset)})
            if (answer := _answer(rig, asked)) is not None:
                yield from _records(answer.body)

    def _difference(self, place: Place | None, raw: bytes) -> str:
        """Name what differs between a served record and the stored one that it should be."""
        try:
            served = kernel.decode_record(raw, 0, len(raw), False)[0]
        except GantryError:
            return NO_RECORD
        stored = self.stored.get(place) if place is not None else None
        if stored is not None:
            wanted = kernel.decode_record(stored, 0, len(stored), False)[0]
        else:
            at = served.log_offset
            found = [one for one in self.records if one.log_offset == at]
            if not found:
                return NO_PLACE
            wanted = found[0]
        names = (name for name in wanted._fields if getattr(wanted, name) != getattr(served, name))
        return next(names, CHECK_SUM)

    # -- what is right ----------------------------------------------------------------------------

    def problem(self, path: Path, position: int, found: Outcome) -> str | None:
        """Return what is not right about an outcome, position being where the change was."""
        kind = path.relative_to(ROOT).parts[0]
        in_log = kind == "commitlog"
        if found.refused:
            told = any(words in found.refused for words in TOLD)
            return None if told and in_log and not self.clean else f"refused: {found.refused}"
        allowed = UNCHECKED if in_log else frozenset()
        if not self.clean:
            allowed |= REBUILT if in_log else frozenset()
        viewed = allowed | REBUILT if in_log else frozenset()
        if bad := set(found.wrong) - allowed or set(found.viewed_wrong) - viewed:
            return f"served: {', '.join(sorted(bad))}"
        if path.name.startswith("topics.json"):
            return None  # it may say of a topic that nobody may read it
        if found.stuck:
            return f"stuck: {found.stuck}"
        if found.not_come and not (in_log and self._is_of_waiting(path, position, found.missing)):
            return f"never delivered: {found.not_come}"
        return self._problem_with_missing(path, position, found.missing)

    def _is_of_waiting(self, path: Path, position: int, missing: list[Place]) -> bool:
        """Tell whether a message that waits was itself changed, or cut off."""
        at = int(path.name) + position
        hit = max((one for one in self.records if one.log_offset <= at), default=None, key=_offset)
        topics = {topic for topic, _, _ in missing} | ({hit.topic.decode()} if hit else set())
        return bool(topics & WAITING_TOPICS)

    def _problem_with_missing(self, path: Path, position: int, missing: list[Place]) -> str | None:
        kind = path.relative_to(ROOT).parts[0]
        if kind == "consumequeue" and self.clean:
            own = (path.parts[-3], int(path.parts[-2]), (int(path.name) + position) // 20)
            return None if set(missing) <= {own} else f"missing: {missing}"
        if kind != "commitlog":
            return f"missing: {missing}" if missing else None
        at = int(path.name) + position
        hit = max((one.log_offset for one in self.records if one.log_offset <= at), default=0)
        lost = [self._at(place) for place in missing]
        if self.clean:
            return None if set(lost) <= {hit} else f"missing: {missing}"
        return None if all(offset >= hit for offset in lost) else f"missing: {missing}"

    def _at(self, place: Place) -> int:
        raw = self.stored[place]
        return kernel.decode_record(raw, 0, len(raw), False)[0].log_offset


def _offset(record: Record) -> int:
    return record.log_offset


def flip(position: int) -> Callable[[bytes], bytes]:
    """Return what turns one bit of a byte over: another one from place to place."""

    def change(data: bytes) -> bytes:
        bit = 1 << (position * 5 + 3) % 8
        return data[:position] + bytes([data[position] ^ bit]) + data[position + 1 :]

    return change


def cut(length: int) -> Callable[[bytes], bytes]:
    """Return what leaves so many bytes of a file."""
    return lambda data: data[:length]


def _answer(rig: BrokerRig, data: bytes) -> Command | None:
    """Ask, and let the broker work for as long as it takes; None if it never answers."""
    asked = rig.begin(data)
    rig.turns()
    if not asked.is_answered:
        rig.settle()
    return asked.answer if asked.is_answered else None


def _placed(topic: str, queue_id: int, raw: bytes) -> Served:
    try:
        record = kernel.decode_record(raw, 0, len(raw), False)[0]
    except GantryError:
        return Served(None, raw)
    return Served((topic, queue_id, record.queue_offset), raw)


def _records(body: bytes) -> list[bytes]:
    """Cut a body into records; what cannot be cut is the last one."""
    found: list[bytes] = []
    position = 0
    while position < len(body):
        try:
            _, end = kernel.decode_record(body, position, len(body), False)
        except GantryError:
            return [*found, body[position:]]
        found.append(body[position:end])
        position = end
    return found


def _paths(disk: SimulatedFiles, directory: Path) -> Iterator[Path]:
    for name in disk.names(directory):
        path = directory / name
        if disk.is_directory(path):
            yield from _paths(disk, path)
        else:
            yield path


def _bodies(rig: BrokerRig) -> set[bytes]:
    """Return the bodies of everything in the two queues of T that can be read."""
    found: set[bytes] = set()
    for queue_id in (0, 1):
        offset, end = 0, rig.store.reads.max_offset("T", queue_id)
        while offset < end:
            batch = rig.store.get("T", queue_id, offset, 32)
            found |= {
                kernel.decode_record(raw, 0, len(raw), False)[0].body for raw in batch.records
            }
            offset = max(batch.next_offset, offset + 1)
    return found


def _write(rig: BrokerRig, *, clean: bool) -> SimulatedFiles:
    """Write the store, and stop in order or not."""
    for number in range(14):
        text = f"TAGS\x01tag{number % 3}\x02KEYS\x01key{number % 12} all\x02UNIQ_KEY\x01U{number}"
        rig.send(b"body %d " % number * (1 + number % 4), e=str(number % 2), i=text)
        rig.settle(0.3)
    rig.send(b"soon", i="DELAY\x011")
    rig.send(b"later", i="DELAY\x0118")
    rig.send(b"timed", i="TIMER_DELAY_SEC\x013000")
    rig.send(b"perhaps", i="TRAN_MSG\x01true\x02PGROUP\x01g\x02UNIQ_KEY\x01half")
    rig.broker.tables.groups.put(SubscriptionGroup("readers"))
    rig.broker.tables.topics.create_for_group("%RETRY%readers", 1)
    rig.send(b"again", b="%RETRY%readers", i="RETRY_TOPIC\x01T\x02TAGS\x01tag1", j="1")
    rig.broker.tables.offsets.commit("readers", "T", 0, 3)
    rig.begin(json_request(UPDATE_SETTINGS, {}, b"defaultQueryMaxNum=31\n"))
    rig.settle(70.0)  # everything has been saved
    rig.begin(json_request(UPDATE_SETTINGS, {}, b"defaultQueryMaxNum=32\n"))
    rig.broker.tables.offsets.commit("readers", "T", 0, 5)
    rig.send(b"the last but one", i="TAGS\x01tag2\x02KEYS\x01key3")
    rig.settle(70.0)  # and once more, so that there are backups
    rig.send(b"the last", e="1", i="TAGS\x01tag0")
    rig.turns()
    if clean:
        rig.work()
        assert rig.broker.close()
    return rig.disk.kill()
