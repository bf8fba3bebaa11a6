"""Files that an operator or another broker wrote: accounts, users, what is under `config/`.

A file that cannot be used is refused with a sentence (`GantryError`), and nothing else may happen.
One that is taken is written and read again, and must say the same then.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fuzz.twins import DisagreementError, Outcome
from gantrymq.admin import declared as declared_files
from gantrymq.broker.admin.configuration import LiveChanges, restored
from gantrymq.broker.config_saving import stamped
from gantrymq.broker.journal import changes as journal
from gantrymq.broker.pop.order import OrderInfo
from gantrymq.broker.settings import BrokerSettings, LiveSettings
from gantrymq.broker.tables import Tables, make_tables
from gantrymq.broker.timer import progress, takeover
from gantrymq.broker.timer.slots import TimerSlots
from gantrymq.cluster import epoch_file
from gantrymq.errors import GantryError
from gantrymq.namesrv.kv import KvTables
from gantrymq.security import account_file, user_file
from gantrymq.security.account_files import joined_rules
from gantrymq.security.accounts import Secret
from gantrymq.security.addresses import read_address
from gantrymq.security.sealing import SealKey, read_key
from gantrymq.store.checkpoint import Checkpoint
from gantrymq.store.config_files import load_json
from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import SimulatedFiles
from gantrymq.testing.workers import StepWorker
from support.store_rig import open_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.saved_state import SavedState

PLACE: Final = Path("/store/config")
KEY: Final = SealKey(bytes(range(32)))
SEALED: Final = KEY.seal("orders", Secret("a secret of orders"), bytes(16))
"""For users in the seeds; other ones are refused for their seal."""
PEERS: Final = ("127.0.0.1:4711", "10.0.0.7:1", "[fe80::1]:2")
DELAY_LEVELS: Final = 18


def kind_of(error: GantryError) -> str:
    """Return an error without its values."""
    return Outcome(None, f"{type(error).__name__}: {error}").kind


def accounts(data: bytes) -> str:
    """Read `plain_acl.yml`, have it judge somebody, write it, and read it again."""
    try:
        file = account_file.read(data)
        rules = joined_rules({PLACE: file})
    except GantryError as error:
        return kind_of(error)
    if account_file.read(account_file.written(file)) != file:
        raise DisagreementError("accounts differ when they are written and read")
    seen = [rules.white.has(read_address(peer)) for peer in PEERS]
    for account in rules.accounts.values():
        seen += [account.white.has(read_address(peer)) for peer in PEERS]
    return f"{min(len(file.entries), 3)} {any(seen)} {all(seen)}"


def users(data: bytes) -> str:
    """Read `users.toml` and open its secrets; behind a 0xff, read a key file instead."""
    if data[:1] == b"\xff":
        return _key(data[1:])
    try:
        file = user_file.read(data)
    except GantryError as error:
        return kind_of(error)
    if user_file.read(user_file.written(file)) != file:
        raise DisagreementError("users differ when they are written and read")
    try:
        found = user_file.built_users(file, KEY)
    except GantryError as error:
        return kind_of(error)
    return f"{min(len(found), 3)} {sorted({one.level for one in found.values()})}"


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="gantrymq-fuzz-")


def _key(data: bytes) -> str:
    path = Path(_folder().name, "users.key")
    path.touch(mode=0o600)
    path.write_bytes(data)
    try:
        read_key(path)
    except GantryError as error:
        return kind_of(error)
    return "a key"


def declared(data: bytes) -> str:
    """Read what `gantrymq apply` takes, as TOML and as JSON."""
    text = data.decode(errors="replace")
    kinds = []
    for is_json in (False, True):
        try:
            found = declared_files.parse(text, is_json=is_json)
            kinds.append(f"{len(found.topics)} {len(found.groups)} {len(found.permissions)}")
        except GantryError as error:
            kinds.append(kind_of(error))
    return str(kinds)


# -- config/ ---------------------------------------------------------------------------------------


def _nothing(_changed: object) -> None:
    """Be told of a change."""


def _tables(clock: VirtualClock) -> Tables:
    return make_tables(
        LiveSettings(BrokerSettings(name="broker-a")),
        clock,
        DELAY_LEVELS,
        topic_changed=_nothing,
        topic_removed=_nothing,
        group_changed=_nothing,
        mismatch_changed=_nothing,
    )


STATES: Final[dict[str, Callable[[VirtualClock], SavedState]]] = {
    "topics.json": lambda clock: _tables(clock).topics,
    "subscriptionGroup.json": lambda clock: _tables(clock).groups,
    "consumerOffset.json": lambda clock: _tables(clock).offsets,
    "delayOffset.json": lambda clock: _tables(clock).delays,
    "messageRequestMode.json": lambda clock: _tables(clock).modes,
    "offsetStops.json": lambda clock: _tables(clock).guard,
    "consumerFilter.json": lambda clock: _tables(clock).saved_filters,
    "consumerOrderInfo.json": OrderInfo,
    "live.properties": LiveChanges,
}


def _state(name: str, data: bytes) -> str:
    """Let a table take a file, write it, and let another take that."""
    clock = VirtualClock()
    first, second = STATES[name](clock), STATES[name](clock)
    first.load(data)
    written = first.encode()
    second.load(stamped(written, 7))
    again = second.encode()
    if again != written:
        raise DisagreementError(f"{name}: {written[:1000]!r} is {again[:1000]!r} when read")
    return f"taken, {len(written).bit_length()}"


def _disk(name: str, data: bytes) -> SimulatedFiles:
    disk = SimulatedFiles()
    disk.make_directory(PLACE)
    disk.place(PLACE / name, data, 0)
    return disk


def _kv(data: bytes) -> str:
    first, second = KvTables(_nothing), KvTables(_nothing)
    first.load(data)
    second.load(first.dump())
    if first.dump() != second.dump():
        raise DisagreementError("kvConfig.json differs when it is written and read")
    first.put("ORDER_TOPIC_CONFIG", "T", "broker-a:4")
    return f"taken, {first.get('ORDER_TOPIC_CONFIG', 'T')}"


def _epoch(data: bytes) -> str:
    disk = _disk(epoch_file.FILE_NAME, data)
    last = epoch_file.load_epoch(disk, PLACE)
    epoch_file.save_epoch(disk, PLACE, last)
    if epoch_file.load_epoch(disk, PLACE) != last:
        raise DisagreementError("epoch.json differs when it is written and read")
    return f"taken, {last.doubtful}"


def _live(data: bytes) -> str:
    store = open_settings({"storePathRootDir": "/store"})
    restored(_disk("live.properties", data), BrokerSettings(name="broker-a"), store)
    return "taken"


def _timers(data: bytes) -> str:
    """Begin with a progress of timers, and be asked what is due."""
    disk = SimulatedFiles()
    slots = Path("/store/timerslots")
    disk.make_directory(slots)
    disk.make_directory(PLACE)
    disk.place(slots / "progress", data, 0)
    worker, clock = StepWorker(), VirtualClock()
    timers = TimerSlots(disk, slots.parent, PLACE, worker, clock)
    found = timers.open()
    if found is None:
        return "nothing"
    timers.begin(found)
    now = clock.now_ms() // 1000
    due = timers.next_second(max(found.next_second, now), now + 60)
    timers.load(due, lambda: None, lambda _error: None)
    worker.drain()
    timers.finish(found, b"")
    return f"{len(found.slots)} {timers.is_empty}"


def _timer_check(data: bytes) -> str:
    check = takeover.parse_check(data)
    if check is not None and takeover.parse_check(check.encode()) != check:
        raise DisagreementError("timercheck differs when it is written and read")
    start = takeover.position_after(progress.Progress(read_offset=1, next_second=2), data, 0, 1)
    return f"{check is not None} {start.progress.next_second > 2}"


def _checkpoint(data: bytes) -> str:
    first = Checkpoint(PLACE, data)
    second = Checkpoint(PLACE, first.image())
    times = [(one.log_ms, one.queues_ms, one.index_ms, one.index_log_offset)
             for one in (first, second)]  # fmt: skip
    if times[0] != times[1]:
        raise DisagreementError(f"a checkpoint differs when it is written and read: {times}")
    return f"{first.min_timestamp > 0} {first.index_log_offset is not None}"


def _journal(data: bytes) -> str:
    found = journal.decode(data)
    if found is not None and journal.decode(journal.encode(found)) != found:
        raise DisagreementError(f"changes differ when they are written and read: {found!r:.1000}")
    return f"taken {found is not None}"


def _any_json(data: bytes) -> str:
    return f"taken {type(load_json(_disk('topics.json', data), PLACE / 'topics.json'))}"


READERS: Final[dict[str, Callable[[bytes], str]]] = {
    **{name: lambda data, name=name: _state(name, data) for name in STATES},  # type: ignore[misc]
    "kvConfig.json": _kv,
    "epoch.json": _epoch,
    "live.properties, restored": _live,
    "timerslots/progress": _timers,
    "timercheck": _timer_check,
    "checkpoint": _checkpoint,
    "journal": _journal,
    "any": _any_json,
}
NAMES: Final = list(READERS)


def config(data: bytes) -> str:
    """Read one file of a broker or a name server; the first byte says which it is taken for."""
    name = NAMES[(data[0] if data else 0) % len(NAMES)]
    try:
        return f"{name} {READERS[name](data[1:])}"
    except GantryError as error:
        return f"{name} {kind_of(error)}"


TARGETS: Final = {
    "accounts": accounts,
    "users": users,
    "declared": declared,
    "config": config,
}
