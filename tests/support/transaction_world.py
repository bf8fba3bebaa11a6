"""A broker's transactions with nothing around them: a store on a simulated disk, its tables, and
producers that answer when a test says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from gantrymq.broker.half import COMMIT, HALF_QUEUE, ROLLBACK, as_half
from gantrymq.broker.router import Router
from gantrymq.broker.settings import BrokerSettings, LiveSettings
from gantrymq.broker.storing import Storing
from gantrymq.broker.tables import make_tables
from gantrymq.broker.timer.rules import Timing
from gantrymq.broker.transactions import TransactionParts, Transactions
from gantrymq.broker.transactions_ops import GROUP
from gantrymq.model.names import CHECKED_TOO_OFTEN_TOPIC, HALF_OP_TOPIC, HALF_TOPIC
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.transaction import CheckTransactionStateRequest, EndTransactionRequest
from support.client_peers import FakePeer, heartbeat
from support.store_rig import STORE_HOST, Rig, message

if TYPE_CHECKING:
    from gantrymq.kernel.values import Record
    from gantrymq.wire.peer import Answer, Pending

__all__ = ["COMMIT", "ROLLBACK", "Sent", "World"]

UNKNOWN = 0
PRODUCERS = "PG"
TICKS_MAX = 1_000


class Sent(NamedTuple):
    """What a producer knows of its half message: from the answer to its send, or a question."""

    offset: int
    log_offset: int
    body: bytes = b""
    asked: bool = False


@dataclass
class World:
    """Transactions, and what the tests ask of them."""

    rig: Rig = field(default_factory=lambda: Rig({"mappedFileSizeCommitLog": "65536"}))
    changes: dict[str, object] = field(default_factory=dict)
    saved: bytes = b""
    """`consumerOffset.json` as it was saved last."""
    reserved_ms: int = 72 * 3_600_000
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def __post_init__(self) -> None:
        """Start."""
        self.clock = self.rig.clock
        self.settings = LiveSettings(
            BrokerSettings(name="broker-a", **self.changes)  # type: ignore[arg-type]
        )
        self.tables = make_tables(
            self.settings,
            self.clock,
            18,
            topic_changed=lambda _topic: None,
            topic_removed=lambda _name: None,
            group_changed=lambda _name: None,
            mismatch_changed=lambda _mismatch: None,
        )
        if self.saved:
            self.tables.offsets.load(self.saved)
        self.is_slave = False
        self.wakes = 0
        self.storing = Storing(
            self.rig.store,
            self.settings,
            STORE_HOST,
            self.loop.create_future,
            lambda _stored: None,
        )
        self.transactions = Transactions(
            TransactionParts(
                self.rig.store,
                self.storing,
                self.tables,
                self.settings,
                Timing(self.settings, self.clock),
                self.clock,
                STORE_HOST,
                self.loop.create_future,
                reserved_ms=lambda: self.reserved_ms,
                is_slave=lambda: self.is_slave,
                wake=self._wake,
                stored=lambda _stored: None,
            )
        )
        self.router = Router(self.transactions.handlers)
        self.peer = FakePeer(1)
        self.due = 0.0
        self.tick()

    def _wake(self) -> None:
        self.wakes += 1

    def close(self) -> None:
        """Let go of the loop, which the next process of this world had as well."""
        self.loop.close()

    def set(self, **changes: object) -> None:
        """Change settings, as an operator does while the broker runs."""
        self.settings.now = replace(self.settings.now, **changes)  # type: ignore[arg-type]

    def save(self) -> None:
        """Save the offsets, as happens every five seconds."""
        self.saved = self.tables.offsets.snapshot()()

    def killed(self) -> World:
        """Return the broker that is started after this one was killed."""
        rig = self.rig.again()
        return World(rig, self.changes, self.saved, self.reserved_ms, self.loop)

    # -- time -----------------------------------------------------------------------------------

    def tick(self, seconds: float = 0.0) -> int:
        """Let time pass; return how many slices of work there were."""
        self.clock.jump(seconds)
        now = self.clock.monotonic()
        for count in range(1, TICKS_MAX):
            self.due = self.transactions.tick(now)
            self.rig.settle()
            if self.due > now:
                return count
        raise AssertionError("transactions never come to rest")

    def round(self) -> None:
        """Let there be one round of questions."""
        self.tick(self.settings.now.transaction_interval_ms / 1000)

    # -- producers ------------------------------------------------------------------------------

    def producer(self, number: int, group: str = PRODUCERS) -> FakePeer:
        """Return a producer that has introduced itself."""
        peer = FakePeer(number)
        self.tables.clients.heartbeat(
            heartbeat(f"client{number}", producers=[group]), peer, language=0, version=0
        )
        return peer

    def send(
        self, body: bytes, topic: str = "T", queue_id: int = 0, **properties: str | None
    ) -> Sent:
        """Send a transactional message; properties that are None are left out."""
        given = {"TRAN_MSG": "true", "PGROUP": PRODUCERS, "UNIQ_KEY": body.decode()} | properties
        kept = {name: value for name, value in given.items() if value is not None}
        half = as_half(
            message(
                body, topic, queue_id, properties=kept, born_timestamp=self.clock.now_ms(),
                sys_flag=4,
            )
        )  # fmt: skip
        stored = self.rig.store.put([half])
        assert stored.status.is_stored
        self.rig.settle()
        return Sent(stored.queue_offset, stored.log_offset, body)

    def end(self, sent: Sent, decision: int, group: str = PRODUCERS) -> Answer:
        """Decide about a half message; return the answer."""
        pending = self.begin_end(sent, decision, group)
        self.rig.settle()
        assert not isinstance(pending, Coroutine)
        return pending.result() if isinstance(pending, asyncio.Future) else pending

    def begin_end(self, sent: Sent, decision: int, group: str = PRODUCERS) -> Pending:
        """Decide, and return the answer or the promise of one."""
        header = EndTransactionRequest(
            producer_group=group,
            tran_state_table_offset=sent.offset,
            commit_log_offset=sent.log_offset,
            commit_or_rollback=decision,
            msg_id="",
            from_transaction_check=sent.asked,
        )
        request = Command.request(RequestCode.END_TRANSACTION, 7, header.encode())
        return self.transactions.end(request, self.peer)

    @staticmethod
    def asked(peer: FakePeer) -> list[Sent]:
        """Return what a producer was asked about since the last time."""
        told, peer.told = peer.told, []
        found: list[Sent] = []
        for request in told:
            assert request.code == RequestCode.CHECK_TRANSACTION_STATE
            assert request.is_oneway
            header = CheckTransactionStateRequest.decode(request.fields)
            found.append(
                Sent(
                    header.tran_state_table_offset,
                    header.commit_log_offset,
                    (header.msg_id or "").encode(),
                    asked=True,
                )
            )
        return found

    # -- what is there --------------------------------------------------------------------------

    def seen(self, topic: str = "T", queue_id: int = 0) -> list[bytes]:
        """Return the bodies that a consumer of a queue gets."""
        return self.rig.bodies(topic, queue_id)

    def halves(self) -> list[Record]:
        """Return everything in the half queue."""
        return self.rig.records(HALF_TOPIC)

    def ops(self) -> list[bytes]:
        """Return the bodies of the op records."""
        return self.rig.bodies(HALF_OP_TOPIC)

    def given_up(self) -> list[bytes]:
        """Return the bodies of what nobody decided."""
        return self.rig.bodies(CHECKED_TOO_OFTEN_TOPIC)

    def progress(self) -> tuple[int, int]:
        """Return the saved offsets of both queues."""
        find = self.tables.offsets.find
        return find(GROUP, HALF_TOPIC, HALF_QUEUE), find(GROUP, HALF_OP_TOPIC, HALF_QUEUE)
