"""`gantrymq cluster demo`, and the files of the deployments in conf/."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gantrymq.node.config import read_broker_config, read_file
from gantrymq.node.layouts import LAYOUTS
from gantrymq.store.settings import BrokerRole

ROOT = Path(__file__).parents[3]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gantrymq", "cluster", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(("layout", "slaves"), [("2m-2s-sync", 2), ("2m-2s-async", 2)])
def test_a_deployment_is_started_shown_and_removed(layout: str, slaves: int) -> None:
    done = run("demo", "--layout", layout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (done.stdout.count("  master "), done.stdout.count("  slave ")) == (2, slaves)
    assert done.stdout.count("SEND_OK on broker-") == 8
    assert "read 8 of 8" in done.stdout
    assert done.stdout.endswith("stopped and removed\n")


def test_a_layout_that_is_none() -> None:
    done = run("demo", "--layout", "3m")
    assert done.returncode == 1
    assert done.stderr.startswith("gantrymq cluster: there is no layout '3m': say one of 1m, ")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_files_in_conf_are_a_group(layout: str, tmp_path: Path) -> None:
    files = sorted((ROOT / "conf" / layout).iterdir(), key=lambda path: path.stem)
    assert [path.stem for path in files] == sorted(LAYOUTS[layout])
    found = [read_broker_config(read_file(path), tmp_path) for path in files]
    seats = {(one.broker.name, one.broker.broker_id, one.broker.member) for one in found}
    assert len(seats) == len(files)
    for one in found:
        is_slave = one.store.replication.role is BrokerRole.SLAVE
        assert is_slave == (one.broker.broker_id > 0)
