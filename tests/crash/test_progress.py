"""Progress that is saved by the clock, after kill -9: offsets of groups, and delayed messages."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from gantrymq.errors import GantryError
from gantrymq.kernel import kernel
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.offset import OffsetResponse, QueryConsumerOffsetRequest
from gantrymq.wire.headers.pull import PullMessageRequest
from gantrymq.wire.headers.send import SendMessageV2Request
from gantrymq.wire.sysflag import PullFlag
from support.failover_group import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.remoting import RemotingClient

TOPIC: Final = "Kept"
GROUP: Final = "readers"
SAVE_S: Final = 5.0
"""flushConsumerOffsetInterval, which is not set."""
SLACK_S: Final = 1.0
"""What a busy machine may add."""
DELAY_S: Final = 3.0
DELAYED: Final = 1000
PROGRESS_S: Final = 1.0
DOWN_S: Final = 1.0
WAIT_S_MAX: Final = 40


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    settings = {
        "messageDelayLevel": "1s 3s",
        "flushDelayOffsetInterval": str(int(PROGRESS_S * 1000)),
    }
    one = Broker(tmp_path, "broker", settings)
    yield one
    one.stop()


def connected(broker: Broker) -> RemotingClient:
    """Return a connection to a broker that may just have been started."""
    deadline = time.monotonic() + WAIT_S_MAX
    while True:
        with suppress(OSError, GantryError):
            client = broker.client()
            client.ask(RequestCode.GET_BROKER_CONFIG)
            return client
        assert time.monotonic() < deadline, broker.log.read_text()
        time.sleep(0.05)


def send_header(properties: str = "") -> SendMessageV2Request:
    return SendMessageV2Request(
        producer_group="p", topic=TOPIC, default_topic="TBW102", default_topic_queue_nums=1,
        queue_id=0, sys_flag=0, born_timestamp=1, flag=0, properties=properties,
    )  # fmt: skip


def pull_and_commit(client: RemotingClient, offset: int) -> int:
    """Pull one message and commit what is before it; return where the next is."""
    header = PullMessageRequest(
        consumer_group=GROUP, topic=TOPIC, queue_id=0, queue_offset=offset, max_msg_nums=1,
        sys_flag=PullFlag.SUBSCRIPTION | PullFlag.COMMIT_OFFSET, commit_offset=offset,
        suspend_timeout_millis=0, sub_version=0, subscription="*", expression_type="TAG",
    )  # fmt: skip
    client.want(RequestCode.PULL_MESSAGE, header)
    return offset + 1


def committed(client: RemotingClient) -> int:
    header = QueryConsumerOffsetRequest(consumer_group=GROUP, topic=TOPIC, queue_id=0)
    answer = client.want(RequestCode.QUERY_CONSUMER_OFFSET, header)
    return OffsetResponse.decode(answer.fields).offset


def test_offsets_go_back_by_no_more_than_the_interval_of_their_saves(broker: Broker) -> None:
    commits: list[tuple[float, int]] = []
    with connected(broker) as client:
        for number in range(400):
            client.send(send_header(), b"%d" % number)
        offset, until = 0, time.monotonic() + 1.7 * SAVE_S
        while time.monotonic() < until:
            commits.append((time.monotonic(), offset))
            offset = pull_and_commit(client, offset)
            time.sleep(0.05)
    broker.kill()
    killed = time.monotonic()
    broker.start()
    with connected(broker) as client:
        found = committed(client)
    safe = max(offset for at, offset in commits if at <= killed - SAVE_S - SLACK_S)
    assert safe > 10, "there was something to keep"
    assert safe <= found <= commits[-1][1], "little is read again, nothing is left out"


class Delayed(NamedTuple):
    """A delayed message."""

    number: int
    due: float
    """By the clock of the wall."""


def sent_over(client: RemotingClient, seconds: float) -> list[Delayed]:
    sent = []
    for number in range(DELAYED):
        at = time.time()
        client.send(send_header("DELAY\x012\x02"), b"%d" % number)
        sent.append(Delayed(number, at + DELAY_S))
        time.sleep(seconds / DELAYED)
    return sent


def test_delayed_messages_survive_a_kill(broker: Broker) -> None:
    with connected(broker) as client:
        sent = sent_over(client, 3.5)
    time.sleep(max(0.0, sent[DELAYED // 2].due - time.time()))
    broker.kill()
    killed = time.time()
    assert sent[0].due < killed < sent[-1].due, "some have come, others wait"
    time.sleep(DOWN_S)
    broker.start()
    with connected(broker) as client:
        back = time.time()
        deadline = time.monotonic() + WAIT_S_MAX
        while len(set(bodies := delivered(client))) < DELAYED:
            assert time.monotonic() < deadline, f"{len(set(bodies))} have come"
            time.sleep(0.2)
        records = [
            kernel.decode_record(raw, 0, len(raw), True)[0] for raw in client.pull_all(TOPIC, 0)
        ]
    dues = {one.number: one.due for one in sent}
    times: Counter[int] = Counter()
    for record in records:
        number = int(record.body)
        times[number] += 1
        stored = record.store_timestamp / 1000
        assert stored >= dues[number] - 0.001, "early"
        if times[number] == 1:
            latest = max(dues[number], back if dues[number] < back else 0.0)
            assert stored <= latest + SLACK_S, f"{stored - dues[number]} s late"
    assert set(times) == set(dues)
    twice = [number for number, count in times.items() if count > 1]
    lately = [one for one in sent if killed - PROGRESS_S - SLACK_S <= one.due <= killed]
    assert len(twice) <= len(lately)
    assert max(times.values()) <= 2


def delivered(client: RemotingClient) -> list[bytes]:
    return [
        kernel.decode_record(raw, 0, len(raw), True)[0].body for raw in client.pull_all(TOPIC, 0)
    ]
