"""Deletion with a power cut at each of its steps, and whole lives of a store that deletes.

A seed that fails is replayed, alone, with

    GANTRYMQ_SEED=<seed> .venv/bin/pytest tests/simulation/test_cleaning_crashes.py -k seed
"""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING

import pytest

from gantrymq.store.verify import Kind
from gantrymq.testing.disk import Names, Operation
from support.cleaning_world import HOUR_S, PLACES, CleaningWorld

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEEDS = 160
CHUNKS = 4
FAILING = (Operation.REMOVE, Operation.REMOVE, Operation.SYNC_DIRECTORY)


def write_old_and_new(world: CleaningWorld) -> None:
    """Fill files of every kind; those of the first part are four days old in the end."""
    world.put(2, 100)  # the only message of its queue
    for number in range(24):
        world.put(number % 2, 500)
    world.put(3, 300)
    world.clean(61.0)  # queues and index are on the disk
    world.age(96)
    world.must_stay_from = world.rig.store.log.wrote_offset
    for number in range(8):
        world.put(number % 2, 500)
    world.force()


@pytest.mark.parametrize("names", list(Names))
@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("keep", [0.0, 0.5, 1.0])
def test_a_power_cut_at_every_step_of_a_deletion(
    names: Names, keep: float, tmp_path: Path, *, sync: bool
) -> None:
    steps, most_removed = 0, 0
    while True:
        world = CleaningWorld(sync, names, seed=steps, keep=keep)
        write_old_and_new(world)
        starts = world.starts
        world.disk.halt_after(steps)
        world.clean(15.0)
        crashed, world.keep = world.starts > starts, None
        if crashed and steps % 4 == 0:
            world.check_verified(tmp_path)
        world.disk.heal()
        world.look()
        world.put(2, 100)
        world.clean(90.0)
        world.look()
        world.check_begins()
        most_removed = max(most_removed, world.rig.store.log.min_offset)
        world.stop()
        world.check_begins()
        if not crashed:
            world.check_verified(tmp_path)
            break
        steps += 1
    assert steps > 20
    assert most_removed >= 2 * 4096


def seeds_of(chunk: int) -> list[int]:
    """Return every fourth seed, or the one that is to be replayed."""
    only = os.environ.get("GANTRYMQ_SEED")
    return list(range(chunk, SEEDS, CHUNKS)) if only is None else [int(only)]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_seed_deletes_too_much(chunk: int, tmp_path: Path) -> None:
    deleted = crashes = 0
    for seed in seeds_of(chunk):
        try:
            world = live(seed)
            # After a crash the index may lack keys of messages that share a store timestamp with
            # the checkpoint, whether anything was deleted or not.
            world.check_verified(tmp_path / str(seed), Kind.INDEX_MISSING)
        except BaseException as error:
            error.add_note(f"seed {seed}; replay: GANTRYMQ_SEED={seed}")
            raise
        deleted += world.rig.store.log.min_offset > 0
        crashes += world.crashes
    if "GANTRYMQ_SEED" not in os.environ:
        assert deleted > 20
        assert crashes > 50


def live(seed: int) -> CleaningWorld:
    """Live one life; the seed decides everything that happens."""
    random = Random(seed)
    world = CleaningWorld(random.random() < 0.6, random.choice(list(Names)), seed)
    for _ in range(80):
        step(world, random)
    world.disk.heal()
    world.disk.other_bytes = 0
    world.kill()
    world.put(0, 100)
    world.clean(150.0)
    world.look()
    world.check_begins()
    world.stop()
    return world


def step(world: CleaningWorld, random: Random) -> None:
    """Do one thing."""
    actions: list[tuple[Callable[[], object], int]] = [
        (lambda: put_some(world, random), 40),
        (lambda: world.run(random.randrange(3)), 20),
        (lambda: world.report_back(random.randrange(3)), 20),
        (world.settle, 12),
        (lambda: world.wait(random.choice((0.1, 0.2, 1.0, 10.0, 60.0))), 14),
        (lambda: world.wait(random.choice((30 * HOUR_S, 80 * HOUR_S))), 8),
        (world.look, 6),
        (lambda: world.fill(random.choice((0, 0, 80, 87, 95))), 6),
        (lambda: world.disk.fail(random.choice(FAILING), after=random.randrange(3)), 3),
        (lambda: world.disk.halt_after(random.randrange(20)), 5),
        (world.crash, 1),
        (world.kill, 1),
        (world.stop, 1),
        (lambda: world.clean(30.0), 3),
    ]
    choices, weights = zip(*actions, strict=True)
    random.choices(choices, weights)[0]()


def put_some(world: CleaningWorld, random: Random) -> None:
    """Put a few messages."""
    for _ in range(random.randint(1, 6)):
        world.put(random.randrange(len(PLACES)), random.choice((10, 200, 900)))
