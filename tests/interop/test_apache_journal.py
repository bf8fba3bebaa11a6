"""A store with a journal in Apache's hands and back: what was written last counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.names import JOURNAL_TOPIC
from gantrymq.wire.bodies.group import GROUP_CONFIG
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.offset import QueryConsumerOffsetRequest, UpdateConsumerOffsetRequest
from gantrymq.wire.headers.send import SendMessageV2Request
from support import apache, gantry

if TYPE_CHECKING:
    from pathlib import Path

    from support.remoting import RemotingClient

pytestmark = [
    pytest.mark.tool("java"),
    pytest.mark.tool("mvn"),
    # 5.5.0 does the same, slowly.
    pytest.mark.parametrize("apache_version", ["4.9.7"], indirect=True),
]
SIZES: Final = {
    "mappedFileSizeCommitLog": str(16 << 20),
    "maxHashSlotNum": "10000",
    "maxIndexNum": "40000",
    "brokerName": "broker-a",
}
TOPIC, GROUP = "Kept", "readers"
MESSAGES: Final = 50


def send_some(client: RemotingClient) -> None:
    for _ in range(MESSAGES):
        client.send(
            SendMessageV2Request(
                producer_group="p", topic=TOPIC, default_topic="TBW102",
                default_topic_queue_nums=4, queue_id=0, sys_flag=0, born_timestamp=1, flag=0,
                properties="",
            ),
            b"x",
        )  # fmt: skip


def commit(client: RemotingClient, offset: int) -> None:
    client.want(
        RequestCode.UPDATE_CONSUMER_OFFSET,
        UpdateConsumerOffsetRequest(
            consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=offset
        ),
    )


def committed(client: RemotingClient) -> int:
    header = QueryConsumerOffsetRequest(consumer_group=GROUP, topic=TOPIC, queue_id=0)
    return int(client.want(RequestCode.QUERY_CONSUMER_OFFSET, header).fields["offset"])


def test_a_journal_is_no_hindrance(apache_version: str, tmp_path: Path) -> None:
    ours = {**SIZES, "metadataInLog": "true"}
    with gantry.server(tmp_path / "ours", ours) as server, server.client() as client:
        send_some(client)
        body = GROUP_CONFIG.encode(SubscriptionGroup(GROUP))
        client.want(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
        commit(client, 17)
        assert client.max_offset(JOURNAL_TOPIC, 0) > 0
    root = tmp_path / "ours" / "data" / "store"
    assert b"gantrymqJournal" in (root / "config" / "consumerOffset.json").read_bytes()
    theirs = {**SIZES, "storePathRootDir": str(root)}
    with apache.broker(apache_version, tmp_path / "apache", theirs) as broker:
        with broker.client() as client:
            assert committed(client) == 17
            assert client.max_offset(TOPIC, 0) == MESSAGES
            send_some(client)
            commit(client, 42)
        broker.stop()
    assert b"gantrymqJournal" not in (root / "config" / "consumerOffset.json").read_bytes()
    with gantry.server(tmp_path / "ours", ours) as server, server.client() as client:
        assert committed(client) == 42, "an old journal takes nobody back"
        assert client.max_offset(TOPIC, 0) == 2 * MESSAGES
