"""A broker of a group with automatic failover: it starts as a slave and is what the group decides.

A slave becomes master without a stop. A master that has been replaced, or a slave whose log has an
end that is not the group's, is closed, cut and opened again as a slave; its clients are told to go
elsewhere meanwhile, as when it is restarted.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gantrymq.clock import SystemClock
from gantrymq.cluster.election import Me
from gantrymq.cluster.epoch_file import LastWritten, load_epoch, save_epoch
from gantrymq.cluster.etcd import Etcd
from gantrymq.cluster.failover import Failover
from gantrymq.cluster.forwarding import Forwarding
from gantrymq.cluster.frames import encode_hello
from gantrymq.cluster.in_sync import InSyncSet, Progress
from gantrymq.node.access import opened_access
from gantrymq.node.broker_node import BrokerNode
from gantrymq.node.etcd_access import etcd_login
from gantrymq.node.machine import boot_id
from gantrymq.store.errors import StoreNotWritable
from gantrymq.store.files import OsFiles
from gantrymq.store.holding import waits_for_disk
from gantrymq.store.promotion import dispatch_all, whole_end
from gantrymq.store.settings import BrokerRole
from gantrymq.store.truncation import cut_log
from gantrymq.transport.requester import Connections

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.settings import BrokerSettings
    from gantrymq.cluster.group_state import GroupState, Member, View
    from gantrymq.node.access import NodeAccess
    from gantrymq.store.recovery import RecoveryReport
    from gantrymq.store.settings import StoreSettings
    from gantrymq.transport.server import Server
    from gantrymq.transport.tls import ClientTls, ServerTls

log = logging.getLogger(__name__)

HAND_OVER_S_MAX: Final = 3.0
"""How long a master that stops waits for a slave to have everything, and then for a successor."""
QUIET_S: Final = 0.5
"""A broker that has handed over stops when nothing had to be passed on for so long."""


class FailoverNode:
    """One broker in this process, in the role that its group gives it."""

    def __init__(
        self,
        settings: BrokerSettings,
        store_settings: StoreSettings,
        *,
        tls: ServerTls | None = None,
        client_tls: ClientTls | None = None,
    ) -> None:
        """Join the group that `settings` name.

        Raises:
            InvalidValue: the client of etcd is not installed, or a file for it cannot be used.
        """
        self._files = OsFiles()
        self._clock = SystemClock()
        self._as_master = store_settings
        self._as_slave = replace(
            store_settings, replication=replace(store_settings.replication, role=BrokerRole.SLAVE)
        )
        self._settings = settings
        self._tls = (tls, client_tls)
        self._epoch = 0
        self._is_whole = False
        self._is_stopping = False
        self._master_address: str | None = None
        self._access: NodeAccess | None = None
        self._front = Forwarding()
        self._front.successor = lambda: self._master_address
        etcd = Etcd(
            [one.strip() for one in settings.etcd.split(",")],
            settings.cluster,
            settings.name,
            login=etcd_login(settings),
        )
        self.failover = Failover(etcd, self, self._clock, settings.lease_s)
        self.inner = self._make(settings)

    def _make(self, settings: BrokerSettings, server: Server | None = None) -> BrokerNode:
        tls, client_tls = self._tls
        slave = replace(settings, broker_id=settings.member)
        return BrokerNode(
            slave,
            self._as_slave,
            tls=tls,
            client_tls=client_tls,
            clock=self._clock,
            front=self._front.behind,
            server=server,
            access=self._access,
        )

    def _protect(self) -> None:
        """Read the accounts once, for all brokers that are opened here in turn."""
        access = self._access = opened_access(self._settings, self._as_slave, self._clock)
        if access is not None:
            self._front.check, self._front.sign = access.access.check, access.sign
            self.inner = self._make(self._settings)

    @property
    def settings(self) -> BrokerSettings:
        """Return the broker's settings."""
        return self.inner.settings

    @property
    def address(self) -> str:
        """Return `host:port` that clients are told."""
        return self.inner.address

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Return the name servers that this broker registers with."""
        return self.inner.name_servers

    @property
    def epoch(self) -> int:
        """Return the epoch in which this broker's log was last written."""
        return self._epoch

    @property
    def is_master(self) -> bool:
        """Tell whether it takes sends, as far as it knows."""
        return self.in_sync is not None and self.failover.may_reign()

    async def start(self) -> RecoveryReport:
        """Open the store as a slave's, and take the seat in the group.

        Raises:
            StoreLocked, StoreDamaged, InvalidValue, OSError: as `BrokerNode.start`.
        """
        self._protect()
        self._front.connections = Connections(tls=self._tls[1], clock=self._clock)
        last = load_epoch(self._files, self._as_slave.paths.config)
        self._epoch = last.epoch
        report = await self._open()
        is_forced = waits_for_disk(self._as_slave)
        self._is_whole = last.is_whole(boot_id(), was_clean=report.clean, is_forced=is_forced)
        self._note_epoch(last.epoch)
        self.failover.start()
        return report

    async def _open(self) -> RecoveryReport:
        report = await self.inner.start()
        self.inner.broker.store.writability.may_reign = self.failover.may_reign
        self.inner.broker.counting.forwarded = lambda: self._front.total
        # The port of the first start is kept: others know it.
        self._settings = replace(self._settings, port=self.inner.port)
        return report

    async def stop(self) -> bool:
        """Hand over if it is master, leave the group, and close the broker; True if all is safe."""
        self._is_stopping = True
        if self.in_sync is not None and self.in_sync.required:
            await self._until(lambda: self.in_sync is None or self._front.is_on, HAND_OVER_S_MAX)
            await self._until(lambda: self._master_address is not None, HAND_OVER_S_MAX)
        if self._front.is_on and self._master_address is not None:
            await self._until_quiet(self._settings.linger_ms / 1000)
        await self.failover.stop()
        is_safe = await self.inner.stop()
        if self._front.connections is not None:
            await self._front.connections.close()
        return is_safe

    async def _until_quiet(self, seconds: float) -> None:
        """Wait until nothing has been passed on for a while."""
        deadline = self._clock.monotonic() + seconds
        seen = -1
        while seen != self._front.total and self._clock.monotonic() < deadline:
            seen = self._front.total
            await asyncio.sleep(QUIET_S)

    async def _until(self, is_so: Callable[[], bool], seconds: float) -> bool:
        deadline = self._clock.monotonic() + seconds
        while not is_so():
            if self._clock.monotonic() >= deadline:
                return False
            await asyncio.sleep(0.01)
        return True

    @property
    def is_leaving(self) -> bool:
        """Tell whether another is to be master: this one stops or fails, or an operator said so."""
        is_drained = self.inner.broker.settings.now.draining
        return self._is_stopping or is_drained or self._has_failed

    @property
    def _has_failed(self) -> bool:
        """Tell whether its disk takes nothing any more."""
        return self.inner.broker.store.gate.failure is not None

    async def hand_over(self, view: View) -> bool:
        """Take no more sends and see that a live member has everything, if this one is to leave.

        What comes meanwhile waits for the successor.
        """
        in_sync = self.in_sync
        if in_sync is None or view.state is None or not self.is_leaving:
            return False
        others = frozenset(view.state.in_sync) - {self.member}
        successors = frozenset(filter(view.stays, others))
        if not successors:
            return False
        log.warning("this master hands over to another member: %s", sorted(successors))
        self._front.is_on = True
        self.inner.broker.journal.flush()
        writability = self.inner.broker.store.writability
        writability.forbid("hand-over", "this broker hands over to another master")
        is_level = await self._until(lambda: self._have_everything(successors), HAND_OVER_S_MAX)
        if is_level or self._has_failed:
            return True  # what was acknowledged they have in any case
        writability.allow("hand-over")
        self._front.is_on = False
        return False

    def _have_everything(self, members: frozenset[int]) -> bool:
        now = self.progress()
        return all(now.reported.get(member) == now.end for member in members)

    # -- what the failover asks and tells; see `cluster.failover.Host` ----------------------------

    @property
    def member(self) -> int:
        """Return this broker's id in the group."""
        return self._settings.member

    @property
    def in_sync(self) -> InSyncSet | None:
        """Return the in-sync set while it is master."""
        if not self.inner.is_started or self.inner.broker.is_slave:
            return None
        return self.inner.replication.group.in_sync

    def addresses(self) -> tuple[str, str]:
        """Return where it takes requests, and where it is copied from."""
        return self.inner.address, self.inner.replication_address

    def seen(self, view: View) -> None:
        """Note what etcd has: who is outside of the in-sync set comes in only with everything."""
        master = view.master
        is_other = master is not None and master.number != self.member
        self._master_address = master.address if master is not None and is_other else None
        self._front.is_on &= self.is_leaving
        is_outside = view.state is not None and self.member not in view.state.in_sync
        if is_outside and not self._is_whole:
            self._is_whole = True
            self._note_epoch(self._epoch)

    def me(self, session: str) -> Me:
        """Return what this broker knows of itself."""
        return Me(
            self.member,
            session,
            self._epoch,
            whole_end(self.inner.broker.store),
            self._is_whole,
            self._settings.unsafe_election,
            self.is_leaving,
        )

    def progress(self) -> Progress:
        """Return how far everybody is, and have forced what is acknowledged."""
        store = self.inner.broker.store
        acknowledged = store.gate.replicated_offset
        store.flush.want(acknowledged)
        return Progress(
            self.inner.replication.group.reported(),
            store.log.wrote_offset,
            acknowledged,
            store.dispatched_offset,
            store.flush.flushed_offset,
        )

    def stop_following(self) -> bool:
        """Take nothing more from any master; tell whether it could be one with what it has.

        Not while its end is still being forced, which would move it, nor with a disk that fails.
        """
        self.inner.replication.stop_following()
        store = self.inner.broker.store
        if self._has_failed or (store.writability.is_slave and store.writability.replica_reason):
            return False
        dispatch_all(store)
        is_forced = store.flush.flushed_offset >= store.log.committed_offset
        return is_forced or not waits_for_disk(self._as_slave)

    async def lead(self, state: GroupState) -> None:
        """Be master in the epoch of a state, from the offset that it says."""
        self._is_whole = True  # whatever it has, it is the group's log now
        self._note_epoch(state.epoch)
        in_sync = InSyncSet(self.member, state, self._clock.monotonic())
        self._front.is_on = False
        self.inner.broker.store.writability.allow("hand-over")
        await self.inner.replication.lead(state.epoch, in_sync)
        if self.inner.broker.is_slave:
            try:
                self.inner.promote(self._as_master, state.history[-1].start)
            except StoreNotWritable as error:
                log.warning("this broker cannot be master now: %s", error)
                await self.failover.resign()
        else:
            self.inner.replication.server.cut_all("there is a new epoch")

    async def follow(self, master: Member, epoch: int, keep: int) -> None:
        """Copy a master, after dropping the log from `keep` on."""
        if self._is_stopping:
            return
        replication = self.inner.replication
        end = self.inner.broker.store.log.wrote_offset
        is_new = epoch != self._epoch
        if not self.inner.broker.is_slave or replication.client is None or (is_new and keep < end):
            log.warning(
                "the master of epoch %d is %s: this broker follows it, and drops its log from "
                "offset %d on (%d bytes)",
                epoch,
                master.address,
                keep,
                end - keep,
            )
            await self._reopen(keep)
            replication = self.inner.replication
        if is_new:
            self._note_epoch(epoch)
        replication.follow(master, encode_hello(epoch, self.member))

    def _note_epoch(self, epoch: int) -> None:
        config = self._as_slave.paths.config
        last = LastWritten(epoch, boot_id(), doubtful=not self._is_whole)
        save_epoch(self._files, config, last)
        self._epoch = epoch

    async def _reopen(self, keep: int) -> None:
        """Close the broker, cut its log, and open it again as a slave."""
        self._front.detach()
        server = self.inner.release_listener()
        self._is_whole &= await self.inner.stop()
        await asyncio.to_thread(cut_log, self._files, self._as_slave, keep, os.getpid())
        self.inner = self._make(self._settings, server)
        await self._open()
