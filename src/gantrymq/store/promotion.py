"""A slave's store becomes a master's, without a restart.

What was copied of a record that did not come whole is dropped: nobody was ever told that such a
record is safe, for a master waits for the ends of records. Everything before it must be forced, as
the settings ask, and dispatched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.errors import InvalidValue
from gantrymq.store.errors import StoreNotWritable

if TYPE_CHECKING:
    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.settings import StoreSettings


def dispatch_all(store: MessageStore) -> None:
    """Dispatch what may be shown, here and now, however many slices it is.

    Where an epoch begins is told by it: too early, and others would drop what is acknowledged.
    """
    before = -1
    while store.dispatched_offset != before:
        before = store.dispatched_offset
        store.retry_dispatch()


def whole_end(store: MessageStore) -> int:
    """Return where the last whole record of a log ends, as far as it is dispatched.

    On a slave that is all of it. A master that serves may have slices left, and time.
    """
    if store.writability.is_slave:
        dispatch_all(store)
    else:
        store.retry_dispatch()
    return store.dispatched_offset


def promote(store: MessageStore, settings: StoreSettings, end: int) -> None:
    """Take sends from now on, behind `end`, which is the log's end but for part of a record.

    Raises:
        StoreNotWritable: it is not open, or its log is not dispatched up to there.
    """
    reason = store.writability.replica_reason
    if reason is None and whole_end(store) != end:
        reason = f"the log is dispatched up to {store.dispatched_offset}, not {end}"
    if reason is not None:
        raise StoreNotWritable(reason)
    try:
        store.log.cut_tail(end)
    except InvalidValue as error:
        raise StoreNotWritable(str(error)) from None
    store.flush.cut(end)
    store.writability.is_slave = False
    store.holding.change_role(settings)
    store.reads.correct_offsets()
    store.change_settings(settings)
