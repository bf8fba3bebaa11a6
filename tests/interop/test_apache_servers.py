"""Apache RocketMQ's servers start here, find each other, and end when they are told to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from gantrymq.wire.bodies.route import CLUSTER_INFO
from gantrymq.wire.codes import RequestCode
from support import apache

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tool("java"), pytest.mark.tool("mvn")]


def test_a_broker_registers_with_a_name_server(apache_version: str, tmp_path: Path) -> None:
    with apache.name_server(apache_version, tmp_path / "names") as names:
        settings = {"storePathRootDir": str(tmp_path / "store"), "namesrvAddr": names.address}
        with apache.broker(apache_version, tmp_path / "broker", settings) as broker:
            with names.client() as client:
                deadline = time.monotonic() + apache.START_SECONDS_MAX
                known: dict[int, str] = {}
                while not known and time.monotonic() < deadline:
                    body = client.want(RequestCode.GET_BROKER_CLUSTER_INFO).body
                    table = CLUSTER_INFO.decode(body).broker_addr_table
                    known = dict(table["broker-a"].addresses) if "broker-a" in table else {}
            assert known == {0: broker.address}
            broker.kill()
        names.stop()


def test_a_server_that_cannot_start_says_why(apache_version: str, tmp_path: Path) -> None:
    root = tmp_path / "store"
    (root / "commitlog").mkdir(parents=True)
    (root / "commitlog" / "00000000000000000000").write_bytes(b"short")
    settings = {"storePathRootDir": str(root), "mappedFileSizeCommitLog": "65536"}
    with (
        pytest.raises(apache.NotStarted, match="it ended with"),
        apache.broker(apache_version, tmp_path / "broker", settings),
    ):
        pass
