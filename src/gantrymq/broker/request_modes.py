"""5.x: pull or pop by topic and group (401), and which member has which queues (400).

A member that does not balance by itself asks the broker for its queues. The broker shares them out
by the same arithmetic as Java's clients do (`AllocateMessageQueueAveragely` and its neighbours), so
that members that ask and members that count for themselves agree.

The table is owned by one task (the event loop); `assign` and `assign_for_pop` keep nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from gantrymq.broker.saved_state import SavedState, read_file
from gantrymq.errors import InvalidValue, shown
from gantrymq.limits import REQUEST_MODES_MAX
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.model.sharing import averagely, by_circle, by_consistent_hash, java_order
from gantrymq.wire.bodies.assignment import (
    REQUEST_MODE_TABLE,
    RequestModeSetting,
    RequestModeTable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_ANY_QUEUE: Final = QueueId(-1)


class RequestModes(SavedState):
    """Which topics a group pops."""

    file_name: ClassVar[str] = "messageRequestMode.json"
    is_journaled: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._table: dict[str, dict[str, RequestModeSetting]] = {}

    def find(self, topic: str, group: str) -> RequestModeSetting | None:
        """Return what was set for a topic and group."""
        return self._table.get(topic, {}).get(group)

    def put(self, setting: RequestModeSetting) -> None:
        """Set pull or pop for a topic and group.

        Raises:
            InvalidValue: there are too many settings.
        """
        is_new = self.find(setting.topic, setting.consumer_group) is None
        if is_new and sum(map(len, self._table.values())) >= REQUEST_MODES_MAX:
            raise InvalidValue(
                f"no room for the request mode of {shown(setting.topic)!r}: this broker keeps "
                f"{REQUEST_MODES_MAX}, which is the most"
            )
        self._table.setdefault(setting.topic, {})[setting.consumer_group] = setting
        self._changes += 1

    def remove_topic(self, topic: str) -> None:
        """Forget a topic that was deleted."""
        if self._table.pop(topic, None) is not None:
            self._changes += 1

    def remove_group(self, group: str) -> None:
        """Forget a group that was deleted."""
        for topic, groups in list(self._table.items()):
            if groups.pop(group, None) is not None:
                self._changes += 1
                if not groups:
                    del self._table[topic]

    def entries(self) -> dict[tuple[str, str], RequestModeSetting]:
        """Return every setting by topic and group."""
        return {
            (topic, group): setting
            for topic, groups in self._table.items()
            for group, setting in groups.items()
        }

    def apply_changes(self, changes: Mapping[tuple[str, str], RequestModeSetting | None]) -> None:
        """Take over what a journal says; None is a setting that is gone.

        Raises:
            InvalidValue: there are too many settings.
        """
        for (topic, group), setting in changes.items():
            if setting is not None:
                self.put(setting)
            elif self._table.get(topic, {}).pop(group, None) is not None:
                self._changes += 1
                if not self._table[topic]:
                    del self._table[topic]

    def table(self) -> RequestModeTable:
        """Return the table as a body or a file holds it."""
        return RequestModeTable(
            message_request_mode_map={topic: dict(groups) for topic, groups in self._table.items()}
        )

    def snapshot(self) -> Callable[[], bytes]:
        """Take a picture."""
        table = self.table()
        return lambda: REQUEST_MODE_TABLE.encode(table)

    def load(self, content: bytes) -> None:
        """Take over a file.

        Raises:
            ContentError: it is not `messageRequestMode.json`.
            InvalidValue: there are too many settings in it.
        """
        self._take(read_file(RequestModeTable, content, self.file_name))

    def adopt(self, table: RequestModeTable) -> None:
        """Become what a master's table says.

        Raises:
            InvalidValue: it is too long.
        """
        self._take(table)
        self._changes += 1

    def _take(self, table: RequestModeTable) -> None:
        modes = table.message_request_mode_map
        count = sum(map(len, modes.values()))
        if count > REQUEST_MODES_MAX:
            raise InvalidValue(f"{count} request modes: at most {REQUEST_MODES_MAX} are taken")
        self._table = {topic: dict(groups) for topic, groups in modes.items() if groups}


def assign(
    strategy: str, client_id: str, queues: Iterable[MessageQueue], client_ids: Iterable[str]
) -> list[MessageQueue]:
    """Return the queues of one member, which are none for who is not a member.

    Raises:
        InvalidValue: there is no such strategy.
    """
    share = _STRATEGIES.get(strategy)
    if share is None:
        raise InvalidValue(
            f"there is no strategy {shown(strategy)!r}: give one of {', '.join(_STRATEGIES)}"
        )
    ordered, members = sorted(queues), sorted(client_ids, key=java_order)
    return share(client_id, members, ordered) if client_id in members else []


def assign_for_pop(
    strategy: str,
    client_id: str,
    queues: Iterable[MessageQueue],
    client_ids: Iterable[str],
    shared_with: int,
) -> list[MessageQueue]:
    """Return the queues that a member pops from: its own and those of as many neighbours.

    With nobody to share with, or with everybody, it is every broker's, without naming a queue.

    Raises:
        InvalidValue: there is no such strategy.
    """
    ordered, members = sorted(queues), sorted(client_ids, key=java_order)
    if shared_with <= 0 or shared_with >= len(members) - 1:
        return [msgspec.structs.replace(queue, queue_id=_ANY_QUEUE) for queue in ordered]
    if client_id not in members or not ordered:
        return []
    place = members.index(client_id)
    if len(members) > len(ordered):
        return [ordered[place % len(ordered)]]
    sharers = [members[(place + step) % len(members)] for step in range(shared_with + 1)]
    return [queue for sharer in sharers for queue in assign(strategy, sharer, ordered, members)]


_STRATEGIES: Final = {
    "AVG": averagely,
    "AVG_BY_CIRCLE": by_circle,
    "CONSISTENT_HASH": by_consistent_hash,
}
"""Under the names that clients send."""
