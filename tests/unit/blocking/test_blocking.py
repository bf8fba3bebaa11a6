"""The blocking clients against a broker, as a program without an event loop uses them."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from gantrymq import blocking
from gantrymq.client import producer, pull_consumer, push_consumer
from gantrymq.client.consuming.handling import Later
from gantrymq.client.errors import (
    ClientClosed,
    ClientError,
    InvalidValue,
    NoRoute,
    NotStarted,
    PeerLate,
    UsedAfterFork,
)
from gantrymq.client.results import TransactionState
from gantrymq.model.message import Message
from gantrymq.testing import SENDS, ThreadedBroker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gantrymq.client.received import ReceivedMessage

WAIT_S = 60


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with ThreadedBroker() as running:
        yield running


def wait_until(condition: threading.Event) -> None:
    assert condition.wait(WAIT_S)


# -- the same shape -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("twin", "origin"),
    [
        (blocking.Producer, producer.Producer),
        (blocking.PushConsumer, push_consumer.PushConsumer),
        (blocking.PullConsumer, pull_consumer.PullConsumer),
    ],
)
def test_names_and_arguments_are_those_of_the_asyncio_class(twin: type, origin: type) -> None:
    renamed = {"__aiter__": "__iter__"}
    public = [name for name in vars(origin) if not name.startswith("_") or name in renamed]
    assert len(public) > 5
    for name in ["__init__", *public]:
        ours, theirs = getattr(twin, renamed.get(name, name)), getattr(origin, name)
        if isinstance(theirs, property):
            assert isinstance(ours, property)
            continue
        given = [one.replace(annotation=None) for one in parameters(ours)]
        assert given == [one.replace(annotation=None) for one in parameters(theirs)]
        assert not inspect.iscoroutinefunction(ours)
        assert ours.__doc__


def parameters(function: object) -> list[inspect.Parameter]:
    assert callable(function)
    return list(inspect.signature(function).parameters.values())


# -- producer -------------------------------------------------------------------------------------


def test_sends(broker: ThreadedBroker) -> None:
    with blocking.Producer(broker.namesrv) as sender:
        result = sender.send("Orders", b"one", tags="new", keys=["4711"])
        assert result.is_ok
        sender.send_batch([Message(topic="Orders", body=b"%d" % number) for number in range(3)])
        sender.send_oneway("Orders", b"nobody answers")
        assert {queue.topic for queue in sender.queues("Orders")} == {"Orders"}
        assert sender.client_id
    stored = {message.body for message in broker.messages("Orders")}
    assert stored == {b"one", b"0", b"1", b"2", b"nobody answers"}


def test_several_threads_share_a_producer(broker: ThreadedBroker) -> None:
    with blocking.Producer(broker.namesrv) as sender, ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda number: sender.send("T", b"%d" % number), range(200)))
    assert len({result.message_id for result in results}) == 200
    assert len(broker.messages("T")) == 200


def test_a_transaction_executes_off_the_loop(broker: ThreadedBroker) -> None:
    threads: list[str] = []

    def execute(_message: Message) -> TransactionState:
        threads.append(threading.current_thread().name)
        return TransactionState.COMMIT

    with blocking.Producer(
        broker.namesrv, "tx", check=lambda _message: TransactionState.COMMIT
    ) as sender:
        sender.send_in_transaction("Paid", execute, b"one")
    assert [message.body for message in broker.messages("Paid")] == [b"one"]
    assert threads
    assert threads != ["gantrymq-Producer"]


def test_a_wait_ends(broker: ThreadedBroker) -> None:
    with blocking.Producer(broker.namesrv, retries=0, timeout_s=0.2) as sender:
        sender.send("Orders", b"one")
        broker.delay_answers(5.0, requests=SENDS)
        with pytest.raises(PeerLate):
            sender.send("Orders", b"two")
        broker.heal()


# -- consumers ------------------------------------------------------------------------------------


def test_a_loop_acknowledges_what_it_has_passed(broker: ThreadedBroker) -> None:
    broker.create_topic("Orders", queues=1)
    with blocking.Producer(broker.namesrv) as sender:
        for number in range(5):
            sender.send("Orders", b"%d" % number)
    seen = []
    with blocking.PushConsumer(broker.namesrv, "billing", start="first") as consumer:
        consumer.subscribe("Orders")
        for message in consumer:
            seen.append(message.body)
            if len(seen) == 3:
                break
    with blocking.PushConsumer(broker.namesrv, "billing", start="first") as consumer:
        consumer.subscribe("Orders")
        messages = iter(consumer)
        seen += [next(messages).body, next(messages).body]
        assert messages.next(timeout_s=0.1) is None
    assert seen == [b"0", b"1", b"2", b"3", b"4"]


def test_an_exception_leaves_the_last_message_for_later(broker: ThreadedBroker) -> None:
    broker.create_topic("Orders", queues=1)
    with blocking.Producer(broker.namesrv) as sender:
        sender.send("Orders", b"one")

    def fail() -> None:
        with blocking.PushConsumer(broker.namesrv, "billing", start="first") as consumer:
            consumer.subscribe("Orders")
            for _message in consumer:
                raise KeyError("the work failed")

    with pytest.raises(KeyError):
        fail()
    with blocking.PushConsumer(broker.namesrv, "billing", start="first") as consumer:
        consumer.subscribe("Orders")
        message = iter(consumer).next(timeout_s=WAIT_S)
        assert message is not None
        assert message.body == b"one"


def test_handlers_block_and_heartbeats_go_on(broker: ThreadedBroker) -> None:
    """A handler and the main thread both block; the consumer stays connected and gets more."""
    broker.create_topic("Orders", queues=1)
    release, second = threading.Event(), threading.Event()

    def handle(message: ReceivedMessage) -> None:
        if message.body == b"slow":
            assert release.wait(WAIT_S)
        else:
            second.set()

    consumer = blocking.PushConsumer(broker.namesrv, "g", start="first", heartbeat_s=0.05)
    consumer.subscribe("Orders", handler=handle)
    with consumer, blocking.Producer(broker.namesrv) as sender:
        sender.send("Orders", b"slow")
        sender.send("Orders", b"quick")
        wait_until(second)
        broker.drop_connections()  # only a heartbeat makes the broker know the group again
        deadline = time.monotonic() + WAIT_S
        while broker.connections == 0:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        release.set()


@pytest.mark.parametrize("orderly", [False, True])
def test_a_handler_may_close_its_consumer(broker: ThreadedBroker, *, orderly: bool) -> None:
    """It does not wait for itself; its message comes again."""
    broker.create_topic("Orders", queues=1)
    ended = threading.Event()
    consumer = blocking.PushConsumer(broker.namesrv, "g", start="first", orderly=orderly)

    def handle(_message: ReceivedMessage) -> None:
        consumer.close()
        ended.set()

    consumer.subscribe("Orders", handler=handle)
    consumer.start()
    began = time.monotonic()
    with blocking.Producer(broker.namesrv) as sender:
        sender.send("Orders", b"one")
    wait_until(ended)
    assert time.monotonic() - began < 5
    with blocking.PushConsumer(broker.namesrv, "g", start="first") as other:
        other.subscribe("Orders")
        message = iter(other).next(timeout_s=WAIT_S)
        assert message is not None
        assert message.body == b"one"


def test_a_handler_asks_for_a_message_again(broker: ThreadedBroker) -> None:
    attempts: list[int] = []
    done, failed = threading.Event(), threading.Event()

    def handle(message: ReceivedMessage) -> None:
        attempts.append(message.reconsume_times)
        if message.reconsume_times == 0:
            failed.set()
            raise Later(delay_level=5)  # a minute
        done.set()

    broker.create_topic("Orders", queues=1)
    consumer = blocking.PushConsumer(broker.namesrv, "again", start="first")
    consumer.subscribe("Orders", handler=handle)
    with consumer, blocking.Producer(broker.namesrv) as sender:
        sender.send("Orders", b"one")
        wait_until(failed)
        while not broker.messages("SCHEDULE_TOPIC_XXXX"):
            time.sleep(0.005)
        broker.jump(61)
        wait_until(done)
    assert attempts == [0, 1]


def test_pulls_with_own_offsets(broker: ThreadedBroker) -> None:
    broker.create_topic("Orders", queues=2)
    with blocking.Producer(broker.namesrv) as sender:
        for number in range(4):
            sender.send("Orders", b"%d" % number)
    with blocking.PullConsumer(broker.namesrv, "audit") as consumer:
        bodies = []
        for queue in consumer.queues("Orders"):
            result = consumer.pull(queue, consumer.min_offset(queue))
            bodies += [message.body for message in result.messages]
            consumer.commit(queue, result.next_offset)
            assert consumer.committed(queue) == 2
        assert sorted(bodies) == [b"0", b"1", b"2", b"3"]
        consumer.assign(*consumer.queues("Orders"), start="first")
        assert len(consumer.assignment) == 2
        for queue in consumer.assignment:
            consumer.seek(queue, 1)
        messages = iter(consumer)
        assert {next(messages).offset, next(messages).offset} == {1}


# -- life -----------------------------------------------------------------------------------------


def test_not_started_closed_and_started_twice(broker: ThreadedBroker) -> None:
    sender = blocking.Producer(broker.namesrv)
    with pytest.raises(NotStarted, match="Producer was not started"):
        sender.send("Orders", b"one")
    sender.start()
    with pytest.raises(ClientError, match="runs already"):
        sender.start()
    sender.send("Orders", b"it still runs")
    sender.close()
    sender.close()
    with pytest.raises(ClientClosed):
        sender.send("Orders", b"one")
    with pytest.raises(ClientClosed):
        sender.start()


def test_close_before_start_is_nothing() -> None:
    consumer = blocking.PushConsumer("127.0.0.1:1", "g")
    consumer.close()
    with pytest.raises(ClientClosed):
        consumer.start()


def test_wrong_arguments_are_refused_at_once() -> None:
    with pytest.raises(InvalidValue):
        blocking.Producer("not an address")
    with pytest.raises(InvalidValue):
        blocking.PushConsumer("127.0.0.1:9876", "group", workers=0)


def client_threads() -> list[str]:
    """Return the names of threads that are not the broker's, whose workers come when needed."""
    kinds = ("gantrymq-P", "asyncio_")
    return [one.name for one in threading.enumerate() if one.name.startswith(kinds)]


