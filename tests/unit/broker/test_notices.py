"""Notices to the members of a group: soon, few, and never a burst that stops everybody else."""

from __future__ import annotations

from gantrymq.broker.notices import INTERVAL_S, TELLS_MAX, Notices
from gantrymq.testing.clock import VirtualClock
from support.client_peers import FakePeer


class World:
    """One broker's notices, and a loop that calls them when they are due."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.groups: dict[str, list[FakePeer]] = {}
        self.notices = Notices(lambda group: self.groups.get(group, []), self.clock)
        self.due: list[float] = []
        self.notices.sooner = self.due.append

    def join(self, group: str) -> FakePeer:
        peer = FakePeer(len(self.groups.setdefault(group, [])))
        self.groups[group].append(peer)
        self.notices.changed(group)
        return peer

    def told(self, group: str) -> list[int]:
        return [len(peer.told) for peer in self.groups[group]]


def test_the_first_change_is_told_at_once_and_those_that_follow_together() -> None:
    world = World()
    world.join("G")
    assert world.told("G") == [1]
    for _ in range(9):
        world.clock.jump(INTERVAL_S / 100)
        world.join("G")
    assert world.told("G") == [1] + [0] * 9
    assert world.due == [INTERVAL_S]
    world.clock.jump(INTERVAL_S)
    assert world.notices.tick(world.clock.monotonic()) is not None
    assert world.told("G") == [2] + [1] * 9, "the last one's coming is known to all"
    world.clock.jump(2 * INTERVAL_S)
    assert world.notices.tick(world.clock.monotonic()) is None
    assert world.told("G") == [2] + [1] * 9, "nothing has changed since"
    world.join("G")
    assert world.told("G")[-1] == 1, "at once again"


def test_a_group_does_not_wait_for_another() -> None:
    world = World()
    world.join("G")
    world.clock.jump(INTERVAL_S / 2)
    world.join("H")
    assert world.told("H") == [1]
    world.join("G")
    world.clock.jump(INTERVAL_S / 2)
    world.notices.tick(world.clock.monotonic())
    assert world.told("G") == [2, 1]
    assert world.told("H") == [1]


def test_what_a_thousand_members_cost_grows_with_their_number() -> None:
    world = World()
    members = 1000
    for number in range(members):
        world.join("G")
        if number % 100 == 99:  # they come within a second
            world.clock.jump(INTERVAL_S)
            while world.notices.tick(world.clock.monotonic()) == world.clock.monotonic():
                pass
    told = world.told("G")
    assert min(told) >= 1
    assert sum(told) < 12 * members


def test_many_are_told_some_at_a_time() -> None:
    world = World()
    members = 2 * TELLS_MAX + 1
    world.groups["G"] = [FakePeer(number) for number in range(members)]
    world.notices.changed("G")
    assert sum(world.told("G")) == TELLS_MAX
    assert world.due == [0.0], "the others at once, when the loop had its turn"
    assert world.notices.tick(0.0) == 0.0
    assert sum(world.told("G")) == 2 * TELLS_MAX
    assert world.notices.tick(0.0) == INTERVAL_S
    assert world.told("G") == [1] * members
    (notice,) = {id(peer.told[0]) for peer in world.groups["G"]}
    assert notice, "one command for all of them, which is encoded once"
