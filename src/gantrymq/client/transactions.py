"""Transactions: a message that appears only if the application's own transaction succeeds.

    producer                                         broker
    half message ──────────────────────────────────▶ stored where nobody sees it
    execute()
    END_TRANSACTION: commit, roll back or unknown ─▶ moved to its topic, or forgotten
                     ◀── CHECK_TRANSACTION_STATE     when nothing came, or unknown
    check()
    END_TRANSACTION ───────────────────────────────▶

The broker asks any member of the producer group, which may be another process than the one that
sent the message: `check` must know from the message alone how the transaction ended. It asks those
that it has heartbeats of: of a producer that has sent to it or asked for `queues` of a topic there,
and, where brokers make topics by themselves, of any that has a `check`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from gantrymq.client.consuming.handling import as_async
from gantrymq.client.consuming.threads import HandlerThreads
from gantrymq.client.errors import NoRoute, NoRouteCause
from gantrymq.client.received import ReceivedMessage
from gantrymq.client.results import TransactionResult, TransactionState
from gantrymq.errors import GantryError, InvalidValue, shown
from gantrymq.limits import ERROR_TEXT_CHARACTERS_MAX
from gantrymq.model.message import OffsetId
from gantrymq.model.names import TEMPLATE_TOPIC
from gantrymq.wire import properties as names
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.transaction import CheckTransactionStateRequest, EndTransactionRequest
from gantrymq.wire.record import decode_record
from gantrymq.wire.sysflag import TransactionType, with_transaction_type

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gantrymq.client.core import ClientCore
    from gantrymq.client.outgoing import Outgoing
    from gantrymq.client.results import SendResult
    from gantrymq.client.tracing import Tracer
    from gantrymq.model.message import Message
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer

logger = logging.getLogger(__name__)

CHECKS_MAX: Final = 2000
"""Questions of brokers that wait for `check`; they ask again about those past it."""
CHECKS_AT_ONCE: Final = 16
EXECUTES_AT_ONCE: Final = 64
"""Threads for `execute` functions that are plain ones."""

Execute: TypeAlias = "Callable[[Message], Awaitable[TransactionState] | TransactionState]"
"""The application's transaction: does it, and says how it ended."""
Check: TypeAlias = "Callable[[ReceivedMessage], Awaitable[TransactionState] | TransactionState]"
"""Says how the transaction of a message ended, or UNKNOWN."""
Given = TypeVar("Given")


def _remark(error: BaseException | None) -> str | None:
    """Return what the broker may log about a function that failed."""
    if error is None:
        return None
    return shown(f"{type(error).__name__}: {error}", ERROR_TEXT_CHARACTERS_MAX)


async def run_user_code(
    function: Callable[[Given], Awaitable[TransactionState] | TransactionState],
    given: Given,
    threads: HandlerThreads,
) -> TransactionState:
    """Return what a user's function says; a plain one runs in a thread, for it may block.

    Not in the loop's own executor: functions that never return would take its few threads, and
    whatever else needs one would wait with them.

    Raises:
        InvalidValue: it is no TransactionState.
    """
    found: object = await as_async(function, lambda: threads)(given)
    if not isinstance(found, TransactionState):
        raise InvalidValue(
            f"a transaction returned {shown(repr(found))}: return TransactionState.COMMIT,"
            " ROLLBACK or UNKNOWN"
        )
    return found


