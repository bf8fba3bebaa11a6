"""Requests that look at what is not in memory: the store's thread reads, producers go on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING

import pytest

from gantrymq.broker.half import COMMIT
from gantrymq.testing.disk import Operation
from gantrymq.wire.bodies.route import KV_TABLE
from gantrymq.wire.codes import RequestCode, ResponseCode
from support.broker_rig import BrokerRig
from support.samples import json_request
from support.transaction_world import World

if TYPE_CHECKING:
    from gantrymq.store.message_store import MessageStore
    from gantrymq.testing.disk import SimulatedFiles


def evict(store: MessageStore, disk: SimulatedFiles) -> None:
    """Take the log out of memory."""
    for file in store.log.files:
        disk.evict(file.region.path)


@pytest.fixture
def rig() -> BrokerRig:
    """Return a broker with two messages that are not in memory."""
    rig = BrokerRig()
    rig.store_some(b"one", b"two")
    rig.settle(5)
    evict(rig.store, rig.disk)
    return rig


@pytest.fixture
def world() -> Iterator[World]:
    """Return a world of transactions."""
    world = World()
    yield world
    world.close()


def test_the_end_of_a_transaction_whose_message_is_cold(world: World) -> None:
    sent = world.send(b"late")
    evict(world.rig.store, world.rig.disk)
    pending = world.begin_end(sent, COMMIT)
    assert isinstance(pending, Coroutine)
    task = world.loop.create_task(pending)
    for _ in range(3):
        world.loop.run_until_complete(asyncio.sleep(0))
    assert world.rig.cold_read.waiting_jobs == 1
    assert world.rig.put(b"meanwhile").messages == 1
    for _ in range(5):
        world.rig.settle()
        world.loop.run_until_complete(asyncio.sleep(0))
    answer = task.result()
    assert answer is not None
    assert world.seen() == [b"meanwhile", b"late"]
    assert len(world.ops()) == 1


def test_the_status_of_a_broker_whose_first_message_is_cold(rig: BrokerRig) -> None:
    expected = str(rig.store.reads.earliest_timestamp())
    asked = rig.begin(json_request(RequestCode.GET_BROKER_RUNTIME_INFO, {}))
    rig.turns()
    assert not asked.is_answered
    assert rig.send(b"meanwhile").code == ResponseCode.SUCCESS
    rig.work("cold_read")
    rig.turns()
    table = KV_TABLE.decode(asked.answer.body).table
    assert table["earliestMessageTimeStamp"] == expected


def test_the_status_of_a_broker_whose_disk_fails(rig: BrokerRig) -> None:
    asked = rig.begin(json_request(RequestCode.GET_BROKER_RUNTIME_INFO, {}))
    rig.disk.fail(Operation.READ)
    rig.work("cold_read")
    rig.turns()
    table = KV_TABLE.decode(asked.answer.body).table
    assert table["earliestMessageTimeStamp"] == "-1"
    assert table["commitLogMaxOffset"] != "0"
