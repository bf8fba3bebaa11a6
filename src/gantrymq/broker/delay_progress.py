"""How far each delay level has been delivered, and `delayOffset.json`.

Owned by one task (the event loop). What is delivered after the last save is delivered again after a
crash: the file may be behind, never ahead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from gantrymq.broker.offset_table import LONG_MAX, encode_offsets
from gantrymq.broker.saved_state import SavedState, read_file
from gantrymq.errors import InvalidValue
from gantrymq.limits import DELAY_LEVELS_MAX
from gantrymq.model.offsets import DataVersion
from gantrymq.wire.bodies.offsets import DelayOffsets
from gantrymq.wire.bodies.topic import DATA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.clock import Clock

_VERSION_STEP: Final = 200
"""Changes for which the data version moves once: `delayOffsetUpdateVersionStep`."""


class DelayProgress(SavedState):
    """The next offset to deliver, by level."""

    file_name: ClassVar[str] = "delayOffset.json"
    is_journaled: ClassVar[bool] = True
    is_checked: ClassVar[bool] = True

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._offsets: dict[int, int] = {}
        self._version = DataVersion(timestamp_ms=clock.now_ms())

    @property
    def data_version(self) -> DataVersion:
        """Return the version that slaves compare."""
        return self._version

    def find(self, level: int) -> int:
        """Return the next offset of a level; 0 for one that never delivered anything."""
        return self._offsets.get(level, 0)

    def all(self) -> Mapping[int, int]:
        """Return the next offset of every level that has delivered something."""
        return dict(self._offsets)

    def set(self, level: int, offset: int) -> None:
        """Note how far a level is.

        Raises:
            InvalidValue: there is no such level or offset.
        """
        if not 1 <= level <= DELAY_LEVELS_MAX:
            raise InvalidValue(f"there is no delay level {level}: give 1 to {DELAY_LEVELS_MAX}")
        if not 0 <= offset <= LONG_MAX:
            raise InvalidValue(f"delay level {level} cannot be at {offset}")
        self._offsets[level] = offset
        self._changes += 1
        if self._changes % _VERSION_STEP == 0:
            self._version = self._version.next(self._clock.now_ms())

    def snapshot(self) -> Callable[[], bytes]:
        """Take a picture."""
        offsets, version = self._offsets.copy(), self._version
        return lambda: (
            b'{"dataVersion":%b,"offsetTable":%b}'
            % (DATA_VERSION.encode(version), encode_offsets(offsets))
        )

    def load(self, content: bytes) -> None:
        """Take over a file.

        Raises:
            ContentError: it is not `delayOffset.json`.
            InvalidValue: it has more levels than there can be.
        """
        self._take(read_file(DelayOffsets, content, self.file_name))

    def adopt(self, table: DelayOffsets) -> None:
        """Become what a master's table says.

        Raises:
            InvalidValue: it has more levels than there can be.
        """
        self._take(table)
        self._changes += 1

    def _take(self, table: DelayOffsets) -> None:
        if len(table.offset_table) > DELAY_LEVELS_MAX:
            raise InvalidValue(
                f"{len(table.offset_table)} delay levels: at most {DELAY_LEVELS_MAX} are taken"
            )
        self._offsets = dict(table.offset_table)
        self._version = table.data_version or self._version