class Transactions:
    """The transactions of one producer. Owned by the event loop's thread."""

    def __init__(
        self, core: ClientCore, group: str, check: Check | None, tracer: Tracer | None
    ) -> None:
        self._core = core
        self._group = group
        self._check = check
        self._tracer = tracer
        self._checks = 0
        self._at_once = asyncio.Semaphore(CHECKS_AT_ONCE)
        self._check_threads = HandlerThreads(CHECKS_AT_ONCE, "gantrymq-check")
        self._execute_threads = HandlerThreads(EXECUTES_AT_ONCE, "gantrymq-execute")
        self.checks_dropped = 0
        """Questions that were not answered because too many waited."""
        core.incoming.on(RequestCode.CHECK_TRANSACTION_STATE, self._on_check)
        if check is not None:
            core.spawn(self._meet_brokers(), "brokers that may ask")

    async def _meet_brokers(self) -> None:
        """Find the brokers that make topics by themselves, so that heartbeats go to them.

        A producer that was started again may have questions to answer before it sends anything.
        """
        routes, wait_s = self._core.routes, self._core.settings.route_s
        while True:
            try:
                await routes.get(TEMPLATE_TOPIC)
            except NoRoute as error:
                if error.cause is NoRouteCause.UNKNOWN_TOPIC:
                    return  # there are none: those of its topics know it with its first send
            else:
                return
            await asyncio.sleep(wait_s)

    def close(self) -> None:
        """Let threads end; wait for none."""
        self._check_threads.close()
        self._execute_threads.close()

    def refuse_without_check(self) -> None:
        """Refuse to begin a transaction that nobody could be asked about.

        Raises:
            InvalidValue: the producer has no `check`.
        """
        if self._check is None:
            raise InvalidValue(
                "the producer has no check= function: a broker that hears nothing of a"
                " transaction asks how it ended, so give Producer(check=...)"
            )

    @staticmethod
    def half(outgoing: Outgoing) -> Outgoing:
        """Return the message as one that nobody sees yet."""
        outgoing.sys_flag = with_transaction_type(outgoing.sys_flag, TransactionType.PREPARED)
        return outgoing

    async def finish(
        self, message: Message, sent: SendResult, execute: Execute
    ) -> TransactionResult:
        """Run the application's part and tell the broker how it ended.

        Raises:
            Exception: what `execute` raised; the broker has been told UNKNOWN.
        """
        if not sent.is_ok:
            # It may be lost with its broker: nothing must depend on it.
            await self._end_sent(message, sent, TransactionState.ROLLBACK)
            return TransactionResult(sent, TransactionState.ROLLBACK)
        try:
            state = await run_user_code(execute, message, self._execute_threads)
        except BaseException as error:
            await self._end_sent(message, sent, TransactionState.UNKNOWN, error)
            raise
        await self._end_sent(message, sent, state)
        return TransactionResult(sent, state)

    async def _end_sent(
        self,
        message: Message,
        sent: SendResult,
        state: TransactionState,
        error: BaseException | None = None,
    ) -> None:
        first_id = sent.offset_id.partition(",")[0]
        header = EndTransactionRequest(
            producer_group=self._group,
            tran_state_table_offset=sent.offset,
            commit_log_offset=OffsetId.parse(first_id).log_offset,
            commit_or_rollback=int(state),
            from_transaction_check=False,
            msg_id=sent.message_id,
            transaction_id=sent.transaction_id or sent.message_id,
            topic=sent.queue.topic,
        )
        route = self._core.routes.known(sent.queue.topic)
        address = route.address(sent.queue.broker_name) if route is not None else None
        if address is None:
            logger.warning("the broker of transaction %s is gone, and will ask", sent.message_id)
        else:
            await self._tell(address, header, error)
        if self._tracer is not None:
            self._tracer.end(message, sent, state, from_check=False)

    async def _tell(
        self, address: str, header: EndTransactionRequest, error: BaseException | None
    ) -> None:
        """Tell a broker; if that fails it will ask."""
        code = RequestCode.END_TRANSACTION
        try:
            await self._core.remote.tell(address, code, header, remark=_remark(error))
        except GantryError as failure:
            logger.warning(
                "broker %s was not told how the transaction of %s ended, and will ask: %s",
                address, header.msg_id, failure,
            )  # fmt: skip

    # -- when the broker asks ---------------------------------------------------------------------

    def _on_check(self, command: Command, peer: Peer) -> None:
        header = CheckTransactionStateRequest.decode(command.fields)
        record, _behind = decode_record(command.body, 0, len(command.body))
        if record.properties.get(names.PRODUCER_GROUP) not in {None, self._group}:
            logger.warning("asked about a transaction of another group: %s", record.properties)
            return
        if self._check is None or self._checks >= CHECKS_MAX:
            self.checks_dropped += 1
            logger.warning(
                "a broker asks how the transaction of %s ended and gets no answer: %s",
                header.msg_id,
                "the producer has no check=" if self._check is None else "too many questions wait",
            )
            return
        message = ReceivedMessage(record, "", self._core.namespace.unwrap(record.topic))
        self._checks += 1
        self._core.spawn(self._answer(self._check, header, message, peer), "transaction check")

    async def _answer(
        self,
        check: Check,
        header: CheckTransactionStateRequest,
        message: ReceivedMessage,
        peer: Peer,
    ) -> None:
        error: Exception | None = None
        state = TransactionState.UNKNOWN
        try:
            async with self._at_once:
                state = await run_user_code(check, message, self._check_threads)
        except Exception as caught:  # whatever it is, the broker asks again
            logger.exception("check= failed for the transaction of %s", message.message_id)
            error = caught
        finally:
            self._checks -= 1
        end = EndTransactionRequest(
            producer_group=self._group,
            tran_state_table_offset=header.tran_state_table_offset,
            commit_log_offset=header.commit_log_offset,
            commit_or_rollback=int(state),
            from_transaction_check=True,
            msg_id=message.message_id,
            transaction_id=header.transaction_id,
            topic=message.record.topic,
        )
        code, remark = RequestCode.END_TRANSACTION, _remark(error)
        if not self._core.remote.tell_peer(peer, code, end, remark=remark):
            logger.warning("broker %s is gone that asked about %s", peer.address, end.msg_id)
        if self._tracer is not None:
            self._tracer.end_checked(message, state)
