"""`config/consumerFilter.json`: the SQL92 filters of groups outlive the process, as with Apache.

A group that comes back after a restart finds its filter, and bitmaps that were made for it before
stay of use. Owned by the task that owns the table; what `snapshot` returns may run on any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from gantrymq.broker.saved_state import SavedState
from gantrymq.wire.bodies.queues import CONSUMER_FILTERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.filter.table import FilterTable
    from gantrymq.clock import Clock

SAVE_INTERVAL_MS: Final = 10_000


class SavedFilters(SavedState):
    """Saves and loads a table of filters."""

    file_name: ClassVar[str] = "consumerFilter.json"

    def __init__(self, table: FilterTable, clock: Clock) -> None:
        super().__init__()
        self._table = table
        self._clock = clock

    @property
    def changes(self) -> int:
        """Return how many changes of the table there have been."""
        return self._table.changes

    def snapshot(self) -> Callable[[], bytes]:
        """Take a picture, without groups that went long ago."""
        picture = self._table.picture(self._clock.now_ms())
        return lambda: CONSUMER_FILTERS.encode(picture)

    def load(self, content: bytes) -> None:
        """Take over a file; its groups count as gone until a heartbeat says otherwise.

        Raises:
            ContentError: it is not `consumerFilter.json`.
        """
        self._table.load(content, self._clock.now_ms())
        self.mark_saved(self.changes)
