"""Deleting a topic or a group with everything that belongs to it, in one place.

Messages stay in the commit log as long as its files do; nobody is led to them any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.model.names import pop_retry_topic

if TYPE_CHECKING:
    from gantrymq.broker.admin.parts import AdminParts


def delete_topic(parts: AdminParts, topic: str) -> None:
    """Forget a topic: settings, queues, offsets, modes, filters, counts, pulls that wait, pops.

    The retry topics that pops of it have made go with it. A topic without settings may still have
    queues; those go, too.

    Raises:
        InvalidValue: it cannot be the name of a directory.
    """
    tables = parts.tables
    retries = {
        pop_retry_topic(group, topic, version)
        for group in tables.offsets.groups_of(topic)
        for version in (1, 2)
    }
    for name in (topic, *(retry for retry in retries if tables.topics.find(retry) is not None)):
        tables.topics.remove(name)
        parts.store.delete_topic(name)
        tables.offsets.remove_topic(name)
        tables.modes.remove_topic(name)
        tables.filters.remove_topic(name)
        parts.timed.forget_topic(name)
        parts.counting.collect()  # what was counted of it and not taken in would bring it back
        parts.counting.broker.forget_topic(name)
        parts.counting.store.forget_topic(name)
        parts.held.release_topic(name)
    parts.selections.forget()


def delete_group(parts: AdminParts, group: str, *, with_offsets: bool) -> None:
    """Forget a group: settings, what it may not read, locks, modes, filters, counts, pops.

    Its offsets go only if that is said, as with Apache. Its retry and dead-letter topics are
    topics, which `deleteSubGroup` deletes by requests of their own.
    """
    tables = parts.tables
    tables.groups.remove(group)
    if with_offsets:
        tables.offsets.remove_group(group)
    tables.locks.remove_group(group)
    tables.modes.remove_group(group)
    tables.filters.remove_group(group)
    parts.timed.forget_group(group)
    parts.counting.collect()
    parts.counting.broker.forget_group(group)
    parts.selections.forget()
