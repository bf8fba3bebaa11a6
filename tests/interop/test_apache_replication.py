"""Mixed pairs: our slave behind an Apache master, an Apache slave behind ours; the same bytes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pytest

from gantrymq.kernel import kernel
from gantrymq.wire.batch import BatchMessage, encode_batch
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.headers.send import SendMessageV2Request
from support import apache, gantry
from support.running import running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.remoting import RemotingClient

pytestmark = [
    pytest.mark.tool("java"),
    pytest.mark.tool("mvn"),
    # Whose replication is copied; 5.5.0 has the same bytes.
    pytest.mark.parametrize("apache_version", ["4.9.7"], indirect=True),
]

MESSAGES: Final = 100_000
BATCH: Final = 100
QUEUES: Final = 4
TOPIC: Final = "Copied"
FILE_BYTES: Final = 4 << 20
WAIT_S: Final = 60
"""Apache's slave reports for the first time after 5 s and copies tables every 10 s."""
SIZES: Final = {
    "mappedFileSizeCommitLog": str(FILE_BYTES),
    "maxHashSlotNum": "10000",
    "maxIndexNum": "40000",
    "slaveReadEnable": "true",
    "waitTimeMillsInSendQueue": "10000",
    "haSendHeartbeatInterval": "1000",
}
SLAVE: Final = {"brokerRole": "SLAVE", "brokerId": "1"}


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {WAIT_S} s: {what}"
        time.sleep(0.05)


def header(queue_id: int) -> SendMessageV2Request:
    return SendMessageV2Request(
        producer_group="p",
        topic=TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=QUEUES,
        queue_id=queue_id,
        sys_flag=0,
        born_timestamp=1,
        flag=0,
        properties="",
        batch=True,
    )


def send_all(client: RemotingClient) -> None:
    """Send `MESSAGES`, each with its number, in batches; a slave must have every one of them."""
    for first in range(0, MESSAGES, BATCH):
        messages = [BatchMessage(0, b"%08d" % n, b"") for n in range(first, first + BATCH)]
        queue = first // BATCH % QUEUES
        answer = client.ask(RequestCode.SEND_BATCH_MESSAGE, header(queue), encode_batch(messages))
        assert answer.code == ResponseCode.SUCCESS, answer.remark


def served(client: RemotingClient) -> set[bytes]:
    """Return the bodies of all messages that a broker serves."""
    raws = [raw for queue in range(QUEUES) for raw in client.pull_all(TOPIC, queue)]
    return {kernel.decode_record(raw, 0, len(raw), True)[0].body for raw in raws}


def logs_of(store: Path) -> dict[str, bytes]:
    """Return the log files that anything was written to."""
    files = {path.name: path.read_bytes() for path in sorted((store / "commitlog").iterdir())}
    return {name: data for name, data in files.items() if data.strip(b"\0")}


def assert_copied(master: Path, slave: Path, slave_client: RemotingClient) -> None:
    assert logs_of(slave) == logs_of(master)
    assert served(slave_client) == {b"%08d" % n for n in range(MESSAGES)}


def test_our_slave_behind_apaches_master(apache_version: str, tmp_path: Path) -> None:
    with apache.name_server(apache_version, tmp_path / "names") as names:
        common = {**SIZES, "namesrvAddr": names.address}
        theirs = {
            **common, "storePathRootDir": str(tmp_path / "theirs"), "brokerRole": "SYNC_MASTER",
        }  # fmt: skip
        with (
            apache.broker(apache_version, tmp_path / "broker", theirs) as master,
            running(tmp_path / "ours", brokerName="broker-a", **common, **SLAVE) as slave,
            master.client() as client,
        ):
            replication = slave.node.replication.client
            assert replication is not None
            wait_for("a connection", lambda: replication.is_connected)
            wait_for(
                "the first send that a slave has",
                lambda: (
                    client.ask(
                        RequestCode.SEND_BATCH_MESSAGE,
                        header(0),
                        encode_batch([BatchMessage(0, b"00000000", b"")]),
                    ).code
                    == ResponseCode.SUCCESS
                ),
            )
            send_all(client)
            wait_for("the tables", lambda: slave.node.broker.tables.topics.find(TOPIC) is not None)
            with slave.client() as reader:
                assert_copied(tmp_path / "theirs", tmp_path / "ours", reader)


def test_apaches_slave_behind_our_master(apache_version: str, tmp_path: Path) -> None:
    settings = {**SIZES, "brokerRole": "SYNC_MASTER", "brokerName": "broker-a"}
    with gantry.server(tmp_path / "ours", settings) as master, master.client() as client:
        theirs = {
            **SIZES, **SLAVE,
            "namesrvAddr": master.name_server,
            "storePathRootDir": str(tmp_path / "theirs"),
        }  # fmt: skip
        with apache.broker(apache_version, tmp_path / "broker", theirs) as slave:
            first = encode_batch([BatchMessage(0, b"00000000", b"")])
            wait_for(
                "the first send that a slave has",
                lambda: (
                    client.ask(RequestCode.SEND_BATCH_MESSAGE, header(0), first).code
                    == ResponseCode.SUCCESS
                ),
            )
            send_all(client)
            with slave.client() as reader:
                wait_for("the tables", lambda: has_topic(reader))
                assert_copied(tmp_path / "ours" / "data" / "store", tmp_path / "theirs", reader)


def has_topic(client: RemotingClient) -> bool:
    topics = client.ask(RequestCode.GET_ALL_TOPIC_CONFIG)
    return topics.code == ResponseCode.SUCCESS and TOPIC.encode() in topics.body
