"""All settings of a store, read from RocketMQ's names and checked as a whole.

A broker's `.properties` file is read once, into one frozen class for each part that needs some of
it. Where Apache RocketMQ passes silently over a name that it does not know or a number that it
cannot read, everything that is wrong is collected here and refused at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.errors import GantryError
from gantrymq.kernel import BLANK_BYTES_MIN
from gantrymq.limits import BODY_BYTES_MAX
from gantrymq.store.settings_kinds import Setting
from gantrymq.store.settings_log import (
    FileSettings,
    FlushDiskType,
    FlushSettings,
    PathSettings,
    PoolSettings,
    PutSettings,
    QueueFlushSettings,
    RecoverySettings,
    WarmUpSettings,
)
from gantrymq.store.settings_names import FOREIGN
from gantrymq.store.settings_service import (
    BrokerRole,
    DiskSettings,
    IndexSettings,
    ReplicationSettings,
    RetentionSettings,
    ScheduleSettings,
    TransferSettings,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

__all__ = [
    "BrokerRole",
    "DiskSettings",
    "FileSettings",
    "FlushDiskType",
    "FlushSettings",
    "IndexSettings",
    "InvalidSettings",
    "PathSettings",
    "PoolSettings",
    "PutSettings",
    "QueueFlushSettings",
    "RecoverySettings",
    "ReplicationSettings",
    "RetentionSettings",
    "ScheduleSettings",
    "StoreSettings",
    "TransferSettings",
    "WarmUpSettings",
    "changed_settings",
    "known_settings",
    "read_settings",
]

ROOT_NAME: Final = "storePathRootDir"


class InvalidSettings(GantryError, ValueError):
    """Settings that cannot be used; `problems` has one sentence for each thing that is wrong."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type[InvalidSettings], tuple[tuple[str, ...]]]:
        """Let the error cross a process border."""
        return type(self), (self.problems,)


