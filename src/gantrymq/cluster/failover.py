"""Keeps one broker's place in its group: its lease, its role, and the in-sync set if it is master.

Two loops. One renews the lease, four times in its length; a master may write for three quarters of
that length after the last renewal was *sent*, by its own clock, so that it has stopped before etcd
lets another one be elected. The other one looks at etcd, asks `election.decide`, and has the host
(the node) do it. Calls to etcd run on threads; the loop never waits for them.

An answer of etcd that did not come leaves the outcome of a change open. The next look shows it; for
the in-sync set, which may only be relied on when it is certain, the same state is written again
first, so that a late request can no longer succeed.

Owned by the event loop's thread.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from gantrymq.cluster.election import Decision, Kind, Me, decide
from gantrymq.cluster.etcd import EtcdTrouble
from gantrymq.cluster.group_state import Member

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.cluster.etcd import Etcd
    from gantrymq.cluster.group_state import GroupState, View
    from gantrymq.cluster.in_sync import InSyncSet, Progress

log = logging.getLogger(__name__)

ROUND_S: Final = 0.2
"""Between two looks at etcd."""
VALID_PART: Final = 0.75
"""Of a lease: how long a master relies on it after asking for it."""
Result = TypeVar("Result")


class Host(Protocol):
    """The node whose broker this is about."""

    @property
    def member(self) -> int:
        """Return its id in the group."""
        ...

    @property
    def in_sync(self) -> InSyncSet | None:
        """Return the in-sync set while it is master."""
        ...

    @property
    def is_leaving(self) -> bool:
        """Tell whether another one is to be master."""
        ...

    def addresses(self) -> tuple[str, str]:
        """Return where it takes requests, and where it is copied from."""
        ...

    def seen(self, view: View) -> None:
        """Note what etcd has now."""
        ...

    def me(self, session: str) -> Me:
        """Return what it knows of itself."""
        ...

    def stop_following(self) -> bool:
        """Take nothing more from any master; tell whether it could be one with what it has."""
        ...

    async def lead(self, state: GroupState) -> None:
        """Be master in the epoch of a state, from the offset that it says."""
        ...

    async def follow(self, master: Member, epoch: int, keep: int) -> None:
        """Copy a master, after dropping the log from `keep` on."""
        ...

    def progress(self) -> Progress:
        """Return how far everybody is, and have forced what is acknowledged."""
        ...

    async def hand_over(self, view: View) -> bool:
        """Prepare to be master no longer, if that is wanted; tell whether the seat is given up."""
        ...


class Failover:
    """One broker's seat."""

    def __init__(self, etcd: Etcd, host: Host, clock: Clock, lease_s: int) -> None:
        self._etcd = etcd
        self._host = host
        self._clock = clock
        self._lease_s = lease_s
        self._session = ""
        self._valid_until = float("-inf")
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="gantrymq-etcd")
        self._tasks: list[asyncio.Task[None]] = []
        self._said = ""
        self._is_uncertain = False
        self._wants_lease = asyncio.Event()
        self._introduced: Member | None = None
        self.trouble: str | None = None
        """What was wrong when etcd was last asked; None if it answered."""
        self.troubles = 0
        """How often it did not answer."""

    def holds_lease(self) -> bool:
        """Tell whether the lease certainly holds now."""
        return self._clock.monotonic() < self._valid_until

    def may_reign(self) -> bool:
        """Tell whether a master may write: the lease that it was elected with holds.

        With another one, after its own ran out, somebody else may be master meanwhile.
        """
        in_sync = self._host.in_sync
        is_same = in_sync is not None and in_sync.state.session == self._session
        return is_same and self.holds_lease()

    async def _ask(self, call: Callable[[], Result]) -> Result:
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except EtcdTrouble as error:
            self.trouble = str(error)
            self.troubles += 1
            raise
        self.trouble = None
        return answer

    def start(self) -> None:
        """Begin."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._keep_lease()), loop.create_task(self._look())]

    async def stop(self) -> None:
        """Give the seat up: the lease ends now, so that others need not wait for it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._valid_until = float("-inf")
        if self._session:
            with suppress(EtcdTrouble):
                await self._ask(lambda: self._etcd.revoke(self._session))
        self._threads.shutdown(wait=False)

    async def resign(self) -> None:
        """Be master no longer, and a member still: the lease ends, and another one begins."""
        held, self._session = self._session, ""
        self._valid_until = float("-inf")
        if held:
            await self._ask(lambda: self._etcd.revoke(held))
        self._wants_lease.set()

    # -- the lease --------------------------------------------------------------------------------

    async def _keep_lease(self) -> None:
        while True:
            try:
                await self._renew()
            except EtcdTrouble as error:
                self._say(f"the lease could not be renewed: {error}")
            except Exception:
                log.exception("the lease could not be renewed; tried again")
            with suppress(TimeoutError):
                async with asyncio.timeout(self._lease_s / 4):
                    await self._wants_lease.wait()
            self._wants_lease.clear()

    async def _renew(self) -> None:
        sent = self._clock.monotonic()
        held = self._session
        is_held: bool = bool(held) and await self._ask(lambda: self._etcd.renew(held))
        if is_held:
            self._valid_until = sent + self._lease_s * VALID_PART
            await self._introduce(held)
            return
        self._valid_until = float("-inf")
        self._session = ""
        session = await self._ask(lambda: self._etcd.grant(self._lease_s))
        await self._introduce(session)
        self._session = session
        self._valid_until = sent + self._lease_s * VALID_PART

    async def _introduce(self, session: str) -> None:
        """Tell the others who holds a lease, unless they know."""
        host = self._host
        me = Member(host.member, session, *host.addresses(), host.is_leaving)
        if me != self._introduced:
            await self._ask(lambda: self._etcd.put_member(me))
            self._introduced = me

    # -- the role ---------------------------------------------------------------------------------

    async def _look(self) -> None:
        while True:
            try:
                if self._session:
                    await self._round()
            except EtcdTrouble as error:
                self._say(f"the group cannot be seen: {error}")
            except Exception:
                # Whatever it is, this member must not fall silent because of it.
                log.exception("the role in the group could not be taken; tried again")
            await asyncio.sleep(ROUND_S)

    async def _round(self) -> None:
        host, session = self._host, self._session
        view = await self._ask(self._etcd.view)
        host.seen(view)
        decision = decide(view, host.me(session))
        if decision.kind is Kind.REIGN and view.state is not None:
            await self._reign(view, view.state)
        elif decision.kind is Kind.FOLLOW and view.state is not None:
            master = view.members[view.state.session]
            await host.follow(master, view.state.epoch, decision.keep)
        elif decision.kind is Kind.CAMPAIGN:
            await self._campaign(view, session)
        elif decision.kind is Kind.LEAVE and decision.proposed is not None:
            proposed = decision.proposed
            await self._ask(lambda: self._etcd.swap(view, proposed))
        self._say(decision.why)

    async def _campaign(self, view: View, session: str) -> None:
        """Stop copying first: where the new epoch begins must not move any more."""
        if not self._host.stop_following():
            return
        decision: Decision = decide(view, self._host.me(session))
        proposed = decision.proposed
        if proposed is None or not self.holds_lease():
            return
        gone = None if view.state is None else view.state.session
        if await self._ask(lambda: self._etcd.swap(view, proposed, gone)):
            log.warning(
                "this broker is master in epoch %d, from offset %d on",
                proposed.epoch,
                proposed.history[-1].start,
            )
            await self._host.lead(proposed)

    async def _reign(self, view: View, state: GroupState) -> None:
        in_sync = self._host.in_sync
        if in_sync is None or in_sync.state.epoch != state.epoch:
            await self._host.lead(state)
            return
        if await self._host.hand_over(view):
            await self.resign()
            return
        if self._is_uncertain:
            if state == in_sync.state and not await self._ask(lambda: self._etcd.swap(view, state)):
                return  # it has changed this moment: looked at again
            in_sync.settled(state)
            self._is_uncertain = False
            return
        in_sync.left(state)
        members = in_sync.look(self._host.progress(), self._clock.monotonic())
        if members is None:
            return
        self._is_uncertain = True
        changed = in_sync.state.with_in_sync(members)
        if await self._ask(lambda: self._etcd.swap(view, changed)):
            log.warning("in sync with this master are now: %s", list(changed.in_sync))
            in_sync.settled(changed)
            self._is_uncertain = False

    def _say(self, what: str) -> None:
        if what and what != self._said:
            log.warning("failover: %s", what)
        self._said = what or self._said
