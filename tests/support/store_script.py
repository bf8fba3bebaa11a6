"""What a seed makes of a store's life: sends, workers, timers, readers, faults, ends and starts."""

from __future__ import annotations

import errno
from random import Random
from typing import TYPE_CHECKING

from gantrymq.store.worker import Workers
from gantrymq.testing.disk import Operation
from support.store_world import QUEUES, ROOT, TOPICS, Counts, Shape, World

if TYPE_CHECKING:
    from collections.abc import Callable

WORKERS = len(Workers._fields)
BODY_BYTES = (10, 10, 50, 200, 500, 1500)
FAILING = (Operation.SYNC, Operation.SYNC, Operation.SYNC_DIRECTORY, Operation.WRITE)


def run_seed(seed: int, steps: int = 60) -> Counts:
    """Live one life; the seed decides what store it is and everything that happens to it."""
    random = Random(seed)
    world = World(Shape.drawn(random), seed)
    actions, weights = zip(*_actions(), strict=True)
    for action in random.choices(actions, weights, k=steps):
        action(world, random)
    world.disk.heal()
    world.disk.other_bytes = 0
    world.crash()
    world.send([(0, 50)])
    world.wait(1.0)
    world.drain()
    world.look()
    assert all(sent.was_seen for messages in world.model.values() for sent in messages)
    world.stop(then_cut_power=True)
    return world.counts


def _actions() -> list[tuple[Callable[[World, Random], None], int]]:
    return [
        (_send, 50),
        (_put, 20),
        (lambda world, random: world.put_uncounted(random.choice((4, 12))), 4),
        (lambda world, random: world.run(random.randrange(WORKERS)), 40),
        (lambda world, random: world.report_back(random.randrange(WORKERS)), 34),
        (lambda world, _random: world.drain(), 8),
        (lambda world, random: world.wait(random.choice((0.05, 0.2, 0.5, 1.0, 10.0, 60.0))), 16),
        (lambda world, _random: world.look(), 8),
        (_get_later, 12),
        (lambda world, random: world.evict(random.randrange(4)), 8),
        (_set_clock, 4),
        (lambda world, _random: world.disk.write_back(), 4),
        (lambda world, random: world.disk.halt_after(random.randrange(12)), 4),
        (_fail, 3),
        (_fill_disk, 2),
        (lambda world, _random: world.kill(), 4),
        (lambda world, _random: world.crash(), 4),
        (lambda world, random: world.stop(then_cut_power=random.random() < 0.5), 3),
    ]


def _send(world: World, random: Random) -> None:
    count = random.randint(1, 4)
    world.send([(random.randrange(QUEUES), random.choice(BODY_BYTES)) for _ in range(count)])


def _put(world: World, random: Random) -> None:
    sizes = [random.choice(BODY_BYTES) for _ in range(random.choice((1, 1, 1, 3)))]
    topic, queue_id = random.choice(TOPICS), random.randrange(QUEUES)
    world.put(topic, queue_id, sizes, waits=random.random() < 0.8)


def _get_later(world: World, random: Random) -> None:
    topic, queue_id = random.choice(TOPICS), random.randrange(QUEUES)
    world.get_later(
        topic, queue_id, random.randrange(len(world.model.get((topic, queue_id), ())) + 2)
    )


def _set_clock(world: World, random: Random) -> None:
    by_ms = random.choice((-3_600_000, -5, 1_000, 86_400_000))
    world.clock.set_now_ms(world.clock.now_ms() + by_ms)


def _fail(world: World, random: Random) -> None:
    world.disk.fail(random.choice(FAILING), errno.EIO, after=random.randrange(3))


def _fill_disk(world: World, random: Random) -> None:
    disk = world.disk
    free = disk.capacity - disk.usage(ROOT).used
    disk.other_bytes = 0 if disk.other_bytes else max(0, free - random.randrange(20_000))
