"""A broker group in a seeded simulation: virtual clock, network, disks, etcd; real decisions.

What runs is what runs in production: `Failover` with its rounds and renewals, `election.decide`,
`InSyncSet`, `ReplicaGroup`, `MasterLink` and `SlaveLink`. Simulated are the sockets (ordered bytes
that come late, in pieces, or not at all), etcd (a table with leases, whose answers get lost), the
disks (a power cut takes what was not forced, in the middle of a record), and producers.

One node of three suffers power cuts, and only while another one is in sync: what is checked is what
is promised after any single failure. Everything else happens to all of them: kills, pauses,
partitions from each other and from etcd, connections that break, requests that arrive after their
sender has given up.

Checked all the time:
- what was acknowledged is in the log of every later master, at its offset
- so is what consumers were shown
- an epoch has one master, and no master takes a message after a later one has
and at the end, when everything is healed: all logs are equal.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, Final

from gantrymq.cluster.election import Me
from gantrymq.cluster.epoch_file import LastWritten
from gantrymq.cluster.etcd import EtcdTrouble
from gantrymq.cluster.failover import Failover
from gantrymq.cluster.frames import LinkBroken, encode_hello
from gantrymq.cluster.group_state import GroupState, Member, View
from gantrymq.cluster.in_sync import InSyncSet, Progress
from gantrymq.cluster.master_link import LinkRules, MasterLink
from gantrymq.cluster.replica_group import ReplicaGroup
from gantrymq.cluster.slave_link import SlaveLink
from gantrymq.testing.clock import VirtualClock
from support.replicas import PlainLog

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

NODES: Final = (1, 2, 3)
LEASE_S: Final = 2
RULES: Final = LinkRules(batch_bytes_max=64)
FORCE_S: Final = 0.5
RECORD: Final = 16
GAP: Final = 1 << 30


class Violation(AssertionError):
    """The promise is broken."""


class _Call:
    """A request to etcd that waits for its answer."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call

    def __await__(self) -> Generator[_Call, Any, Any]:
        return (yield self)