def test_a_failed_start_leaves_no_thread() -> None:
    before = client_threads()
    consumer = blocking.PushConsumer("127.0.0.1:1", "g", connect_timeout_s=0.2)
    consumer.subscribe("Orders")
    with pytest.raises(NoRoute):
        consumer.start()
    assert client_threads() == before


def test_no_thread_is_left(broker: ThreadedBroker) -> None:
    before = client_threads()
    with blocking.Producer(broker.namesrv) as sender:
        sender.send("Orders", b"one")
        assert "gantrymq-Producer" in client_threads()
    assert client_threads() == before


def test_forgetting_to_close_is_warned_of(broker: ThreadedBroker) -> None:
    sender = blocking.Producer(broker.namesrv)
    sender.start()
    with pytest.warns(ResourceWarning, match="was not closed"):
        sender.__del__()


def test_a_call_on_its_own_loop_is_refused(broker: ThreadedBroker) -> None:
    """An async handler of a blocking consumer runs on the loop: waiting there would never end."""
    errors: list[RuntimeError] = []
    refused = threading.Event()
    broker.create_topic("Orders", queues=1)
    consumer = blocking.PushConsumer(broker.namesrv, "g", start="first")

    async def handle(_message: ReceivedMessage) -> None:
        await asyncio.sleep(0)
        try:
            consumer.commit()
        except RuntimeError as error:
            errors.append(error)
            refused.set()

    consumer.subscribe("Orders", handler=handle)
    with consumer, blocking.Producer(broker.namesrv) as sender:
        sender.send("Orders", b"one")
        wait_until(refused)
    assert "plain function" in str(errors[0])


