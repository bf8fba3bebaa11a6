"""What a producer is told of its sends, over a real connection to a running broker."""

from __future__ import annotations

import errno
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from gantrymq.kernel import kernel
from gantrymq.store.files import MappedRegion, OsFiles
from gantrymq.wire.codes import ResponseCode
from gantrymq.wire.headers.send import SendMessageResponse, SendMessageV2Request
from gantrymq.wire.properties import decode_properties
from support.running import RunningBroker, running

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from gantrymq.store.files import Region
    from gantrymq.wire.command import Command
    from support.remoting import RemotingClient

SEND = 310
PRODUCERS, SENDS = 32, 40
SYSTEM_ERROR = 1
MEBIBYTE = 1 << 20
BORN_IPV6, STORE_IPV6 = 0x10, 0x20


def send(
    client: RemotingClient, body: bytes = b"hello", properties: str = "", topic: str = "T"
) -> Command:
    """Send a message to queue 0 and return the answer, whatever it says."""
    header = SendMessageV2Request(
        producer_group="p",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=0,
        born_timestamp=1,
        flag=0,
        properties=properties,
    )
    return client.ask(SEND, header, body)


def bodies(client: RemotingClient, topic: str = "T") -> list[bytes]:
    raws = client.pull_all(topic, 0)
    return [kernel.decode_record(raw, 0, len(raw), True)[0].body for raw in raws]


# -- may anything be stored now? -------------------------------------------------------------------


def test_a_store_that_may_not_be_written_says_why_and_goes_on_by_itself(tmp_path: Path) -> None:
    with running(tmp_path) as broker, broker.client() as client:
        assert send(client, b"before").code == 0
        writability = broker.store.writability
        broker.call(partial(writability.forbid, "test", "the disk is on loan"))
        refused = send(client)
        assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert "the disk is on loan" in str(refused.remark)
        broker.call(partial(writability.allow, "test"))
        assert send(client, b"after").code == 0
        assert bodies(client) == [b"before", b"after"]


def test_a_store_that_is_shutting_down(tmp_path: Path) -> None:
    with running(tmp_path) as broker, broker.client() as client:
        assert send(client).code == 0

        def shut(is_open: bool) -> None:
            broker.store.writability.is_open = is_open

        broker.call(partial(shut, False))
        refused = send(client)
        broker.call(partial(shut, True))
        assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert "not open" in str(refused.remark)


def test_a_slave(tmp_path: Path) -> None:
    with running(tmp_path, brokerRole="SLAVE", brokerId="1") as broker, broker.client() as client:
        refused = send(client, topic="TBW102")
        assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert "slave" in str(refused.remark)


def test_a_busy_page_cache(tmp_path: Path) -> None:
    with running(tmp_path) as broker, broker.client() as client:
        assert send(client, b"first").code == 0
        log, real = broker.store.log, broker.store.log.append_sends

        def slow(*arguments: object) -> object:
            broker.store.log.append_sends = real  # type: ignore[method-assign]
            time.sleep(1.2)  # osPageCacheBusyTimeOutMills is 1000
            return real(*arguments)  # type: ignore[arg-type]

        broker.call(partial(setattr, log, "append_sends", slow))
        assert send(client, b"slow").code == 0
        refused = send(client, b"refused")
        assert refused.code == SYSTEM_ERROR, "what makes producers of 4.9 and of 5.x go elsewhere"
        assert str(refused.remark).startswith("[PC_SYNCHRONIZED]broker busy")
        deadline = time.monotonic() + 10
        while send(client, b"again").code != 0:
            assert time.monotonic() < deadline, "it does not take sends again"
            time.sleep(0.1)
        assert bodies(client) == [b"first", b"slow", b"again"]
        failed = int(broker.call(broker.store.statistics.runtime)["putMessageFailedTimes"])
        assert failed >= 1


# -- is it a message? ------------------------------------------------------------------------------


def test_topics_and_properties_that_are_too_long(tmp_path: Path) -> None:
    with running(tmp_path) as broker, broker.client() as client:
        assert send(client).code == 0
        longest = send(client, topic="t" * 127)
        assert longest.code == 0
        too_long = send(client, topic="t" * 128)
        assert too_long.code == ResponseCode.INVALID_PARAMETER
        assert "127" in str(too_long.remark)
        before = broker.call(lambda: broker.store.log.wrote_offset)
        refused = send(client, properties="k\x01" + "v" * 32766)
        assert refused.code == ResponseCode.MESSAGE_ILLEGAL
        assert broker.call(lambda: broker.store.log.wrote_offset) == before
        assert client.max_offset("T", 0) == 1
        # What the broker adds to it (CLUSTER) counts as well.
        fits = send(client, properties="k\x01" + "v" * 32700)
        assert fits.code == 0


def test_the_largest_body(tmp_path: Path) -> None:
    size = str(16 * MEBIBYTE)
    with running(tmp_path, mappedFileSizeCommitLog=size) as broker, broker.client() as client:
        assert send(client, bytes(4 * MEBIBYTE)).code == 0
        before = broker.call(lambda: broker.store.log.wrote_offset)
        refused = send(client, bytes(4 * MEBIBYTE + 1))
        assert refused.code == ResponseCode.MESSAGE_ILLEGAL
        assert broker.call(lambda: broker.store.log.wrote_offset) == before
        assert client.max_offset("T", 0) == 1
        assert send(client, b"and the connection lives").code == 0


