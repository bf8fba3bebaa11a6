"""A group with failover whose members live in network namespaces of their own: cables can be cut.

    clients, name server   10.213.0.254, on a bridge
    etcd                   10.213.0.250
    members                10.213.0.1, .2, ...

A member that is cut off reaches neither etcd nor the others, and clients reach it all the same: so
it shows whether it would take a send. A cut is a route to nowhere inside its namespace.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import GantryError
from support.etcd import etcd
from support.failover_group import QUEUES, SEND, STORED, WAIT_S_MAX, Group, Report, header

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack
    from pathlib import Path
    from random import Random
    from typing import Self

    from support.failover_group import Broker

NET: Final = "10.213.0"
ETCD: Final = 250
CLIENTS: Final = 254


def _ip(*arguments: str) -> None:
    subprocess.run(
        [shutil.which("ip") or "ip", *arguments], check=True, capture_output=True, text=True
    )


def problem() -> str | None:
    """Return why namespaces cannot be made here, or None."""
    name = f"gmq-try-{os.getpid()}"
    try:
        _ip("netns", "add", name)
        _ip("netns", "del", name)
    except FileNotFoundError:
        return "there is no `ip` (package iproute2)"
    except subprocess.CalledProcessError as error:
        return f"network namespaces need root: {error.stderr.strip()}"
    return None


class Taken(NamedTuple):
    """A send that a broker has stored."""

    broker: int
    begun: float
    ended: float


class PartitionedGroup(Group):
    """The group; the namespaces are gone when the block ends."""

    client_host = f"{NET}.{CLIENTS}"

    def __init__(self, folder: Path, members: int = 2, lease_s: int = 2) -> None:
        super().__init__(folder, members, lease_s)
        self._tag = f"g{os.getpid() % 100000}"
        self.taken: list[Taken] = []

    def _space(self, number: int) -> str:
        return f"{self._tag}n{number}"

    def __enter__(self) -> Self:
        bridge = f"{self._tag}br"
        self._stack.callback(self._remove, bridge)
        _ip("link", "add", bridge, "type", "bridge")
        _ip("addr", "add", f"{NET}.{CLIENTS}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for number in (ETCD, *range(1, self._members + 1)):
            self._add(bridge, number)
        return super().__enter__()

    def _add(self, bridge: str, number: int) -> None:
        space, cable = self._space(number), f"{self._tag}v{number}"
        _ip("netns", "add", space)
        _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space)
        _ip("link", "set", cable, "master", bridge, "up")
        _ip("-n", space, "link", "set", "lo", "up")
        _ip("-n", space, "addr", "add", f"{NET}.{number}/24", "dev", "eth0")
        _ip("-n", space, "link", "set", "eth0", "up")

    def _remove(self, bridge: str) -> None:
        for number in (ETCD, *range(1, self._members + 1)):
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "del", self._space(number))
        with suppress(subprocess.CalledProcessError):
            _ip("link", "del", bridge)

    def place(self, member: int) -> tuple[str, Sequence[str]]:
        return f"{NET}.{member}", ("ip", "netns", "exec", self._space(member))

    def _start_etcd(self, stack: ExitStack, folder: Path) -> str:
        inside = ("ip", "netns", "exec", self._space(ETCD))
        return stack.enter_context(etcd(folder, f"{NET}.{ETCD}", inside)).address

    # -- cables -----------------------------------------------------------------------------------

    def _others(self, member: int) -> list[int]:
        return [n for n in (ETCD, *range(1, self._members + 1)) if n != member]

    def cut(self, member: int) -> None:
        """Let a member reach neither etcd nor the others."""
        for other in self._others(member):
            _ip("-n", self._space(member), "route", "add", "blackhole", f"{NET}.{other}/32")

    def mend(self, member: int) -> None:
        for other in self._others(member):
            _ip("-n", self._space(member), "route", "del", "blackhole", f"{NET}.{other}/32")

    # -- rounds -----------------------------------------------------------------------------------

    def _watch(self, number: int, broker: Broker) -> None:
        """Send to one broker without a pause, and note what it stores."""
        sent = 0
        while not self._stop.is_set():
            with suppress(OSError, GantryError), broker.client() as client:
                while not self._stop.is_set():
                    body = b"w%d-%d" % (number, sent)
                    sent += 1
                    begun = time.monotonic()
                    code = client.ask(SEND, header(sent % QUEUES), body).code
                    if code in STORED:
                        self.taken.append(Taken(number, begun, time.monotonic()))
                    if code == 0:
                        self.acknowledged.add(body)
                    elif code not in STORED:
                        time.sleep(0.01)
            time.sleep(0.02)

    def partition_rounds(self, rounds: int, dice: Random) -> tuple[Report, int]:
        """Cut the master off again and again; return also how often two took sends at one time."""
        self.master(frozenset({0}))
        self._threads = [
            threading.Thread(target=self._watch, args=(number, broker), daemon=True)
            for number, broker in enumerate(self.brokers, 1)
        ]
        for thread in self._threads:
            thread.start()
        seconds, both = [], 0
        for _ in range(rounds):
            self.master(frozenset({0}))
            time.sleep(dice.uniform(0.1, 0.6))
            old = max(self.taken, key=lambda one: one.ended).broker
            cut_at = time.monotonic()
            self.cut(old)
            first = self._first_of_another(old, cut_at)
            seconds.append(first.ended - cut_at)
            time.sleep(dice.uniform(0.2, 0.8))
            both += sum(one.broker == old and one.begun > first.ended for one in self.taken)
            self.mend(old)
        last = self.master(frozenset({0}))
        self._end_producers()
        return self.compared(last, seconds), both

    def _first_of_another(self, old: int, since: float) -> Taken:
        deadline = time.monotonic() + WAIT_S_MAX
        while time.monotonic() < deadline:
            for one in self.taken[-2000:]:
                if one.broker != old and one.begun > since:
                    return one
            time.sleep(0.01)
        raise AssertionError(f"nobody takes sends {WAIT_S_MAX} s after {old} was cut off")