# -- interrupts and forks -------------------------------------------------------------------------


@pytest.fixture
def interrupt_soon() -> Iterator[Callable[[], None]]:
    """Return what sends this thread the signal of Ctrl-C a little later."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    here = threading.get_ident()

    def soon() -> None:
        threading.Timer(0.3, signal.pthread_kill, (here, signal.SIGINT)).start()

    yield soon
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_leaves_the_client_usable(
    broker: ThreadedBroker, interrupt_soon: Callable[[], None]
) -> None:
    with blocking.Producer(broker.namesrv, timeout_s=WAIT_S) as sender:
        sender.send("Orders", b"one")
        broker.delay_answers(WAIT_S, requests=SENDS, times=1)
        interrupt_soon()
        with pytest.raises(KeyboardInterrupt):
            sender.send("Orders", b"two")
        assert sender.send("Orders", b"three").is_ok


def test_an_interrupted_loop_loses_nothing(
    broker: ThreadedBroker, interrupt_soon: Callable[[], None]
) -> None:
    broker.create_topic("Orders", queues=1)
    with (
        blocking.Producer(broker.namesrv) as sender,
        blocking.PushConsumer(broker.namesrv, "g", start="first") as consumer,
    ):
        consumer.subscribe("Orders")
        messages = iter(consumer)
        interrupt_soon()
        with pytest.raises(KeyboardInterrupt):
            next(messages)
        for number in range(3):
            sender.send("Orders", b"%d" % number)
        assert [next(messages).body for _ in range(3)] == [b"0", b"1", b"2"]


def test_two_threads_in_one_loop_are_refused(broker: ThreadedBroker) -> None:
    broker.create_topic("Orders", queues=1)
    with blocking.PushConsumer(broker.namesrv, "g", start="first") as consumer:
        consumer.subscribe("Orders")
        messages = iter(consumer)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(messages.next, 1.0)
            time.sleep(0.1)
            with pytest.raises(ClientError, match="two threads"):
                next(messages)
            assert waiting.result() is None


def test_closing_ends_a_loop_in_another_thread(broker: ThreadedBroker) -> None:
    broker.create_topic("Orders", queues=1)
    consumer = blocking.PushConsumer(broker.namesrv, "g", start="first")
    consumer.subscribe("Orders")
    consumer.start()
    begun = threading.Event()

    def bodies() -> list[bytes]:
        messages = iter(consumer)
        begun.set()
        return [message.body for message in messages]

    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(bodies)
        assert begun.wait(WAIT_S)
        time.sleep(0.1)
        consumer.close()
        assert ended.result(WAIT_S) == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # 3.12 warns of threads and fork
def test_use_after_fork_is_refused(broker: ThreadedBroker) -> None:
    with blocking.Producer(broker.namesrv) as sender:
        sender.send("Orders", b"parent")
        child = os.fork()
        if child == 0:
            try:
                sender.send("Orders", b"child")
            except UsedAfterFork:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        sender.send("Orders", b"parent again")
    assert len(broker.messages("Orders")) == 2
