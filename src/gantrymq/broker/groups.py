"""The consumer groups of a broker: their settings, what they may not read, their file.

The rules are those of Apache's `SubscriptionGroupManager`. Owned by one task (the event loop).
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from gantrymq.broker.attributes import GROUP_ATTRIBUTES, changed_attributes
from gantrymq.broker.saved_state import SavedState, read_file
from gantrymq.errors import InvalidValue
from gantrymq.limits import GROUPS_MAX
from gantrymq.model import names
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.offsets import DataVersion
from gantrymq.wire.bodies.encoded_groups import EncodedGroups
from gantrymq.wire.bodies.group import GroupTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gantrymq.clock import Clock

READ_BIT: Final = 2
"""Which bit of the forbidden table says that a group may not read a topic."""


def _ignore(_: object) -> None:
    """Be told of what nobody asked about."""


class Groups(SavedState):
    """The consumer groups of one broker."""

    file_name: ClassVar[str] = "subscriptionGroup.json"
    is_journaled: ClassVar[bool] = True

    def __init__(
        self,
        clock: Clock,
        *,
        auto_create: bool = True,
        changed: Callable[[SubscriptionGroup], None] = _ignore,
        removed: Callable[[str], None] = _ignore,
    ) -> None:
        super().__init__()
        self._clock = clock
        self.auto_create = auto_create
        """Whether an unknown group is made when it is asked for; may change at any time."""
        self._changed = changed
        self._removed = removed
        self._table = {name: SubscriptionGroup(name) for name in sorted(names.SYSTEM_GROUPS)}
        self._view = MappingProxyType(self._table)
        self._forbidden: dict[str, dict[str, int]] = {}
        self._version = DataVersion(timestamp_ms=clock.now_ms())
        self.encoded = EncodedGroups()

    # -- asking ---------------------------------------------------------------------------------

    @property
    def data_version(self) -> DataVersion:
        """Return the version that peers compare."""
        return self._version

    def find(self, name: str) -> SubscriptionGroup | None:
        """Return a group's settings."""
        return self._table.get(name)

    def all(self) -> Mapping[str, SubscriptionGroup]:
        """Return every group by name: a view, which changes with the table."""
        return self._view

    def table(self) -> GroupTable:
        """Return the table as a body or a file holds it."""
        return GroupTable(
            data_version=self._version,
            subscription_group_table=dict(self._table),
            forbidden_table={group: dict(topics) for group, topics in self._forbidden.items()},
        )

    @property
    def forbidden(self) -> Mapping[str, Mapping[str, int]]:
        """Return group to topic to the bits of what is forbidden."""
        return self._forbidden

    def is_forbidden(self, group: str, topic: str, bit: int = READ_BIT) -> bool:
        """Say whether something is forbidden to a group."""
        topics = self._forbidden.get(group)
        return topics is not None and bool(topics.get(topic, 0) >> bit & 1)

    def with_forbidden(self, name: str) -> tuple[SubscriptionGroup, dict[str, int]] | None:
        """Return a group's settings and what is forbidden to it, by topic; None without any."""
        group = self._table.get(name)
        return None if group is None else (group, dict(self._forbidden.get(name, {})))

    # -- changing -------------------------------------------------------------------------------

    def find_or_create(self, name: str) -> SubscriptionGroup | None:
        """Return a group's settings, made if they may be; None if not.

        The system's own groups are made even where others are not. A name that is not legal is
        nobody's group.
        """
        group = self._table.get(name)
        if group is not None:
            return group
        if not self.auto_create and not name.startswith(names.SYSTEM_GROUP_PREFIX):
            return None
        try:
            names.check_group(name)
            group = SubscriptionGroup(name)
            self.put(group)
        except InvalidValue:
            return None
        return group

    def put(self, group: SubscriptionGroup) -> None:
        """Create a group or change it, with the settings as they are.

        Raises:
            InvalidValue: its retry topic could not be a directory, or there are too many groups.
        """
        if group.name not in self._table:
            names.check_path_safe(names.retry_topic(group.name))
            if len(self._table) >= GROUPS_MAX:
                raise InvalidValue(
                    f"group {group.name!r} cannot be created: this broker has {GROUPS_MAX} groups, "
                    "which is the most; delete some"
                )
        self._table[group.name] = group
        self._bump()
        self._changed(group)

    def put_with_forbidden(self, group: SubscriptionGroup, forbidden: Mapping[str, int]) -> None:
        """Create a group or change it, with all that is forbidden to it.

        Raises:
            InvalidValue: as `put`.
        """
        if forbidden:
            self._forbidden[group.name] = dict(forbidden)
        else:
            self._forbidden.pop(group.name, None)
        self.put(group)

    def change(self, group: SubscriptionGroup) -> SubscriptionGroup:
        """Create a group or change it as a request says, and return what became of it.

        The request's attributes are changes (`attributes.parse_changes`) to those that are there.

        Raises:
            InvalidValue: as `put`, and for a change of attributes that cannot be.
        """
        current = self._table.get(group.name)
        attributes = changed_attributes(
            GROUP_ATTRIBUTES, None if current is None else current.attributes, group.attributes
        )
        result = msgspec.structs.replace(group, attributes=attributes)
        self.put(result)
        return result

    def remove(self, name: str) -> bool:
        """Delete a group's settings and what it may not read; False if there are none."""
        self._forbidden.pop(name, None)
        if self._table.pop(name, None) is None:
            return False
        self._bump()
        self._removed(name)
        return True

    def forbid(self, group: str, topic: str, *, bit: int = READ_BIT, forbidden: bool) -> None:
        """Forbid something to a group, or allow it again.

        Raises:
            InvalidValue: the group does not exist; then nothing is noted, so that the table of
                what is forbidden is never longer than that of groups.
        """
        if group not in self._table:
            raise InvalidValue(f"group {group[:64]!r} does not exist: create it first")
        topics = self._forbidden.get(group, {})
        before = topics.get(topic, 0)
        after = before | 1 << bit if forbidden else before & ~(1 << bit)
        if before == after:
            return
        if after:
            self._forbidden.setdefault(group, {})[topic] = after
        else:
            del topics[topic]
            if not topics:
                del self._forbidden[group]
        self._bump()
        self._changed(self._table[group])

    def adopt(self, table: GroupTable) -> None:
        """Become what a master's table says, version and all; tells what changed.

        Raises:
            InvalidValue: it is too long.
        """
        fresh = _checked(table)
        gone = self._table.keys() - fresh.keys()
        changed = [group for name, group in fresh.items() if self._table.get(name) != group]
        self._table.clear()
        self._take(table, fresh)
        self._changes += 1
        for name in gone:
            self._removed(name)
        for group in changed:
            self._changed(group)

    def _bump(self) -> None:
        self._version = self._version.next(self._clock.now_ms())
        self._changes += 1

    def _take(self, table: GroupTable, fresh: dict[str, SubscriptionGroup]) -> None:
        self._table.update(fresh)
        forbidden = table.forbidden_table or {}
        self._forbidden = {group: dict(topics) for group, topics in forbidden.items() if topics}
        self._version = table.data_version

    # -- the file -------------------------------------------------------------------------------

    def snapshot(self) -> Callable[[], bytes]:
        """Take a picture; what has not changed since the last one is encoded already."""
        return partial(b"".join, self.encoded.pieces(self.table()))

    def load(self, content: bytes) -> None:
        """Put the groups of a file over those that exist from the start.

        Raises:
            ContentError: it is not `subscriptionGroup.json`.
            InvalidValue: there are too many groups in it.
        """
        table = read_file(GroupTable, content, self.file_name)
        self._take(table, _checked(table))


def _checked(table: GroupTable) -> dict[str, SubscriptionGroup]:
    """Return the groups of a file or of a peer under the names that they will be looked up by."""
    groups = table.subscription_group_table
    if len(groups) > GROUPS_MAX:
        raise InvalidValue(f"a table of {len(groups)} groups: at most {GROUPS_MAX} are taken")
    return {
        name: group if group.name == name else msgspec.structs.replace(group, name=name)
        for name, group in groups.items()
    }
