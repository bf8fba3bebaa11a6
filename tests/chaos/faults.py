"""What can happen to servers: each fault begins, lasts for a while, and is undone.

A fault is a coroutine over the `World` of a run. Whatever interrupts it, it undoes what it did.
"""

from __future__ import annotations

import asyncio
import errno
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from chaos.history import ClockShift
from chaos.workload import now

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from random import Random

    from chaos.cluster import Cluster, Server
    from chaos.workload import Workload

AHEAD_S_MAX: Final = 90.0
"""No clock is further off than this."""
ROLL_S_MAX: Final = 4.0
"""How long a kill waits for a new log file."""


@dataclass
class World:
    """What faults can reach."""

    cluster: Cluster
    workload: Workload
    dice: Random
    said: Callable[[str], None]
    clocks: dict[str, float] = field(default_factory=dict)

    def broker(self) -> Server:
        """Pick a broker."""
        return self.dice.choice(self.cluster.brokers)

    async def last(self, longest_s: float) -> None:
        """Let a fault last."""
        await asyncio.sleep(self.dice.uniform(0.2, longest_s))

    def set_clock(self, broker: Server, ahead_s: float) -> None:
        """Put a broker's clock."""
        if broker.page is not None:
            self.workload.history.shifts.append(ClockShift(now(), broker.name, ahead_s))
            broker.page.set(clock_ahead_ns=int(ahead_s * 1e9))
            self.clocks[broker.name] = ahead_s


# -- processes ----------------------------------------------------------------------------------


async def kill(world: World) -> None:
    """Kill -9 a broker, and start it again after a while."""
    broker = world.broker()
    world.said(broker.name)
    broker.kill()
    try:
        await world.last(2.5)
    finally:
        broker.start()


async def kill_in_recovery(world: World) -> None:
    """Kill a broker, and again while it starts, up to three times."""
    broker = world.broker()
    world.said(broker.name)
    try:
        for _ in range(world.dice.randint(2, 4)):
            broker.kill()
            await asyncio.sleep(0.1)
            broker.start()
            await asyncio.sleep(world.dice.uniform(0.15, 1.2))
    finally:
        broker.start()


async def kill_at_roll(world: World) -> None:
    """Kill a broker in the moment in which it makes a new log file."""
    broker = world.broker()
    world.said(broker.name)
    folder = broker.store / "commitlog"

    def names() -> set[str]:
        return {path.name for path in folder.iterdir()} if folder.exists() else set()

    before, deadline = names(), now() + ROLL_S_MAX
    while names() <= before:
        if now() > deadline:
            break
        await asyncio.sleep(0.001)
    await asyncio.sleep(world.dice.choice((0, 0, 0.001, 0.003, 0.01)))
    broker.kill()
    try:
        await world.last(1.5)
    finally:
        broker.start()


async def kill_all(world: World) -> None:
    """Kill every broker and every name server at once."""
    servers = [*world.cluster.brokers, *world.cluster.names]
    world.said("all")
    for server in servers:
        server.kill()
    try:
        await world.last(2.0)
    finally:
        world.dice.shuffle(servers)
        for server in servers:
            server.start()


async def pause(world: World) -> None:
    """Let a broker stand still (SIGSTOP), for less than its lease or for more."""
    broker = world.broker()
    world.said(broker.name)
    broker.pause()
    try:
        await world.last(5.0)
    finally:
        broker.go_on()


async def names_one_by_one(world: World) -> None:
    """Kill name servers one after the other; for a moment there may be none."""
    servers = list(world.cluster.names)
    world.dice.shuffle(servers)
    world.said(" ".join(server.name for server in servers))
    try:
        for server in servers:
            server.kill()
            await world.last(1.5)
            if world.dice.random() < 0.5:
                server.start()
    finally:
        for server in servers:
            server.start()


async def etcd_lost(world: World) -> None:
    """Kill etcd, or let it stand still, for longer than leases last or for less."""
    etcd = world.cluster.etcd
    if etcd is None:
        return
    is_kill = world.dice.random() < 0.6
    world.said("killed" if is_kill else "standing still")
    try:
        if is_kill:
            etcd.kill()
        else:
            etcd.pause()
        await world.last(5.0)
    finally:
        etcd.go_on()
        etcd.start()


async def member(world: World) -> None:
    """Let a consumer leave its group, and join again."""
    number = world.dice.randrange(4)
    world.said(f"consumer {number}")
    await world.workload.leave(number)
    try:
        await world.last(1.5)
    finally:
        await world.workload.join(number)


# -- disks --------------------------------------------------------------------------------------


async def full_disk(world: World) -> None:
    """Leave a broker's disk without a byte; it goes on by itself when there is room."""
    broker = world.broker()
    world.said(broker.name)
    try:
        if broker.disk is not None:
            broker.disk.fill()
        elif broker.page is not None:
            broker.page.set(write_error=errno.ENOSPC)
        await world.last(4.0)
    finally:
        if broker.disk is not None:
            broker.disk.make_room()
        if broker.page is not None:
            broker.page.set(write_error=0)


