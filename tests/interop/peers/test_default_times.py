"""Delay levels and retries with the times that everybody has: 1 s, 5 s, 10 s, 30 s."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from gantrymq.kernel import kernel
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.topic import CreateTopicRequest
from interop.peers.clients import command_of
from interop.peers.scenarios import World
from support import gantry, peers

if TYPE_CHECKING:
    from pathlib import Path

    from interop.peers.scenarios import Consumer

LEVEL_S: Final = {1: 1, 2: 5, 3: 10, 4: 30}
MESSAGES: Final = 50
"""Of each level."""
LATE_MS_MAX: Final = 200
RETRY_LATE_S_MAX: Final = 1.5


class Canary(threading.Thread):
    """Sleeps for a moment again and again: how late it wakes is the machine's own fault."""

    PAUSE_S: Final = 0.02

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.late_ms = 0.0
        self.is_over = False

    def run(self) -> None:
        while not self.is_over:
            start = time.monotonic()
            time.sleep(self.PAUSE_S)
            over = time.monotonic() - start - self.PAUSE_S
            self.late_ms = max(self.late_ms, over * 1000)


def delays(world: World, canary: Canary) -> float:
    """A message of each level is delivered in its time: not early, and hardly late; how late?"""
    topic = world.topic()
    consumer = world.consumer(topic)
    tag = world.new_name("body")
    bodies = [f"{level} {place} {tag}" for place in range(MESSAGES) for level in LEVEL_S]
    world.send(topic, [{"body": body, "delay": int(body.split()[0])} for body in bodies])
    sent = {message["body"]: message for message in world.all_of(consumer, bodies)}
    taken = taken_ms(world)
    late = []
    for body in bodies:
        message, wait_ms = sent[body], LEVEL_S[int(body.split()[0])] * 1000
        assert message["received"] >= message["born"] + wait_ms, f"{body} came early"
        assert message["stored"] >= taken[body] + wait_ms, f"{body} was delivered early"
        late.append(message["stored"] - taken[body] - wait_ms)
    late.sort()
    worst: float = late[len(late) * 99 // 100 - 1]
    assert worst <= LATE_MS_MAX + canary.late_ms, late[-20:]
    return worst


def taken_ms(world: World) -> dict[str, int]:
    """Return when the broker got each delayed message, by its body."""
    with world.raw() as client:
        raws = [
            raw for level in LEVEL_S for raw in client.pull_all("SCHEDULE_TOPIC_XXXX", level - 1)
        ]
    records = [kernel.decode_record(raw, 0, len(raw), True)[0] for raw in raws]
    return {record.body.decode(): record.store_timestamp for record in records}


def retries(world: World) -> float:
    """A message that fails comes again after 10 s, and failing again after 30 s; how late?"""
    topic, group = world.topic(), world.new_name("group")
    # A client that finds its retry topic when it starts does not look for it half a minute later.
    retry_topic = CreateTopicRequest(
        topic=f"%RETRY%{group}", default_topic="TBW102", read_queue_nums=1, write_queue_nums=1,
        perm=6, topic_filter_type="SINGLE_TAG", order=False, topic_sys_flag=0,
    )  # fmt: skip
    with world.raw() as client:
        client.want(RequestCode.UPDATE_AND_CREATE_TOPIC, retry_topic)
    world.wait_for_route(retry_topic.topic)
    consumer = world.consumer(topic, group, failures=2)
    world.send(topic, [{"body": "bad"}])
    assert world.wait(lambda: len(consumer.received()) == 3)
    first, second, third = consumer.received()
    assert [one["times"] for one in (first, second, third)] == [0, 1, 2]
    late = [late_ms(first, second, 10), late_ms(second, third, 30)]
    assert parked(consumer) == 0
    return max(late)


def late_ms(failed: dict[str, Any], again: dict[str, Any], seconds: float) -> float:
    late: float = again["received"] - failed["received"] - seconds * 1000
    assert 0 <= late <= RETRY_LATE_S_MAX * 1000
    return late


def parked(consumer: Consumer) -> int:
    """Return how much more came than was asked for."""
    time.sleep(0.5)
    return len(consumer.received()) - 3


def test_delays_and_retries(tmp_path: Path) -> None:
    commands = {name: command_of(name) for name in ("java-4.9.7", "go")}
    with ExitStack() as stack:
        server = stack.enter_context(gantry.server(tmp_path / "server", {}))
        worlds = {
            name: World(
                stack.enter_context(peers.running(command, server.name_server, tmp_path / name)),
                server.name_server, server.port, f"times-{name.replace('.', '')}",
            )
            for name, command in commands.items()
        }  # fmt: skip
        canary = Canary()
        canary.start()
        with ThreadPoolExecutor(3) as threads:
            waiting = [
                threads.submit(retries, worlds["java-4.9.7"]),
                *(threads.submit(delays, world, canary) for world in worlds.values()),
            ]
            found = [one.result() for one in waiting]
        canary.is_over = True
    assert max(found) <= max(LATE_MS_MAX + canary.late_ms, RETRY_LATE_S_MAX * 1000)
