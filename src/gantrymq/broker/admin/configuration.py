"""The broker's settings over the wire: read all of them (26), change those that may change (25).

What may change while a broker runs is a typed list: the settings marked live. None of them is a
path, an address, a command or a credential; everything else is refused with NO_PERMISSION. Apache
takes any name and any value, rewrites the file that it was started with, and says yes to names that
it does not know.

A change is kept in `config/live.properties` under the store's root and holds over the file given by
`-c` at every later start (`restored`). To go back to the file, take the line out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from gantrymq.broker.admin.parts import body_answer
from gantrymq.broker.answers import answer
from gantrymq.broker.saved_state import SavedState
from gantrymq.broker.settings import broker_properties, broker_rows
from gantrymq.errors import InvalidValue, shown
from gantrymq.model.offsets import DataVersion
from gantrymq.model.secrets import masked
from gantrymq.store import config_files
from gantrymq.store.settings import InvalidSettings, changed_settings, known_settings
from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.bodies.topic import DATA_VERSION
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.admin import BrokerConfigResponse
from gantrymq.wire.response_errors import InvalidParameter, NoPermission

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.broker.admin.parts import AdminParts
    from gantrymq.broker.settings import BrokerSettings
    from gantrymq.clock import Clock
    from gantrymq.store.files import Files
    from gantrymq.store.settings import StoreSettings
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer, Pending

CHANGES_MAX: Final = 256
"""Settings in one request; there are fewer that may change."""
AT_NEXT_START: Final = frozenset(
    {
        "fastFailIfNoBufferInStorePool", "warmMapedFileEnable",
        "flushLeastPagesWhenWarmMapedFile", "maxTransferBytesOnMessageInMemory",
        "maxTransferCountOnMessageInMemory", "maxTransferBytesOnMessageInDisk",
        "maxTransferCountOnMessageInDisk", "accessMessageInMemoryMaxRatio", "diskFallRecorded",
        "offsetCheckInSlave", "messageIndexEnable", "maxMsgsNumBatch", "defaultQueryMaxNum",
        "haSendHeartbeatInterval", "haHousekeepingInterval", "haTransferBatchSize",
        "haSlaveFallbehindMax", "enableScheduleMessageStats",
        "scheduleAsyncDeliverMaxPendingLimit", "scheduleAsyncDeliverMaxResendNum2Blocked",
        "putMsgIndexHightWater", "defaultTopicQueueNums",
    }
)  # fmt: skip
"""Settings that are kept at once and hold from the next start on; the answer says so."""


WANTED: Final = {"filterServerNums": "0", "useTLS": "false"}
"""Settings that there are not here; `exportConfigs` fails without them."""


class Changed(NamedTuple):
    """All settings after a change."""

    broker: BrokerSettings
    store: StoreSettings


def changed(broker: BrokerSettings, store: StoreSettings, changes: Mapping[str, str]) -> Changed:
    """Return the settings with some of them changed while the broker runs.

    Raises:
        InvalidSettings: a value is not allowed.
        NoPermission: a setting may not be changed, or there is none of that name.
    """
    live = {name: pair for pair in broker_rows() if pair[1].live for name in pair[1].names}
    stored = {name for row in known_settings() if row.live for name in row.names}
    fixed = [name for name in changes if name not in live and name not in stored]
    if fixed:
        raise NoPermission(
            f"{', '.join(shown(name) for name in fixed[:8])} cannot be changed while this broker "
            "runs; write it into the file given by -c and start again"
        )
    problems: list[str] = []
    values: dict[str, object] = {}
    for name, text in changes.items():
        if name not in live:
            continue
        attribute, row = live[name]
        try:
            values[attribute] = row.kind.parse(text.strip())
        except ValueError:
            problems.append(f"{name} is {shown(text.strip())!r}; it must be {row.kind.allowed}")
    try:
        store = changed_settings(store, {n: text for n, text in changes.items() if n in stored})
    except InvalidSettings as error:
        problems += error.problems
    if problems:
        raise InvalidSettings(problems)
    return Changed(replace(broker, **values), store)  # type: ignore[arg-type]


class LiveChanges(SavedState):
    """What was changed over the wire, by name, and its file."""

    file_name: ClassVar[str] = "live.properties"

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._texts: dict[str, str] = {}
        self.version = DataVersion(timestamp_ms=clock.now_ms())

    def note(self, changes: Mapping[str, str]) -> None:
        """Keep changes."""
        self._texts.update(changes)
        self._changes += 1
        self.version = self.version.next(self._clock.now_ms())

    def snapshot(self) -> Callable[[], bytes]:
        """Take a picture."""
        texts = dict(self._texts)
        return lambda: SETTINGS.encode(texts)

    def load(self, content: bytes) -> None:
        """Take over a file.

        Raises:
            ContentError: it is no file of settings.
        """
        self._texts = dict(SETTINGS.decode(content))


def restored(files: Files, broker: BrokerSettings, store: StoreSettings) -> Changed:
    """Return the settings with what was changed over the wire before. Blocks; called at the start.

    Raises:
        StoreDamaged: the file cannot be understood.
        InvalidValue: something in it is no setting that may change, or not a value of it.
    """
    path = store.paths.config / LiveChanges.file_name
    loaded = config_files.load(files, path, SETTINGS.decode)
    if loaded is None:
        return Changed(broker, store)
    try:
        return changed(broker, store, loaded.value)
    except (InvalidSettings, NoPermission) as error:
        raise InvalidValue(f"{path}: {error}; mend the line, or take it out") from None


class ConfigurationRequests:
    """Answers and changes settings."""

    def __init__(
        self,
        parts: AdminParts,
        changes: LiveChanges,
        store_settings: Callable[[], StoreSettings],
        apply: Callable[[Changed], None],
    ) -> None:
        """Have `apply` put new settings into use."""
        self._parts = parts
        self._live = changes
        self._store_settings = store_settings
        self._apply = apply

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.GET_BROKER_CONFIG: self.read,
            RequestCode.UPDATE_BROKER_CONFIG: self.change,
        }

    def read(self, request: Command, _peer: Peer) -> Answer:
        """Answer all settings that hold, under RocketMQ's names; secrets are not among them."""
        texts = {
            **WANTED,
            **self._store_settings().properties(),
            **broker_properties(self._parts.settings.now),
            # As in Apache's answer, whatever was set: the filter says how long its bitmaps are.
            "bitMapLengthConsumeQueueExt": str(self._parts.tables.filters.bloom.bit_count),
        }
        version = DATA_VERSION.encode(self._live.version).decode()
        header = BrokerConfigResponse(version=version)
        return body_answer(request, SETTINGS.encode(masked(texts)), header.encode())

    def change(self, request: Command, _peer: Peer) -> Pending:
        """Change some settings; if one of them cannot be, none is."""
        changes = SETTINGS.decode(request.body)
        if len(changes) > CHANGES_MAX:
            raise InvalidParameter(
                f"{len(changes)} settings in one request: give at most {CHANGES_MAX}"
            )
        try:
            fresh = changed(self._parts.settings.now, self._store_settings(), changes)
        except InvalidSettings as error:
            raise InvalidParameter(str(error)) from None
        self._apply(fresh)
        self._live.note({name: text.strip() for name, text in changes.items()})
        later = sorted(AT_NEXT_START.intersection(changes))
        remark = f"{', '.join(later)} will hold from the next start on" if later else None
        return self._parts.saved(request, self._live, reply=answer(request, remark=remark))
