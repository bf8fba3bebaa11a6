"""What brokers ask of a producer, and what it does when they ask too much or too late."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING

import pytest

from gantrymq.client import transactions
from gantrymq.client.errors import ClientClosed
from gantrymq.client.producer import Producer
from gantrymq.client.received import ReceivedMessage
from gantrymq.client.results import TransactionState
from gantrymq.client.tracing import BATCH_MAX, RECORDS_MAX, Traced, TraceQueue
from gantrymq.errors import InvalidValue
from gantrymq.kernel.values import Record
from gantrymq.model.message import Message
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.send import PushReplyMessageRequest
from gantrymq.wire.headers.transaction import CheckTransactionStateRequest, EndTransactionRequest
from gantrymq.wire.properties import decode_properties, encode_properties
from gantrymq.wire.record import MessageRecord, encode_message
from support.scripted import ScriptedCluster
from support.transport import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.scripted import ScriptedBroker
    from support.transport import Run

COMMIT, UNKNOWN = TransactionState.COMMIT, TransactionState.UNKNOWN


async def commit(_message: object) -> TransactionState:
    """Say that it went well."""
    return COMMIT


def ends(broker: ScriptedBroker) -> list[EndTransactionRequest]:
    """Return how the broker was told that transactions ended."""
    return [
        EndTransactionRequest.decode(request.fields)
        for request in broker.others
        if request.code == RequestCode.END_TRANSACTION
    ]


def record_of(properties: dict[str, str], body: bytes = b"half") -> MessageRecord:
    """Return a record as a broker has it."""
    host = bytes([127, 0, 0, 1, 0, 0, 0, 80])
    raw = Record(0, 0, 5, 6, 0, 7, host, 8, host, 0, 0, body, b"T", encode_properties(properties))
    return MessageRecord(raw)


def question(properties: dict[str, str]) -> Command:
    """Return a broker's question how a transaction ended."""
    header = CheckTransactionStateRequest(
        tran_state_table_offset=11, commit_log_offset=12, msg_id="ID", transaction_id="ID"
    )
    body = encode_message(record_of(properties).to_message())
    return Command.request(RequestCode.CHECK_TRANSACTION_STATE, 0, header.encode(), body)


