"""Whole lives of a store on a simulated disk, and one life with a power cut at each of its steps.

A seed that fails is replayed, alone, with

    GANTRYMQ_SEED=<seed> .venv/bin/python -m pytest tests/simulation/test_store_crashes.py -k seed
"""

from __future__ import annotations

import os
from dataclasses import astuple

import pytest

from gantrymq.testing.disk import Names
from support.store_script import run_seed
from support.store_world import Counts, Shape, World

SEEDS = 576
CHUNKS = 8
CRASHES_AT_LEAST = 2000
REPLAY = (
    "GANTRYMQ_SEED={} .venv/bin/python -m pytest tests/simulation/test_store_crashes.py -k seed"
)


def seeds_of(chunk: int) -> list[int]:
    """Return every eighth seed, or the one that is to be replayed."""
    only = os.environ.get("GANTRYMQ_SEED")
    return list(range(chunk, SEEDS, CHUNKS)) if only is None else [int(only)]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_seed_loses_a_message(chunk: int, request: pytest.FixtureRequest) -> None:
    total = Counts()
    for seed in seeds_of(chunk):
        try:
            counts = run_seed(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}; replay: {REPLAY.format(seed)}")
            raise
        total = Counts(*map(sum, zip(astuple(total), astuple(counts), strict=True)))
    request.node.user_properties.append(("counts", str(total)))
    if "GANTRYMQ_SEED" not in os.environ:
        assert total.crashes >= CRASHES_AT_LEAST // CHUNKS
        assert total.acknowledged > total.crashes
        assert total.got_later > total.crashes // 4


SHAPES = [
    Shape(sync=True, names=Names.STRICT),
    Shape(sync=True, names=Names.JOURNALED, pool=True),
    Shape(sync=False, names=Names.STRICT),
    Shape(sync=False, names=Names.JOURNALED),
]


def live(world: World) -> None:
    """Send, save and roll, with every kind of disk operation in it."""
    world.send([(0, 200), (1, 1500), (0, 10)])
    world.drain()
    world.put("Bee", 1, [500, 500])
    world.wait(1.0)
    world.drain()
    world.send([(0, 1500), (1, 1500), (1, 50)])
    world.wait(60.0)
    world.drain()
    for _ in range(3):
        world.put("Bee", 0, [700])
        world.send([(1, 400)])
    world.wait(11.0)
    world.drain()
    world.stop(then_cut_power=False)
    world.send([(0, 30)])
    world.drain()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("keep", [0.0, 0.5, 1.0])
def test_a_power_cut_at_every_step(shape: Shape, keep: float) -> None:
    steps = 0
    while True:
        world = World(shape, seed=steps, keep=keep)
        world.disk.halt_after(steps)
        live(world)
        if world.counts.crashes == 0:
            break  # that life has no more steps than these
        assert world.counts.crashes == 1
        steps += 1
    assert steps > 50