class SimEtcd:
    """The table, as every request that arrives sees it."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._leases: dict[str, float] = {}
        self._count = 0
        self._revision = 0
        self._state: tuple[GroupState | None, int] = (None, 0)
        self._members: dict[str, Member] = {}

    @property
    def state(self) -> GroupState | None:
        return self._state[0]

    def _expire(self) -> None:
        now = self._clock.monotonic()
        self._leases = {one: until for one, until in self._leases.items() if until > now}
        self._members = {one: row for one, row in self._members.items() if one in self._leases}

    def grant(self, seconds: int) -> str:
        self._count += 1
        self._leases[str(self._count)] = self._clock.monotonic() + seconds
        return str(self._count)

    def renew(self, lease: str) -> bool:
        self._expire()
        if lease not in self._leases:
            return False
        self._leases[lease] = self._clock.monotonic() + LEASE_S
        return True

    def revoke(self, lease: str) -> None:
        self._leases.pop(lease, None)

    def put_member(self, member: Member) -> None:
        self._expire()
        if member.session not in self._leases:
            raise EtcdTrouble("no such lease")
        self._members[member.session] = member

    def view(self) -> View:
        self._expire()
        return View(*self._state, dict(self._members))

    def swap(self, seen: View, state: GroupState, gone: str | None = None) -> bool:
        self._expire()
        if self._state[1] != seen.revision or gone in self._members:
            return False
        self._revision += 1
        self._state = state, self._revision
        return True


class SimFailover(Failover):
    """The real one, whose requests the world answers."""

    async def _ask(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401
        return await _Call(call)


class Connection:
    """Ordered bytes both ways between a slave and its master."""

    def __init__(self, slave: Node, master: Node, slave_link: SlaveLink, link: MasterLink) -> None:
        self.slave, self.master = slave, master
        self.slave_link, self.link = slave_link, link
        self.to_master = bytearray(slave_link.begin())
        self.to_slave = bytearray()
        self.is_open = True


class Node:
    """One broker: a log, a role, a seat."""

    def __init__(self, world: World, member: int) -> None:
        self.world = world
        self.member = member
        self.epoch = 0
        self.log = PlainLog(1 << 30)
        self.forced = 0
        self.is_alive = False
        self.boot = 0
        self.last = LastWritten()
        self.paused_until = 0.0
        self.is_leaving = False
        self.running: dict[str, Coroutine[Any, Any, None]] = {}
        self.start()

    # -- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        self.is_alive = True
        self.is_slave = True
        boot = f"boot {self.boot}"
        self.is_whole = self.last.is_whole(boot, was_clean=not self.last.boot, is_forced=False)
        self.note()
        self.failover = SimFailover(self.world.etcd, self, self.world.clock, LEASE_S)  # type: ignore[arg-type]
        self.failover._threads.shutdown(wait=False)
        self.group = ReplicaGroup(lambda: GAP, self.replicated, lambda: None)
        self.waiting: list[tuple[int, int]] = []
        self.acknowledged = 0
        self.shown = 0
        self.following: tuple[int, int] | None = None
        self.running = {}
        # A start drops what is not a whole record.
        self.cut(self.whole_end())

    def kill(self, lost: int = 0) -> None:
        """Die; a power cut takes the last `lost` bytes with it, of those that were not forced."""
        self.is_alive = False
        self.boot += lost > 0
        self.cut(max(self.log.end - lost, min(self.forced, self.log.end)))
        for coroutine in self.running.values():
            coroutine.close()
        self.running = {}
        self.world.cut_connections(self)

    def cut(self, end: int) -> None:
        data = self.log.read(0, end) or b""
        self.log = PlainLog(1 << 30)
        self.log.append(0, data)
        self.forced = min(self.forced, end)

    def note(self) -> None:
        """Write down what outlives the process."""
        self.last = LastWritten(self.epoch, f"boot {self.boot}", not self.is_whole)

    def whole_end(self) -> int:
        return self.log.end - self.log.end % RECORD

    @property
    def is_running(self) -> bool:
        return self.is_alive and self.world.clock.monotonic() >= self.paused_until

    # -- Host -------------------------------------------------------------------------------------

    @property
    def in_sync(self) -> InSyncSet | None:
        return None if self.is_slave else self.group.in_sync

    def addresses(self) -> tuple[str, str]:
        return str(self.member), str(self.member)

    def seen(self, view: View) -> None:
        if view.state is not None and self.member not in view.state.in_sync:
            self.is_whole = True
            self.note()

    def me(self, session: str) -> Me:
        end = self.whole_end()
        return Me(self.member, session, self.epoch, end, self.is_whole, is_drained=self.is_leaving)

    async def hand_over(self, view: View) -> bool:
        in_sync = frozenset(view.state.in_sync if view.state else ()) - {self.member}
        return self.is_leaving and any(map(view.stays, in_sync))

    def progress(self) -> Progress:
        return Progress(
            self.group.reported(), self.log.end, self.acknowledged, self.shown, self.forced
        )

    def stop_following(self) -> bool:
        self.following = None
        self.world.cut_connections(self, as_slave=True)
        return True

    async def lead(self, state: GroupState) -> None:
        start = state.history[-1].start
        if self.is_slave:
            if self.whole_end() != start:
                raise Violation(f"epoch {state.epoch} begins at {start}, not {self.whole_end()}")
            self.cut(start)
        self.world.cut_connections(self)
        self.epoch = state.epoch
        self.is_whole = True
        self.note()
        self.group.in_sync = InSyncSet(self.member, state, self.world.clock.monotonic())
        self.is_slave = False
        self.following = None
        self.world.leads(self, state.epoch)

    async def follow(self, master: Member, epoch: int, keep: int) -> None:
        number = int(master.address)
        if not self.is_slave or (epoch != self.epoch and keep < self.log.end):
            self.world.cut_connections(self)
            self.cut(keep)
            self.is_slave = True
            self.group = ReplicaGroup(lambda: GAP, self.replicated, lambda: None)
            self.waiting = []
            self.acknowledged = self.shown = 0
        self.epoch = epoch
        if self.following != (number, epoch):
            self.stop_following()
            self.following = number, epoch

    # -- messages ---------------------------------------------------------------------------------

    def take_send(self, number: int) -> None:
        """Take a message, as a SYNC_MASTER does."""
        if self.is_slave or not self.failover.may_reign():
            return
        self.world.accepted(self)
        offset = self.log.end
        self.log.append(offset, number.to_bytes(RECORD))
        if self.group.is_available(self.log.end):
            self.waiting.append((self.log.end, number))
        self.show()

    def show(self) -> None:
        """Let consumers read what they may, as a master does."""
        if self.is_slave or not self.is_running:
            return
        until = self.group.shown_until()
        end = self.whole_end() if until is None else min(until - until % RECORD, self.whole_end())
        for offset in range(self.shown, end, RECORD):
            self.world.shown[offset] = bytes(self.log.read(offset, RECORD) or b"")
        self.shown = max(self.shown, end)

    def replicated(self, offset: int) -> None:
        self.show()
        self.acknowledged = max(self.acknowledged, offset)
        while self.waiting and self.waiting[0][0] <= offset:
            end, number = self.waiting.pop(0)
            self.world.acknowledged[number] = end - RECORD


class World:
    """Everything, driven by one seed."""

    def __init__(self, seed: int, steps: int = 260) -> None:
        self.dice = Random(seed)
        self.steps = steps
        self.clock = VirtualClock()
        self.etcd = SimEtcd(self.clock)
        self.acknowledged: dict[int, int] = {}
        self.shown: dict[int, bytes] = {}
        self.masters: dict[int, int] = {}
        self.last_epoch = 0
        self.sent = 0
        self.connections: list[Connection] = []
        self.late: list[Callable[[], Any]] = []
        self.cut_off: set[tuple[int, int]] = set()
        """Pairs that cannot reach each other; 0 is etcd."""
        self.is_healed = False
        self.lossy = self.dice.choice(NODES)
        self.nodes = {number: Node(self, number) for number in NODES}

    # -- what is checked --------------------------------------------------------------------------

    def leads(self, node: Node, epoch: int) -> None:
        if self.masters.setdefault(epoch, node.member) != node.member:
            raise Violation(f"epoch {epoch} has masters {self.masters[epoch]} and {node.member}")
        self.check_log(node)

    def check_log(self, node: Node) -> None:
        for number, offset in self.acknowledged.items():
            found = node.log.read(offset, RECORD)
            if found != number.to_bytes(RECORD):
                raise Violation(
                    f"message {number}, acknowledged at {offset}, is not in the log of node "
                    f"{node.member} (epoch {node.epoch}, end {node.log.end})"
                )

        for offset, record in self.shown.items():
            if node.log.read(offset, RECORD) != record:
                raise Violation(
                    f"message {int.from_bytes(record)}, shown at {offset}, is not in the log of "
                    f"node {node.member} (epoch {node.epoch}, end {node.log.end})"
                )

    def accepted(self, node: Node) -> None:
        if node.epoch < self.last_epoch:
            raise Violation(f"epoch {node.epoch} takes a message after epoch {self.last_epoch}")
        self.last_epoch = node.epoch

    # -- the network ------------------------------------------------------------------------------

    def reaches(self, one: int, other: int) -> bool:
        return (min(one, other), max(one, other)) not in self.cut_off

    def cut_connections(self, node: Node, *, as_slave: bool = False) -> None:
        for one in tuple(self.connections):
            if one.slave is node or (one.master is node and not as_slave):
                self.close(one)

    def close(self, one: Connection) -> None:
        one.is_open = False
        one.master.group.left(one.link)
        if one in self.connections:
            self.connections.remove(one)

    def connect(self, slave: Node) -> None:
        if not slave.is_running or slave.following is None:
            return
        if any(one.slave is slave for one in self.connections):
            return
        number, epoch = slave.following
        master = self.nodes[number]
        if not (master.is_running and self.reaches(slave.member, number)) or master.is_slave:
            return
        now = self.clock.monotonic()
        link = MasterLink(master.log, now, master.epoch)
        hello = encode_hello(epoch, slave.member)
        slave_link = SlaveLink(slave.log, now, overlap=48, hello=hello)
        self.connections.append(Connection(slave, master, slave_link, link))

    def move(self, one: Connection) -> None:
        """Bring some bytes over, in either direction."""
        if not self.reaches(one.slave.member, one.master.member):
            return
        now = self.clock.monotonic()
        try:
            if one.master.is_running and one.to_master:
                count = self.dice.randint(1, len(one.to_master))
                self._to_master(one, bytes(one.to_master[:count]), now)
                del one.to_master[:count]
            if one.is_open and one.master.is_running:
                for piece in one.link.frames(RULES, now, self.dice.choice((64, 1024))):
                    one.to_slave += piece
                one.to_slave += one.link.tick(RULES, now)
            if one.is_open and one.slave.is_running and one.to_slave:
                count = self.dice.randint(1, len(one.to_slave))
                one.slave_link.space()[:count] = one.to_slave[:count]
                del one.to_slave[:count]
                one.to_master += one.slave_link.received(count, now)
            if one.is_open and one.slave.is_running:
                one.to_master += one.slave_link.tick(RULES, now)
        except LinkBroken:
            self.close(one)

    def _to_master(self, one: Connection, data: bytes, now: float) -> None:
        had_begun = one.link.has_begun
        confirmed = one.link.received(data, now)
        if not had_begun and one.link.has_begun:
            one.master.group.joined(one.link)
        if confirmed is not None:
            one.master.group.confirmed(confirmed)

    # -- what nodes do by the clock ---------------------------------------------------------------

    def work(self, node: Node, name: str) -> None:
        """Take a step of one of a node's two loops."""
        if not node.is_running:
            return
        coroutine = node.running.get(name)
        if coroutine is None:
            if name == "look" and not node.failover._session:
                return
            seat = node.failover
            coroutine = node.running[name] = seat._renew() if name == "renew" else seat._round()
            self._step(node, name, coroutine)

    def _step(self, node: Node, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine to its end; answer what it asks of etcd, or let that fail."""
        try:
            asked = coroutine.send(None)
            while True:
                answer = self._answer(node, asked)
                if isinstance(answer, EtcdTrouble):
                    asked = coroutine.throw(answer)
                else:
                    asked = coroutine.send(answer)
        except (StopIteration, EtcdTrouble):
            node.running.pop(name, None)

    def _answer(self, node: Node, asked: _Call) -> Any:  # noqa: ANN401
        roll = 1.0 if self.is_healed else self.dice.random()
        if not self.reaches(0, node.member) or roll < 0.02:
            return EtcdTrouble("it never arrived")
        if roll < 0.04:
            self.late.append(asked.call)
            return EtcdTrouble("no answer in time; it may arrive later")
        if not self.is_healed and self.dice.random() < 0.2:
            self.pass_time()
            if not node.is_running:
                return EtcdTrouble("the one who asked has gone")
        try:
            answer = asked.call()
        except EtcdTrouble as error:
            return error
        return EtcdTrouble("the answer was lost") if 0.04 <= roll < 0.06 else answer

    # -- one step after the other -----------------------------------------------------------------

    def pass_time(self) -> None:
        """Let a little time pass, in which everybody but the one who waits goes on."""
        self.clock.jump(self.dice.choice((0.01, 0.05, 0.2)))
        for one in tuple(self.connections):
            if self.dice.random() < 0.7:
                self.move(one)

    def step(self) -> None:
        self.pass_time()
        for node in self.nodes.values():
            self.connect(node)
            for name in ("renew", "look"):
                if self.dice.random() < 0.6:
                    self.work(node, name)
            node.show()
            if node.is_running and self.dice.random() < 0.2:
                node.forced = node.log.end
            if node.is_running and self.dice.random() < 0.5:
                self.sent += 1
                node.take_send(self.sent)
        if self.late and self.dice.random() < 0.3:
            self._arrive_late()
        if self.dice.random() < 0.12:
            self.trouble()

    def _arrive_late(self) -> None:
        call = self.late.pop(self.dice.randrange(len(self.late)))
        with suppress(EtcdTrouble):
            call()

    def trouble(self) -> None:
        """Do something to somebody."""
        node = self.nodes[self.dice.choice(NODES)]
        what = self.dice.choice(("kill", "power", "pause", "cut", "mend", "mend", "break", "start",
                                 "drain"))  # fmt: skip
        if what == "kill" and node.is_alive:
            node.kill()
        elif what == "power" and node.member == self.lossy and node.is_alive:
            state = self.etcd.state
            others = set(state.in_sync if state else ()) - {node.member}
            if others:
                node.kill(lost=self.dice.randint(1, 200))
        elif what == "pause":
            node.paused_until = self.clock.monotonic() + self.dice.choice((0.5, 3.0, 6.0))
        elif what == "cut":
            one, other = self.dice.sample((0, *NODES), 2)
            self.cut_off.add((min(one, other), max(one, other)))
        elif what == "mend" and self.cut_off:
            self.cut_off.remove(self.dice.choice(sorted(self.cut_off)))
        elif what == "break" and self.connections:
            self.close(self.dice.choice(self.connections))
        elif what == "drain":
            node.is_leaving = not node.is_leaving
        elif what == "start" and not node.is_alive:
            node.start()

    def run(self) -> None:
        """Run to the end, heal everything, and compare."""
        for _ in range(self.steps):
            self.step()
        self.is_healed = True
        self.cut_off.clear()
        while self.late:
            self._arrive_late()
        for node in self.nodes.values():
            node.paused_until = 0.0
            if not node.is_alive:
                node.start()
        for _ in range(3000):
            self._quiet_step()
            if self._is_settled():
                break
        else:
            raise Violation(f"not settled: {self.etcd.state}")
        for node in self.nodes.values():
            self.check_log(node)

    def _quiet_step(self) -> None:
        self.clock.jump(0.05)
        for node in self.nodes.values():
            self.connect(node)
            node.forced = node.log.end
            node.show()
            for name in ("renew", "look"):
                self.work(node, name)
        for one in tuple(self.connections):
            for _ in range(4):
                if one.is_open:
                    self.move(one)

    def _is_settled(self) -> bool:
        state = self.etcd.state
        if state is None or set(state.in_sync) != set(NODES):
            return False
        return len({node.log.read(0, node.log.end) for node in self.nodes.values()}) == 1
