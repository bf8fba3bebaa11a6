"""Messages for later and taking them back (5.x), and traces."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from gantrymq.client.producer import Producer
from gantrymq.client.results import TransactionState
from gantrymq.errors import InvalidValue
from gantrymq.model.message import Message
from gantrymq.model.names import TRACE_TOPIC
from gantrymq.wire.record import decode_record
from gantrymq.wire.response_errors import RequestCodeNotSupported, ResponseError

if TYPE_CHECKING:
    from support.targets import Target
    from support.transport import Run


def test_a_time_of_delivery(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("timer"), 1)

    async def main() -> None:
        async with Producer(target.namesrv) as producer:
            at = datetime.now(UTC) + timedelta(seconds=2)
            result = await producer.send(topic, b"later", deliver_at=at)
            if target.is_v4:
                assert result.recall_handle is None
            else:
                assert result.recall_handle
                assert await asyncio.to_thread(target.messages, topic, 1) == []
        (found,) = await target.wait_for_messages(topic, 1, 1)
        assert found.body == b"later"
        if not target.is_v4:  # which knows no timers, and delivers at once
            assert found.raw.store_timestamp >= int(at.timestamp()) * 1000

    run(main())


def test_a_message_is_taken_back(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("recall"), 1)

    async def main() -> None:
        async with Producer(target.namesrv) as producer:
            if target.is_v4:
                handle = "djEgdG9waWMgYnJva2VyLWEgMSBrZXk="
                with pytest.raises(RequestCodeNotSupported):
                    await producer.recall(topic, handle)
                return
            at_ms = int(time.time() * 1000) + 3000
            gone = await producer.send(topic, b"gone", deliver_at=at_ms)
            await producer.send(topic, b"kept", deliver_at=at_ms)
            assert gone.recall_handle is not None
            assert await producer.recall(topic, gone.recall_handle) == gone.message_id
            (found,) = await target.wait_for_messages(topic, 1, 1)
            assert found.body == b"kept"
            with pytest.raises(ResponseError):
                await producer.recall(topic, gone.recall_handle)
            with pytest.raises(InvalidValue, match="recall handle 'nonsense' is none"):
                await producer.recall(topic, "nonsense")

    run(main())


def test_a_send_is_traced(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("traced"), 1)
    group = target.name("traced_group")

    def traces(key: str) -> list[list[str]]:
        with target.client() as client:
            raw = client.query(TRACE_TOPIC, key)
        bodies = [decode_record(each, 0, len(each))[0].body.decode() for each in raw]
        return [record.split("\x01") for body in bodies for record in body.split("\x02") if record]

    async def found(key: str, count: int) -> list[list[str]]:
        for _ in range(500):
            records = [each for each in await asyncio.to_thread(traces, key) if key in each]
            if len(records) >= count:
                return records
            await asyncio.sleep(0.02)
        raise TimeoutError(f"no trace of {key}: {records}")

    async def commit(_message: object) -> TransactionState:
        return TransactionState.COMMIT

    async def main() -> None:
        async with Producer(target.namesrv, group, trace=True, check=commit) as producer:
            sent = await producer.send(topic, b"12345", tags="red", keys=["k1", "k2"])
            half = (await producer.send_in_transaction(topic, commit, b"x")).send
            batch = [Message(topic=topic, body=b"1"), Message(topic=topic, body=b"2")]
            (together,) = await producer.send_batch(batch)
        (record,) = await found(sent.message_id, 1)
        kind, _time, region, of_group, of_topic, message_id, tags, keys, host, *rest = record
        assert (kind, region, of_group, of_topic) == ("Pub", "DefaultRegion", group, topic)
        assert (message_id, tags, keys, host) == (sent.message_id, "red", "k1 k2", target.broker)
        size, _cost, message_type, offset_id, success = rest
        assert (size, message_type, offset_id, success) == ("5", "0", sent.offset_id, "true")
        (record,) = await found(together.message_id, 1)
        assert (record[0], record[4], record[-1]) == ("Pub", topic, "true")
        records = await found(half.message_id, 2)
        assert {each[0] for each in records} == {"Pub", "EndTransaction"}
        (end,) = (each for each in records if each[0] == "EndTransaction")
        assert end[-2:] == ["COMMIT_MESSAGE", "false"]

    run(main())
