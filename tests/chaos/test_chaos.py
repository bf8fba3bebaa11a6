"""Short forms of `make chaos`: real servers, real clients, a few faults; every promise is kept."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from chaos.cluster import SETTINGS
from chaos.faults import KINDS
from chaos.one_run import Machine, Plan, Result, run_one
from chaos.table import printed, table

SECONDS = 5.0
PROCESSES = ("kill", "kill-at-roll", "pause", "names")
MACHINES = ("slow-disk", "clock", "full-disk", "packet-loss")


def run(name: str, kinds: tuple[str, ...], folder: Path) -> Result:
    machine = Machine.here()
    plan = Plan(SETTINGS[name], 1, SECONDS, machine.possible(kinds))
    result = asyncio.run(run_one(plan, folder, machine, lambda _line: None))
    assert str(folder) not in Path("/proc/mounts").read_text(encoding="utf-8")
    assert not [one for one in socket.if_nameindex() if one[1].startswith(f"c{os.getpid()}")]
    return result


def check(result: Result) -> None:
    assert result.is_kept, printed(result, 20)
    assert result.injected.total() >= 2
    assert result.verdict.acknowledged > 100, table([result])
    assert result.verdict.delivered > 100, table([result])


def test_a_broker_and_its_name_servers_fail(tmp_path: Path) -> None:
    check(run("async-flush", PROCESSES, tmp_path))


def test_disk_clock_and_link_of_a_broker_fail(tmp_path: Path) -> None:
    check(run("sync-flush", MACHINES if Machine.here().has_shim else PROCESSES, tmp_path))


@pytest.mark.tool("etcd")
def test_members_of_a_group_with_failover_fail(tmp_path: Path) -> None:
    check(run("failover", ("kill", "pause", "etcd", "partition"), tmp_path))


def test_every_kind_of_fault_can_be_had_here() -> None:
    machine = Machine.here()
    if machine.problems:
        pytest.skip(f"some faults are left out here: {'; '.join(machine.problems)}")
    assert machine.possible(list(KINDS)) == list(KINDS)