async def _failing_disk(world: World, **faults: int) -> None:
    """Let a broker's disk fail; a failed force is final, so the broker is then started again."""
    broker = world.broker()
    world.said(broker.name)
    if broker.page is None:
        return
    broker.page.set(**faults)
    try:
        await world.last(3.0)
    finally:
        broker.kill()
        broker.page.heal_disk()
        broker.start()


async def read_only_disk(world: World) -> None:
    """Let nothing be written, made or forced: EROFS."""
    number = errno.EROFS
    await _failing_disk(world, sync_error=number, write_error=number, name_error=number)


async def failing_disk(world: World) -> None:
    """Let forcing fail, or writing, or both: EIO."""
    faults = world.dice.choice(
        ({"sync_error": errno.EIO}, {"write_error": errno.EIO},
         {"sync_error": errno.EIO, "write_error": errno.EIO})
    )  # fmt: skip
    await _failing_disk(world, **faults)


async def slow_disk(world: World) -> None:
    """Let everything that waits for the disk wait for longer."""
    broker = world.broker()
    world.said(broker.name)
    if broker.page is None:
        return
    delay_us = world.dice.choice((20_000, 200_000, 1_500_000))
    broker.page.set(sync_delay_us=delay_us, write_delay_us=delay_us // 20)
    try:
        await world.last(5.0)
    finally:
        broker.page.set(sync_delay_us=0, write_delay_us=0)


# -- clocks -------------------------------------------------------------------------------------


async def clock(world: World) -> None:
    """Put a broker's clock forward or back; it may stay so."""
    broker = world.broker()
    old = world.clocks.get(broker.name, 0.0)
    step = world.dice.choice((-1, 1)) * world.dice.choice((0.5, 3.0, 20.0, 60.0))
    new = min(AHEAD_S_MAX, max(-AHEAD_S_MAX, old + step))
    world.said(f"{broker.name} from {old:+g} s to {new:+g} s")
    world.set_clock(broker, new)
    await world.last(3.0)
    if world.dice.random() < 0.5:
        world.set_clock(broker, old)


# -- links --------------------------------------------------------------------------------------


async def _bad_link(world: World, longest_s: float, **how: float | bool) -> None:
    broker = world.broker()
    world.said(f"{broker.name} {how}")
    broker.link.order(**how)  # type: ignore[arg-type]
    try:
        await world.last(longest_s)
    finally:
        broker.link.order()


async def cut(world: World) -> None:
    """Cut a broker's cable."""
    await _bad_link(world, 4.0, is_in=False, is_out=False)


async def one_way(world: World) -> None:
    """Let frames pass in one direction only."""
    is_in = world.dice.random() < 0.5
    await _bad_link(world, 4.0, is_in=is_in, is_out=not is_in)


async def far_away(world: World) -> None:
    """Let a broker be far away: everything takes longer."""
    await _bad_link(world, 5.0, delay_s=world.dice.choice((0.005, 0.05, 0.3)))


async def packet_loss(world: World) -> None:
    """Lose some frames."""
    await _bad_link(world, 5.0, loss=world.dice.choice((0.02, 0.1, 0.3)))


async def partition(world: World) -> None:
    """Part a broker from some or all of the other servers; clients reach all of them."""
    broker = world.broker()
    others = [server for server in world.cluster.servers if server is not broker]
    is_alone = world.dice.random() < 0.5
    chosen = others if is_alone else world.dice.sample(others, world.dice.randint(1, len(others)))
    world.said(f"{broker.name} from {' '.join(server.name for server in chosen)}")
    try:
        await asyncio.to_thread(broker.link.part_from, [server.link for server in chosen])
        await world.last(5.0)
    finally:
        await asyncio.to_thread(broker.link.mend)


# -- the list -----------------------------------------------------------------------------------


class Kind(NamedTuple):
    """A kind of fault, and what a machine must have for it."""

    name: str
    inject: Callable[[World], Coroutine[None, None, None]]
    needs: str = ""


KINDS: Final = {
    one.name: one
    for one in (
        Kind("kill", kill),
        Kind("kill-in-recovery", kill_in_recovery),
        Kind("kill-at-roll", kill_at_roll),
        Kind("kill-all", kill_all),
        Kind("pause", pause),
        Kind("names", names_one_by_one),
        Kind("member", member),
        Kind("etcd", etcd_lost, "etcd"),
        Kind("full-disk", full_disk, "disk or shim"),
        Kind("read-only-disk", read_only_disk, "shim"),
        Kind("failing-disk", failing_disk, "shim"),
        Kind("slow-disk", slow_disk, "shim"),
        Kind("clock", clock, "shim"),
        Kind("cut", cut, "links"),
        Kind("one-way", one_way, "links"),
        Kind("far-away", far_away, "links"),
        Kind("packet-loss", packet_loss, "links"),
        Kind("partition", partition, "links"),
    )
}
