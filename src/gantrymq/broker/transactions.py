"""END_TRANSACTION: a producer has decided about a half message, of its own accord or being asked.

A commit stores the message for its real topic and, when that is as safe as the settings ask, the op
record that says the half message is done with; a rollback stores the op record alone. A decision
counts once: a second one for the same half message publishes nothing, also while the first is on
its way to the disk.

What holds: a message that was rolled back is never seen. One that was committed is seen, and once,
unless the broker is killed between its storing and that of its op record; then its producer is
asked again, and it is seen twice. A commit that is refused or lost is asked about again.

`transactions_checking` and `transactions_asking` ask, `transactions_ledger` knows what is open,
`transactions_ops` writes and reads the op records.

Owned by the event loop's task.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.broker.answers import answer
from gantrymq.broker.half import COMMIT, ROLLBACK, committed, half_of, resumed
from gantrymq.broker.questions import copied, then
from gantrymq.broker.stored_again import decode
from gantrymq.broker.storing import not_stored
from gantrymq.broker.timer.rules import asks_for_timer
from gantrymq.broker.transactions_asking import Asking, AskingParts
from gantrymq.broker.transactions_checking import CheckBack, CheckParts
from gantrymq.broker.transactions_ledger import COMMITTED, OPEN, ROLLED_BACK, TAKEN, Ledger
from gantrymq.broker.transactions_ops import OpQueue
from gantrymq.errors import InvalidValue
from gantrymq.model.message import OffsetId
from gantrymq.model.names import CHECKED_TOO_OFTEN_TOPIC, HALF_TOPIC
from gantrymq.store.questions import Questions
from gantrymq.store.status import PutStatus
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.headers.transaction import EndTransactionRequest, ResumeCheckHalfMessageRequest
from gantrymq.wire.response_errors import (
    IllegalOperation,
    InvalidParameter,
    SlaveNotAvailable,
    SystemBusy,
    SystemFailure,
)

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

    from gantrymq.broker.half import Half
    from gantrymq.broker.settings import LiveSettings
    from gantrymq.broker.storing import Storing
    from gantrymq.broker.tables import Tables
    from gantrymq.broker.timer.rules import Timing
    from gantrymq.clock import Clock
    from gantrymq.store.message_store import MessageStore
    from gantrymq.store.put import Stored
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Answer, Handler, Peer, Pending

WAITING_MAX: Final = 10_000
"""Decisions that wait while the op queue is read after a start."""
_STATES: Final = {COMMIT: COMMITTED, ROLLBACK: ROLLED_BACK}


class TransactionParts(NamedTuple):
    """What transactions work with."""

    store: MessageStore
    storing: Storing
    tables: Tables
    settings: LiveSettings
    timing: Timing
    clock: Clock
    store_host: bytes
    new_future: Callable[[], Future[Answer]]
    reserved_ms: Callable[[], int]
    """How long the log keeps messages (`fileReservedTime`)."""
    is_slave: Callable[[], bool]
    wake: Callable[[], None]
    """Brings the next `tick` forward."""
    stored: Callable[[Stored], None]
    """Told what was committed, for statistics."""
    ended: Callable[[str, bool], None] = lambda _topic, _committed: None
    """Told the topic of a transaction and whether it was committed, for statistics."""


class Transactions:
    """Ends transactions, and sees to it that they end."""

    def __init__(self, parts: TransactionParts) -> None:
        self._parts = parts
        self.ledger = Ledger()
        self._ops = OpQueue(
            parts.store, self.ledger, parts.tables.offsets, parts.clock, parts.store_host
        )
        asking = Asking(
            AskingParts(
                parts.store,
                self.ledger,
                self._ops,
                parts.tables.topics,
                parts.tables.clients,
                parts.settings,
                parts.clock,
                parts.store_host,
                parts.reserved_ms,
            )
        )
        self._check_back = CheckBack(
            CheckParts(
                parts.store,
                self.ledger,
                self._ops,
                asking,
                parts.settings,
                parts.clock,
                parts.is_slave,
                parts.wake,
                self._loaded,
            )
        )
        self._waiters: list[Future[Answer]] = []

    @property
    def handlers(self) -> dict[int, Handler]:
        """Return what is handled here."""
        return {
            RequestCode.END_TRANSACTION: self.end,
            RequestCode.RESUME_CHECK_HALF_MESSAGE: self.resume,
        }

    @property
    def waiting(self) -> int:
        """Return how many decisions wait for the op queue to be read."""
        return len(self._waiters)

    def tick(self, now: float) -> float:
        """Ask producers, if it is time; return when to be called again."""
        return self._check_back.tick(now)

    def close(self) -> None:
        """Let go those who still wait; called before the store closes."""
        self._loaded()

    # -- deciding -------------------------------------------------------------------------------

    def end(self, request: Command, _peer: Peer) -> Pending:
        """Commit or roll back; "not known yet" has no answer."""
        header = EndTransactionRequest.decode(request.fields)
        if self._parts.is_slave():
            raise SlaveNotAvailable("this broker is a slave; end transactions at its master")
        if header.commit_or_rollback not in _STATES:
            return None
        if self.ledger.is_loaded:
            return self._end(request, header)
        if len(self._waiters) >= WAITING_MAX:
            raise self._busy("too many decisions wait for the op queue to be read")
        return self._end_later(request, header)

    async def _end_later(self, request: Command, header: EndTransactionRequest) -> Answer:
        """Wait until it is known which half messages are open."""
        while not self.ledger.is_loaded:
            waiter = self._parts.new_future()
            self._waiters.append(waiter)
            await waiter
            if not self._parts.store.writability.is_open:
                raise self._busy("this broker is stopping")
        pending = self._end(request, header)
        if asyncio.isfuture(pending) or asyncio.iscoroutine(pending):
            return await pending
        return pending

    def _loaded(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _end(self, request: Command, header: EndTransactionRequest) -> Pending:
        """Look at the half message, which may be cold if its producer took long, and decide."""
        store = self._parts.store
        if header.commit_log_offset >= store.dispatched_offset:
            # Slaves have still to report it; its end will lie behind it in the log.
            stored = Questions(store.log, store.queues, None, lambda: store.log.committed_offset)
            raw = copied(stored.record_at(header.commit_log_offset))
            return self._decide(request, header, self._half(header, raw))
        return then(
            self._parts.store,
            lambda store: copied(store.record_at(header.commit_log_offset)),
            lambda raw: self._decide(request, header, self._half(header, raw)),
        )

    def _decide(
        self, request: Command, header: EndTransactionRequest, half: Half
    ) -> Answer | Future[Answer]:
        if not self.ledger.is_loaded:
            raise self._busy("the op queue is read again")
        offset = self.ledger.current(header.tran_state_table_offset)
        state = self.ledger.state(offset)
        if state == _STATES[header.commit_or_rollback]:
            return answer(request, remark="this transaction was ended so already")
        if state == TAKEN:
            raise self._busy("this transaction is being ended")
        if state != OPEN:
            raise SystemFailure(
                f"half message {offset} is no longer open: it was decided before, or its producers "
                "were asked about it at another offset and will be again"
            )
        if not self.ledger.has_room(offset):
            self._ops.save()
        if not self.ledger.has_room(offset):
            raise self._busy(f"half message {offset} is too far behind the oldest open one")
        self._check_time(header, half)
        self._parts.storing.check_room()
        if header.commit_or_rollback == COMMIT:
            return self._commit(request, half, offset)
        return self._roll_back(request, half, offset)

    @staticmethod
    def _busy(why: str) -> SystemBusy:
        return SystemBusy(f"{why}; producers are asked about it later")

    @staticmethod
    def _half(header: EndTransactionRequest, raw: bytes | None) -> Half:
        """Return the half message that a decision is about, out of its record.

        Raises:
            SystemFailure: it is not there, or is another's.
        """
        record = None if raw is None else decode(raw)
        if record is None or record.topic != HALF_TOPIC.encode():
            raise SystemFailure(
                f"find prepared transaction message failed: no half message at log offset "
                f"{header.commit_log_offset}"
            )
        half = half_of(record)
        if half.group != header.producer_group:
            raise SystemFailure(
                f"the producer group wrong: {header.producer_group}, the half message is of "
                f"{half.group or 'no group'}"
            )
        if half.offset != header.tran_state_table_offset:
            raise SystemFailure(
                f"the transaction state table offset wrong: {header.tran_state_table_offset}, "
                f"the half message has {half.offset}"
            )
        if not half.is_whole:
            raise SystemFailure("the half message does not say where it belongs (REAL_TOPIC)")
        return half

    def _check_time(self, header: EndTransactionRequest, half: Half) -> None:
        """Refuse what comes so late that the producer is being asked, as 5.x does.

        Raises:
            IllegalOperation: it is later than the message itself allows.
        """
        if half.immune_ms is None or header.from_transaction_check:
            return
        if half.age_ms(self._parts.clock.now_ms()) > half.immune_ms:
            raise IllegalOperation(
                f"the transaction is ended later than {half.immune_ms // 1000} s after its message "
                "(CHECK_IMMUNITY_TIME_IN_SECONDS); its producers are asked"
            )

    def _commit(self, request: Command, half: Half, offset: int) -> Answer | Future[Answer]:
        message = committed(half)
        if asks_for_timer(message.properties):
            # Its time is counted from now on; until then nobody could have seen it anyway.
            message, _handle = self._parts.timing.as_timer(message)
        stored = self._parts.store.put([message])
        if stored.status is not PutStatus.PUT_OK:
            raise not_stored(stored.status, self._parts.store)
        self._parts.stored(stored)
        self.ledger.mark(offset, TAKEN)

        def safe(status: PutStatus) -> None:
            if status.is_stored:
                self._parts.ended(half.topic, True)
                self._ops.write(offset, COMMITTED)
            else:
                self.ledger.mark(offset, OPEN)

        # Not part of the answer, which is not made for a connection that has gone.
        self._parts.store.hold(stored.end, safe)
        return self._answer(request, stored)

    def _roll_back(self, request: Command, half: Half, offset: int) -> Answer | Future[Answer]:
        stored = self._ops.write(offset, ROLLED_BACK)
        if stored.status is not PutStatus.PUT_OK:
            raise not_stored(stored.status, self._parts.store)
        self._parts.ended(half.topic, False)
        return self._answer(request, stored)

    def _answer(self, request: Command, stored: Stored) -> Answer | Future[Answer]:
        """Answer when what was stored is safe."""

        def outcome(status: PutStatus) -> Answer:
            if status.is_stored:
                return answer(request, ResponseCode.SUCCESS)
            error = not_stored(status, self._parts.store)
            return answer(request, error.code, remark=error.remark)

        return self._parts.storing.wait(stored.end, outcome)

    # -- by an operator -------------------------------------------------------------------------

    def resume(self, request: Command, _peer: Peer) -> Pending:
        """Put a message that was given up back among the half messages, with no checks counted."""
        header = ResumeCheckHalfMessageRequest.decode(request.fields)
        try:
            place = OffsetId.parse(header.msg_id or "")
        except InvalidValue as error:
            raise InvalidParameter(str(error)) from None
        return then(
            self._parts.store,
            lambda store: copied(store.record_at(place.log_offset)),
            lambda raw: self._put_back(request, header, raw),
        )

    def _put_back(
        self, request: Command, header: ResumeCheckHalfMessageRequest, raw: bytes | None
    ) -> Pending:
        record = None if raw is None else decode(raw)
        if record is None or record.topic != CHECKED_TOO_OFTEN_TOPIC.encode():
            raise SystemFailure(
                f"put message back to {HALF_TOPIC} failed: there is no message of "
                f"{CHECKED_TOO_OFTEN_TOPIC} with the id {header.msg_id}"
            )
        half = half_of(record)
        if not half.is_whole:
            raise SystemFailure("the message does not say whose it is and where it belongs")
        stored = self._parts.store.put([resumed(half)])
        if stored.status is not PutStatus.PUT_OK:
            raise not_stored(stored.status, self._parts.store)
        return self._answer(request, stored)
