"""All families of admin requests joined into one table of handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.broker.admin.access import AccessRequests
from gantrymq.broker.admin.assignments import AssignmentRequests
from gantrymq.broker.admin.cleaning import CleaningRequests
from gantrymq.broker.admin.configuration import ConfigurationRequests
from gantrymq.broker.admin.connections import ConnectionRequests
from gantrymq.broker.admin.consumption import ConsumptionRequests
from gantrymq.broker.admin.copies import CopyRequests
from gantrymq.broker.admin.forwarding import ForwardedRequests
from gantrymq.broker.admin.groups import GroupRequests
from gantrymq.broker.admin.queue_entries import QueueEntryRequests
from gantrymq.broker.admin.reset import ResetRequests
from gantrymq.broker.admin.runtime import RuntimeRequests
from gantrymq.broker.admin.topics import TopicRequests

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.admin.configuration import Changed, LiveChanges
    from gantrymq.broker.admin.parts import AdminParts
    from gantrymq.store.files import Files
    from gantrymq.store.settings import StoreSettings
    from gantrymq.wire.peer import Handler


def admin_handlers(
    parts: AdminParts,
    files: Files,
    changes: LiveChanges,
    *,
    store_settings: Callable[[], StoreSettings],
    waiting_sends: Callable[[], int],
    apply: Callable[[Changed], None],
) -> dict[int, Handler]:
    """Return the handler of every admin request."""
    families = (
        TopicRequests(parts),
        GroupRequests(parts),
        ConsumptionRequests(parts),
        ResetRequests(parts),
        ForwardedRequests(parts),
        ConnectionRequests(parts),
        QueueEntryRequests(parts),
        RuntimeRequests(parts, files, store_settings, waiting_sends),
        ConfigurationRequests(parts, changes, store_settings, apply),
        CleaningRequests(parts),
        CopyRequests(parts),
        AssignmentRequests(parts),
        AccessRequests(parts),
    )
    return {code: handler for family in families for code, handler in family.handlers.items()}