def test_the_half_message_and_its_end(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            async with Producer(cluster.namesrv, "group", check=commit) as producer:
                result = await producer.send_in_transaction("T", commit, b"body")
                (header,) = broker.headers
                assert header.sys_flag & 0xC == 4
                properties = decode_properties(header.properties or "")
                assert properties["TRAN_MSG"] == "true"
                assert properties["PGROUP"] == "group"
                # the broker knew whom to ask before it had anything to ask about
                groups = broker.heartbeats[0].producer_data_set
                assert [each.group_name for each in groups] == ["group"]
                await until(lambda: ends(broker))
                (end,) = ends(broker)
                assert end.commit_or_rollback == 8
                assert end.msg_id == result.send.message_id
                assert end.tran_state_table_offset == result.send.offset
                assert end.commit_log_offset == int(result.send.offset_id[16:], 16)
                assert end.from_transaction_check is False

    run(main())


def test_a_half_message_that_may_be_lost_is_rolled_back(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            broker.answering(ResponseCode.FLUSH_DISK_TIMEOUT)
            executed: list[Message] = []

            async def execute(message: Message) -> TransactionState:
                executed.append(message)
                return COMMIT

            async with Producer(cluster.namesrv, check=commit) as producer:
                result = await producer.send_in_transaction("T", execute, b"x")
                assert result.state is TransactionState.ROLLBACK
                assert executed == []
                await until(lambda: ends(broker))
                assert ends(broker)[0].commit_or_rollback == 12

    run(main())


def test_what_execute_returns_or_raises(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            async with Producer(cluster.namesrv, check=commit) as producer:
                with pytest.raises(InvalidValue, match=r"return TransactionState\.COMMIT"):
                    await producer.send_in_transaction("T", lambda _m: "yes", b"x")  # type: ignore[arg-type, return-value]
                delayed = Message(topic="T", body=b"x", delay_level=1)
                with pytest.raises(InvalidValue, match="cannot have a delay"):
                    await producer.send_in_transaction(delayed, commit)
                await until(lambda: ends(broker))
                assert [end.commit_or_rollback for end in ends(broker)] == [0]
                (told,) = (each for each in broker.others if each.code == 37)
                assert "InvalidValue" in (told.remark or "")

    run(main())


def test_questions_of_a_broker(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def check(message: ReceivedMessage) -> TransactionState:
        asked.append(message.body)
        if "fail" in message.properties:
            raise ZeroDivisionError("on purpose")
        return COMMIT

    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            async with Producer(cluster.namesrv, "group", check=check) as producer:
                await producer.send("T", b"x")
                (peer, *_others) = broker.peers
                peer.tell(question({"PGROUP": "group", "UNIQ_KEY": "ID"}))
                await until(lambda: ends(broker))
                (end,) = ends(broker)
                assert (end.commit_or_rollback, end.from_transaction_check) == (8, True)
                assert (end.tran_state_table_offset, end.commit_log_offset) == (11, 12)
                peer.tell(question({"PGROUP": "group", "UNIQ_KEY": "ID", "fail": "1"}))
                await until(lambda: len(ends(broker)) == 2)
                assert ends(broker)[1].commit_or_rollback == UNKNOWN
                peer.tell(question({"PGROUP": "other", "UNIQ_KEY": "ID"}))
                monkeypatch.setattr(transactions, "CHECKS_MAX", 0)
                peer.tell(question({"PGROUP": "group", "UNIQ_KEY": "ID"}))
                await until(lambda: producer._transactions.checks_dropped)
                assert asked == [b"half", b"half"]

    run(main())


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """Return what functions wait for until the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_checks_that_never_return_hold_up_nothing_else(run: Run, never: threading.Event) -> None:
    """Neither other transactions, nor large bodies, nor the end of the program."""
    asked: list[str] = []

    def check(message: ReceivedMessage) -> TransactionState:
        asked.append(message.message_id)
        never.wait()
        return COMMIT

    def execute(_message: Message) -> TransactionState:
        return COMMIT

    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            async with Producer(cluster.namesrv, "group", check=check) as producer:
                await producer.send("T", b"x")
                for number in range(3 * transactions.CHECKS_AT_ONCE):
                    broker.peers[0].tell(question({"PGROUP": "group", "UNIQ_KEY": f"{number}"}))
                await until(lambda: len(asked) == transactions.CHECKS_AT_ONCE)
                async with asyncio.timeout(10):
                    assert (await producer.send("T", bytes(1 << 20))).is_ok
                    done = await producer.send_in_transaction("T", execute, b"x")
                assert done.state is COMMIT

    run(main())


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, StopIteration])
def test_whatever_a_plain_check_raises_the_broker_may_ask_again(
    run: Run, kind: type[BaseException]
) -> None:
    def check(message: ReceivedMessage) -> TransactionState:
        if message.message_id == "bad":
            raise kind
        return COMMIT

    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            async with Producer(cluster.namesrv, "group", check=check) as producer:
                await producer.send("T", b"x")
                for name in ("bad", "good"):
                    broker.peers[0].tell(question({"PGROUP": "group", "UNIQ_KEY": name}))
                await until(lambda: len(ends(broker)) == 2)
                told = {end.msg_id: end.commit_or_rollback for end in ends(broker)}
                assert told == {"bad": UNKNOWN, "good": COMMIT}

    run(main())


def test_a_plain_execute_sees_the_context_of_its_caller(run: Run) -> None:
    request: ContextVar[str] = ContextVar("request")
    seen: list[str] = []

    def execute(_message: Message) -> TransactionState:
        seen.append(request.get())
        return COMMIT

    async def main() -> None:
        request.set("4711")
        async with (
            ScriptedCluster() as cluster,
            Producer(cluster.namesrv, "group", check=commit) as producer,
        ):
            await producer.send_in_transaction("T", execute, b"x")

    run(main())
    assert seen == ["4711"]


def test_a_reply_that_is_pushed(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            async with Producer(cluster.namesrv, "group") as producer:
                asking = asyncio.ensure_future(producer.request("T", b"question", timeout_s=20))
                await until(lambda: broker.sends)
                sent = decode_properties(broker.headers[0].properties or "")
                assert sent["REPLY_TO_CLIENT"] == producer.client_id
                assert sent["TTL"] == "20000"

                def push(correlation_id: str) -> Command:
                    header = PushReplyMessageRequest(
                        producer_group="other",
                        topic="scripted_REPLY_TOPIC",
                        default_topic="TBW102",
                        default_topic_queue_nums=4,
                        queue_id=0,
                        sys_flag=0,
                        born_timestamp=1,
                        flag=0,
                        born_host="10.0.0.1:80",
                        store_host="strange",
                        store_timestamp=2,
                        properties=f"CORRELATION_ID\x01{correlation_id}\x02p\x01v",
                    )
                    code = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
                    return Command.request(code, 0, header.encode(), b"answer")

                (peer, *_others) = broker.peers
                assert (await peer.ask(push("somebody else's"), 5)).code == 0
                assert not asking.done()
                assert (await peer.ask(push(sent["CORRELATION_ID"]), 5)).code == 0
                reply = await asking
                assert (reply.body, reply.properties["p"]) == (b"answer", "v")
                assert reply.born_host.text == "10.0.0.1:80"
                assert (await peer.ask(push(sent["CORRELATION_ID"]), 5)).code == 0

    run(main())


def test_a_request_ends_with_the_client(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster:
            producer = Producer(cluster.namesrv)
            await producer.start()
            asking = asyncio.ensure_future(producer.request("T", b"question", timeout_s=20))
            await until(lambda: cluster.brokers[0].sends)
            await asyncio.sleep(0.05)
            await producer.close()
            with pytest.raises(ClientClosed, match="before the reply came"):
                await asking

    run(main())


def test_traces_are_dropped_rather_than_waited_for(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            async with Producer(cluster.namesrv, trace=True) as producer:
                assert (await producer.send("T", b"x")).is_ok
                queue = TraceQueue(producer._core, producer._sending, "Traces")
                for number in range(RECORDS_MAX + 10):
                    queue.add(Traced(("Pub", None, True, number), [f"key{number}"]))
                assert queue.dropped == 10
                await queue.close(10)
                assert queue.dropped == 10
                sent = [request for request in broker.sends if request.fields["b"] == "Traces"]
                records = b"".join(request.body for request in sent).split(b"\x02")[:-1]
                assert records[0] == b"Pub\x01null\x01true\x010"
                assert len(records) == RECORDS_MAX
                keys = decode_properties(sent[0].fields["i"])["KEYS"]
                assert keys.split(" ") == [f"key{number}" for number in range(20)]

    run(main())


def test_what_is_being_traced_when_the_producer_closes_is_sent(run: Run) -> None:
    async def main() -> None:
        async with ScriptedCluster() as cluster:
            (broker,) = cluster.brokers
            async with Producer(cluster.namesrv, trace=True) as producer:
                queue = TraceQueue(producer._core, producer._sending, "Traces")
                for number in range(BATCH_MAX):
                    queue.add(Traced(("Pub", number), [f"key{number}"]))
                for _ in range(3):
                    await asyncio.sleep(0)
                assert not queue._waiting  # they are on their way, and the route is asked for
                await queue.close(10)
                assert queue.dropped == 0
            (sent,) = (request for request in broker.sends if request.fields["b"] == "Traces")
            assert sent.body.count(b"\x02") == BATCH_MAX

    run(main())


@pytest.mark.parametrize(("born_ms", "year"), [(2**62, 9999), (-(2**62), 1), (0, 1970)])
def test_a_producer_that_lies_about_the_time_fails_no_consumer(born_ms: int, year: int) -> None:
    record = MessageRecord(record_of({}).raw._replace(born_timestamp=born_ms))
    message = ReceivedMessage(record, "broker-a")
    assert (message.born_ms, message.born_at.year) == (born_ms, year)


def test_a_message_that_was_received() -> None:
    properties = {
        "UNIQ_KEY": "ID", "TAGS": "red", "KEYS": "a b", "CORRELATION_ID": "c",
        "REPLY_TO_CLIENT": "me", "__SHARDING_KEY": "s",
    }  # fmt: skip
    message = ReceivedMessage(record_of(properties), "broker-a", "bare")
    assert (message.topic, message.queue.topic, message.broker_name) == ("bare", "T", "broker-a")
    assert (message.body, message.tags, message.keys) == (b"half", "red", ("a", "b"))
    assert (message.message_id, message.offset, message.queue_id) == ("ID", 5, 0)
    assert (message.correlation_id, message.reply_to, message.sharding_key) == ("c", "me", "s")
    assert (message.born_ms, message.stored_ms, message.attempt) == (7, 8, 1)
    assert message.born_at.timestamp() == pytest.approx(0.007)
    assert message.stored_at.timestamp() == pytest.approx(0.008)
    assert message.store_host.text == "127.0.0.1:80"
    assert message.offset_id == "7F000001000000500000000000000006"
    assert message.transaction_id == "ID"
    assert "ID of bare@broker-a:0 at 5" in repr(message)
    bare = ReceivedMessage(record_of({}), "broker-a")
    assert bare.message_id == bare.offset_id
    assert (bare.topic, bare.tags, bare.reply_to, bare.sharding_key) == ("T", None, None, None)
