"""The last step of every send: into the store, through the gate, and the answer made of it.

Owned by the event loop's task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.broker.answers import answer
from gantrymq.errors import InvalidValue
from gantrymq.store.status import PutStatus
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.message_id import offset_id_text
from gantrymq.wire.response_errors import (
    MessageIllegal,
    ResponseError,
    ServiceNotAvailable,
    SystemBusy,
    SystemFailure,
)

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable, Sequence

    from gantrymq.broker.answers import Asked
    from gantrymq.broker.settings import BrokerSettings, LiveSettings
    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.put import NewMessage, Stored
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Pending

STORED_CODES: Final = {
    PutStatus.PUT_OK: ResponseCode.SUCCESS,
    PutStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
}
"""The four outcomes of a message that is in the log; all of them carry its place."""


def region_fields(settings: BrokerSettings) -> dict[str, str]:
    """Return what every answer to a send has, refusals included."""
    return {
        "MSG_REGION": settings.region,
        "TRACE_ON": "true" if settings.trace_on else "false",
    }


def not_stored(status: PutStatus, store: MessageStore) -> ResponseError:
    """Return what a sender is told about a message that was not stored."""
    if status is PutStatus.SERVICE_NOT_AVAILABLE:
        reason = store.writability.reason or "the store takes no writes"
        return ServiceNotAvailable(f"service not available now: {reason}")
    if status is PutStatus.OS_PAGE_CACHE_BUSY:
        store.statistics.refused("PC_SYNCHRONIZED")
        # SYSTEM_ERROR as in 4.9.7, whose producers turn to another broker for that, and not for the
        # SYSTEM_BUSY of 5.x; producers of 5.x do so for both.
        return SystemFailure(
            "[PC_SYNCHRONIZED]broker busy, start flow control for a while: writing to the log "
            "takes too long (osPageCacheBusyTimeOutMills)"
        )
    if status in {PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED}:
        return MessageIllegal(
            "the message is illegal: a body over maxMessageSize, a topic that is too long or can "
            "be no directory, or properties over 32767 bytes"
        )
    if status is PutStatus.CREATE_MAPPED_FILE_FAILED:
        if store.pool is not None and store.pool.fails_fast and not store.pool.free:
            store.statistics.refused("REJECTREQUEST")
            return SystemBusy(
                "[REJECTREQUEST]system busy, start flow control for a while: no buffer of the "
                "transient store pool is free (transientStorePoolSize)"
            )
        return SystemFailure(
            "create mapped file failed, server is busy or broken; is the disk full?"
        )
    return SystemFailure(
        f"it is not known whether the message is safe: {store.gate.failure or 'the disk failed'}"
    )


class Storing:
    """Stores the messages of a send and answers it."""

    def __init__(
        self,
        store: MessageStore,
        settings: LiveSettings,
        store_host: bytes,
        new_future: Callable[[], Future[Answer]],
        stored: Callable[[Stored], None],
    ) -> None:
        """Tell `stored` what went into the log, for statistics."""
        self._store = store
        self._settings = settings
        self._store_host = store_host
        self._new_future = new_future
        self._stored = stored
        self._waiting = 0

    def store(
        self,
        asked: Asked,
        messages: Sequence[NewMessage],
        queue_id: int,
        *,
        transaction_id: str | None = None,
        recall_handle: str | None = None,
        oneway: bool = False,
    ) -> Pending:
        """Store messages of one queue; answer when they are as safe as the settings ask.

        The answer names `queue_id`: a message that waits elsewhere is on its way there.

        Raises:
            ResponseError: they were not stored.
        """
        self.check_room()
        try:
            stored = self._store.put(messages)
        except InvalidValue as error:  # properties too long with what the broker adds
            raise MessageIllegal(f"the message is illegal: {error}") from None
        if stored.status is not PutStatus.PUT_OK:
            raise not_stored(stored.status, self._store)
        self._stored(stored)
        fields = self._fields(stored, queue_id)
        if transaction_id is not None:
            fields["transactionId"] = transaction_id
        if recall_handle is not None:
            fields["recallHandle"] = recall_handle
        return self.wait(
            stored.end,
            lambda status: None if oneway else self._answer(asked, status, fields),
            waits=messages[0].waits,
        )

    @property
    def body_bytes_max(self) -> int:
        """Return how many bytes a body, or a whole batch, may have (maxMessageSize)."""
        return self._store.check.body_bytes_max

    @property
    def waiting(self) -> int:
        """Return how many sends wait for the disk or a slave."""
        return self._waiting

    @property
    def is_full(self) -> bool:
        """Tell whether as many sends wait for disk or slave as may."""
        return self._waiting >= self._settings.now.waiting_sends_max

    def check_room(self) -> None:
        """Refuse a send while as many wait for disk or slave as may.

        Raises:
            SystemBusy: there are too many.
        """
        if self.is_full:
            self._store.statistics.refused("OVERLOAD")
            raise SystemBusy(
                f"[OVERLOAD]broker busy: {self._waiting} sends wait for the disk or a slave "
                "(sendThreadPoolQueueCapacity); send to another broker, or later"
            )

    def wait(
        self, end: int, made: Callable[[PutStatus], Answer], *, waits: bool = True, sends: int = 1
    ) -> Answer | Future[Answer]:
        """Return what `made` makes of the outcome: now, or a future of it."""
        if self._store.waits_for_nothing:
            return made(PutStatus.PUT_OK)
        outcome: list[PutStatus] = []
        future: Future[Answer] | None = None

        def let_out(status: PutStatus) -> None:
            outcome.append(status)
            if future is not None:
                self._waiting -= sends
                if not future.done():
                    future.set_result(made(status))

        self._store.hold(end, let_out, waits=waits)
        if outcome:
            return made(outcome[0])
        self._waiting += sends
        future = self._new_future()
        return future

    def _fields(self, stored: Stored, queue_id: int) -> dict[str, str]:
        ids = [offset_id_text(self._store_host, offset) for offset in stored.log_offsets]
        return {
            "msgId": ",".join(ids),
            "queueId": str(queue_id),
            "queueOffset": str(stored.queue_offset),
            **region_fields(self._settings.now),
        }

    def _answer(self, asked: Asked, status: PutStatus, fields: dict[str, str]) -> Command:
        code = STORED_CODES.get(status)
        if code is None:
            error = not_stored(status, self._store)
            return answer(asked, error.code, region_fields(self._settings.now), remark=error.remark)
        return answer(asked, code, fields)
