"""Names that belong to the system: no command changes or deletes them, whatever it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.errors import InvalidValue
from gantrymq.model.names import is_system_group, is_system_topic

if TYPE_CHECKING:
    from collections.abc import Collection


class Untouchable(InvalidValue):
    """The name is the system's own."""


def check_may_change_topic(topic: str, named_after: Collection[str] = ()) -> None:
    """Refuse a topic of the system, or one that is named after a cluster or a broker.

    Raises:
        Untouchable: it is one.
    """
    if is_system_topic(topic) or topic in named_after:
        raise Untouchable(f"{topic} is a system topic: it cannot be changed or deleted")


def check_may_change_group(group: str) -> None:
    """Refuse a group of the system.

    Raises:
        Untouchable: it is one.
    """
    if is_system_group(group):
        raise Untouchable(f"{group} is a system group: it cannot be changed or deleted")