@dataclass(frozen=True, kw_only=True)
class StoreSettings:
    """Everything that may be set about a store, by the part that uses it."""

    paths: PathSettings
    files: FileSettings = field(default_factory=FileSettings)
    put: PutSettings = field(default_factory=PutSettings)
    flush: FlushSettings = field(default_factory=FlushSettings)
    queue_flush: QueueFlushSettings = field(default_factory=QueueFlushSettings)
    pool: PoolSettings = field(default_factory=PoolSettings)
    warm_up: WarmUpSettings = field(default_factory=WarmUpSettings)
    recovery: RecoverySettings = field(default_factory=RecoverySettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    disk: DiskSettings = field(default_factory=DiskSettings)
    transfer: TransferSettings = field(default_factory=TransferSettings)
    index: IndexSettings = field(default_factory=IndexSettings)
    replication: ReplicationSettings = field(default_factory=ReplicationSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)

    @property
    def uses_pool(self) -> bool:
        """Tell whether records go to buffers first: a slave copies bytes and has no use for it."""
        return self.pool.enabled and self.replication.role is not BrokerRole.SLAVE

    def properties(self) -> dict[str, str]:
        """Return all of it under RocketMQ's names, as an admin tool reads it."""
        texts = {ROOT_NAME: str(self.paths.root)}
        for group, name, row in _rows():
            texts[row.name] = row.kind.text(getattr(getattr(self, group), name))
        return texts


_GROUPS: Final = {
    "paths": PathSettings,
    "files": FileSettings,
    "put": PutSettings,
    "flush": FlushSettings,
    "queue_flush": QueueFlushSettings,
    "pool": PoolSettings,
    "warm_up": WarmUpSettings,
    "recovery": RecoverySettings,
    "retention": RetentionSettings,
    "disk": DiskSettings,
    "transfer": TransferSettings,
    "index": IndexSettings,
    "replication": ReplicationSettings,
    "schedule": ScheduleSettings,
}


def _rows() -> Iterator[tuple[str, str, Setting]]:
    """Yield every row of the table with its group and its name there."""
    for group, kind in _GROUPS.items():
        for column in fields(kind):
            row = column.metadata.get("setting")
            if isinstance(row, Setting):
                yield group, column.name, row


def known_settings() -> tuple[Setting, ...]:
    """Return the table, for documentation; the root directory is not in it."""
    return tuple(row for _, _, row in _rows())


def read_settings(properties: Mapping[str, str], *, home: Path | None = None) -> StoreSettings:
    """Return the settings that a `.properties` file means.

    `home` is where the store lies if the file does not say; names in `FOREIGN` are passed over.

    Raises:
        InvalidSettings: unknown names, values that are not allowed, impossible combinations.
    """
    problems = _unknown_names(properties)
    values: dict[str, dict[str, object]] = {group: {} for group in _GROUPS}
    for group, name, row in _rows():
        text = _one_text(properties, row.names, problems)
        if text is None:
            continue
        try:
            values[group][name] = row.kind.parse(text.strip())
        except ValueError:
            problems.append(f"{row.name} is {text.strip()!r}; it must be {row.kind.allowed}")
    settings = StoreSettings(paths=PathSettings(root=_root(properties, home, problems)))
    # A group whose values are all good is taken even if another's are not: then the combinations
    # of what could be read are looked at in the same go.
    settings = replace(
        settings,
        **{
            group: replace(getattr(settings, group), **found)
            for group, found in values.items()
            if found
        },
    )
    problems += _impossible(settings)
    if problems:
        raise InvalidSettings(problems)
    return settings


def changed_settings(current: StoreSettings, changes: Mapping[str, str]) -> StoreSettings:
    """Return the settings with some of them changed while the store is open.

    Raises:
        InvalidSettings: as `read_settings`, and for every setting that is fixed at the start.
    """
    fixed = {name: row.name for row in known_settings() if not row.live for name in row.names}
    fixed[ROOT_NAME] = ROOT_NAME
    now = current.properties()
    problems = [
        f"{name} is fixed when a store is opened; change it in the file and start again"
        for name, text in changes.items()
        if name in fixed and text.strip() != now[fixed[name]]
    ]
    written = {alias: row.name for row in known_settings() for alias in row.names}
    merged = now | {written.get(name, name): text for name, text in changes.items()}
    try:
        settings = read_settings(merged)
    except InvalidSettings as error:
        raise InvalidSettings([*problems, *error.problems]) from None
    if problems:
        raise InvalidSettings(problems)
    return settings


def _unknown_names(properties: Mapping[str, str]) -> list[str]:
    known = {name for row in known_settings() for name in row.names} | FOREIGN | {ROOT_NAME}
    return unknown_names(properties, known)


def unknown_names(properties: Iterable[str], known: Collection[str]) -> list[str]:
    """Return a sentence for every name of a file that is not among the known ones."""
    by_lower = {name.lower(): name for name in known}
    problems = []
    for name in properties:
        if name in known:
            continue
        near = get_close_matches(name.lower(), by_lower, n=1)
        hint = f"; did you mean {by_lower[near[0]]}?" if near else ""
        problems.append(f"{name} is not a setting that is known here{hint}")
    return problems


def _one_text(
    properties: Mapping[str, str], names: tuple[str, ...], problems: list[str]
) -> str | None:
    """Return the text under one of several names; two that differ are a problem."""
    given = {name: properties[name] for name in names if name in properties}
    if len({text.strip() for text in given.values()}) > 1:
        both = " and ".join(f"{name}={text.strip()}" for name, text in given.items())
        problems.append(f"{both} are two names of one setting; leave one of them out")
    return next(iter(given.values()), None)


def _root(properties: Mapping[str, str], home: Path | None, problems: list[str]) -> Path:
    text = properties.get(ROOT_NAME, "").strip()
    if text:
        return Path(text)
    if home is None:
        problems.append(f"{ROOT_NAME} is missing; it must be the directory of the store")
        return Path()
    return home / "store"


def _impossible(settings: StoreSettings) -> Iterator[str]:
    """Yield a sentence for everything that is allowed alone and not together."""
    room = settings.files.commit_log_bytes
    need = settings.put.record_bytes_max + BLANK_BYTES_MIN
    # The default is left alone: with small files it cannot be kept, and a message that does not
    # fit is refused by itself, when it comes.
    if need > room and settings.put.body_bytes_max != BODY_BYTES_MAX:
        yield (
            f"maxMessageSize {settings.put.body_bytes_max} needs log files of {need} bytes and "
            f"mappedFileSizeCommitLog is {room}; raise it or allow less"
        )
    if settings.replication.raft_enabled:
        yield (
            "enableDLegerCommitLog is true, and there is no DLedger log here; leave it out, use "
            "brokerRole, and see automatic failover for electing a master"
        )
    if not settings.disk.force_percent <= settings.disk.full_percent:
        yield (
            f"diskSpaceCleanForciblyRatio {settings.disk.force_percent} is above "
            f"diskSpaceWarningLevelRatio {settings.disk.full_percent}; writes would stop before "
            "anything is deleted for them"
        )
    both = set(settings.paths.commit_log) & set(settings.paths.read_only_commit_log)
    if settings.paths.commit_log_text and set(settings.paths.commit_log) == both:
        yield (
            "every directory of storePathCommitLog is in readOnlyCommitLogStorePaths too; "
            "one of them must be left to write to"
        )