def test_a_delayed_message_says_where_it_belongs_while_it_waits(tmp_path: Path) -> None:
    with running(tmp_path) as broker, broker.client() as client:
        assert send(client, b"later", "DELAY\x0118").code == 0
        assert client.max_offset("T", 0) == 0
        (raw,) = client.pull_all("SCHEDULE_TOPIC_XXXX", 17)
        record, _end = kernel.decode_record(raw, 0, len(raw), True)
        properties = decode_properties(record.properties)
        assert (properties["REAL_TOPIC"], properties["REAL_QID"]) == ("T", "0")
        assert (record.body, properties["DELAY"]) == (b"later", "18")


# -- is there room for it? -------------------------------------------------------------------------


def test_a_log_file_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, has_room = OsFiles.create, [True]

    def create(files: OsFiles, path: Path, size: int) -> Region:
        if path.parent.name == "commitlog" and not has_room[0]:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(files, path, size)

    monkeypatch.setattr(OsFiles, "create", create)
    with running(tmp_path) as broker, broker.client() as client:
        assert send(client, bytes(200_000)).code == 0  # the next file is made ahead
        has_room[0] = False
        stored = 1
        while (answer := send(client, bytes(200_000))).code == 0:
            stored += 1
            assert stored < 100, "the disk never fills"
        assert answer.code == SYSTEM_ERROR
        assert "create mapped file failed" in str(answer.remark)
        assert stored >= 4
        assert len(bodies(client)) == stored, "what was stored is served"
        has_room[0] = True
        assert send(client, b"there is room again").code == 0
        assert len(bodies(client)) == stored + 1


# -- how safe is it? -------------------------------------------------------------------------------


class OneSlave:
    """A slave that is there and never confirms anything."""

    def is_available(self, end: int) -> bool:
        return end >= 0

    def shown_until(self) -> int | None:
        return None

    def moved(self) -> None:
        """Send nothing."""


def outcome(broker: RunningBroker) -> int:
    """Send, and see that the message is there whatever was said of it; return the code."""
    with broker.client() as client:
        before = client.max_offset("T", 0)
        answer = send(client, b"kept")
        place = SendMessageResponse.decode(answer.fields)
        assert place.queue_offset == before
        deadline = time.monotonic() + 10
        while client.max_offset("T", 0) == before:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert bodies(client) == [b"kept"] * (before + 1)
        return answer.code


def test_the_four_outcomes_of_a_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path / "ok", flushDiskType="SYNC_FLUSH") as broker:
        assert outcome(broker) == 0
    with running(tmp_path / "alone", brokerRole="SYNC_MASTER") as broker:
        assert outcome(broker) == ResponseCode.SLAVE_NOT_AVAILABLE
    silent = {"brokerRole": "SYNC_MASTER", "slaveTimeout": "300"}
    with running(tmp_path / "silent", **silent) as broker:
        broker.call(lambda: setattr(broker.store, "replicas", OneSlave()))
        assert outcome(broker) == ResponseCode.FLUSH_SLAVE_TIMEOUT
    real = MappedRegion.sync

    def slow(region: MappedRegion, *arguments: int) -> None:
        time.sleep(1.0)
        real(region, *arguments)

    slow_disk = {"flushDiskType": "SYNC_FLUSH", "syncFlushTimeout": "200"}
    with running(tmp_path / "slow", **slow_disk) as broker:
        assert outcome(broker) == 0  # files are made
        monkeypatch.setattr(MappedRegion, "sync", slow)
        assert outcome(broker) == ResponseCode.FLUSH_DISK_TIMEOUT
        monkeypatch.undo()


def test_one_force_serves_many_and_comes_before_every_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, flushDiskType="SYNC_FLUSH") as broker:
        with broker.client() as client:
            assert send(client).code == 0
        real, forces = MappedRegion.sync, [0]

        def counted(region: MappedRegion, *arguments: int) -> None:
            forces[0] += region.path.parent.name == "commitlog"
            real(region, *arguments)

        monkeypatch.setattr(MappedRegion, "sync", counted)
        flush, early = broker.store.flush, []

        def produce() -> None:
            with broker.client() as client:
                for _ in range(SENDS):
                    place = SendMessageResponse.decode(send(client).fields)
                    if int(place.msg_id[-16:], 16) >= flush.flushed_offset:
                        early.append(place.msg_id)

        threads = [threading.Thread(target=produce) for _ in range(PRODUCERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with broker.client() as client:
            assert client.max_offset("T", 0) == PRODUCERS * SENDS + 1
    assert early == [], "nobody is answered before the disk has it"
    assert 0 < forces[0] < PRODUCERS * SENDS / 4


def test_a_client_with_a_long_address(tmp_path: Path) -> None:
    with running(tmp_path, host="::1") as broker, broker.client() as client:
        answer = send(client, b"six")
        assert answer.code == 0
        message_id = SendMessageResponse.decode(answer.fields).msg_id
        assert len(message_id) == 56
        (raw,) = client.pull_all("T", 0)
        record, _end = kernel.decode_record(raw, 0, len(raw), True)
        assert record.sys_flag & (BORN_IPV6 | STORE_IPV6) == BORN_IPV6 | STORE_IPV6
        assert len(record.born_host) == len(record.store_host) == 20
        assert record.born_host[:16] == record.store_host[:16] == bytes(15) + b"\x01"
        assert int.from_bytes(record.store_host[16:]) == broker.node.port
        log_offset = int(message_id[-16:], 16)
        assert client.view(log_offset) == raw
