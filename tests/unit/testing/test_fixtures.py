"""The fixtures, as a project that uses them has them: in a run of pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from gantrymq.testing import fixtures

if TYPE_CHECKING:
    from pathlib import Path

CONFTEST = f'pytest_plugins = ["{fixtures.__name__}"]\n'
TESTS = """
import asyncio
import pytest
from gantrymq.client.producer import Producer

@pytest.fixture
def gantrymq_settings():
    return {"autoCreateTopicEnable": "false"}

async def order(namesrv):
    async with Producer(namesrv) as producer:
        await producer.send("Orders", b"one")

def test_order(gantrymq_broker):
    gantrymq_broker.create_topic("Orders", queues=1)
    asyncio.run(order(gantrymq_broker.namesrv))
    assert [message.body for message in gantrymq_broker.messages("Orders")] == [b"one"]

def test_a_broker_of_its_own(gantrymq_broker, gantrymq_namesrv):
    gantrymq_broker.create_topic("Orders")
    assert gantrymq_broker.messages("Orders") == []
    gantrymq_broker.refuse(times=1)
    asyncio.run(order(gantrymq_namesrv))
    assert gantrymq_broker.faults_happened == 1

def test_settings(gantrymq_namesrv):
    with pytest.raises(Exception, match="Orders"):
        asyncio.run(order(gantrymq_namesrv))
"""


def test_a_project_uses_the_fixtures(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_orders.py").write_text(TESTS)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(tmp_path),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_no_plugin_is_loaded_by_itself() -> None:
    """An entry point would cost every run of pytest the import of a broker."""
    names = [point.value for point in entry_points(group="pytest11")]
    assert names
    assert not [name for name in names if "gantrymq" in name]
