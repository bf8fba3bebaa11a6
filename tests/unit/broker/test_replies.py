"""Request-reply: the answer reaches the client that asked, and the replier is told the truth."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from gantrymq.broker import replies as module
from gantrymq.broker.quotas.quotas import Quotas
from gantrymq.broker.quotas.throttled import Throttled
from gantrymq.broker.replies import Replies
from gantrymq.broker.router import Router
from gantrymq.broker.send import Sending
from gantrymq.transport.command_service import CommandService
from gantrymq.transport.memory import memory_pair
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.send import PushReplyMessageRequest
from gantrymq.wire.peer import PeerGone, PeerLate
from gantrymq.wire.properties import decode_properties
from support.client_peers import FakePeer, heartbeat
from support.golden import WIRE, wire_entries
from support.store_rig import STORE_HOST
from support.transaction_world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPIC = "DefaultCluster_REPLY_TOPIC"
PROPERTIES = "REPLY_TO_CLIENT\x01asker\x02CORRELATION_ID\x01c1\x02MSG_TYPE\x01reply\x02"
LONG = {
    "producerGroup": "repliers",
    "topic": TOPIC,
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": "4",
    "queueId": "0",
    "sysFlag": "0",
    "bornTimestamp": "1000",
    "flag": "3",
    "properties": PROPERTIES,
    "reconsumeTimes": "0",
    "unitMode": "false",
}
SHORT = dict(zip("abcdefghijk", LONG.values(), strict=True))


class Asker(FakePeer):
    """A client that waits for a reply, and does with it as told."""

    def __init__(self, outcome: Command | Exception) -> None:
        super().__init__(77)
        self.outcome = outcome
        self.pushed: list[Command] = []
        self.limits: list[float] = []

    def ask(self, request: Command, timeout_s: float) -> asyncio.Future[Command]:
        """Take a reply."""
        self.pushed.append(request)
        self.limits.append(timeout_s)
        future: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        if isinstance(self.outcome, Exception):
            future.set_exception(self.outcome)
        else:
            future.set_result(self.outcome)
        return future


class Replying:
    """A broker that hands over replies."""

    def __init__(self) -> None:
        self.world = World()
        world = self.world
        quotas = Quotas(
            world.tables.topics, world.tables.groups, world.settings, world.clock, lambda _: None
        )
        self.sending = Sending(
            world.storing,
            world.tables.topics,
            world.tables.groups,
            None,  # type: ignore[arg-type]
            quotas,
            Throttled(world.clock, world.loop.create_future),
            world.settings,
            world.clock,
            lambda count: count - 1,
        )
        self.stored: list[str] = []
        self.replies = Replies(
            world.rig.store,
            self.sending,
            world.tables.clients,
            world.settings,
            world.clock,
            STORE_HOST,
            lambda stored: self.stored.append(stored.topic),
        )
        self.router = Router(self.replies.handlers)
        self.replier = FakePeer(5)

    def asker(self, outcome: Command | Exception | None = None) -> Asker:
        """Return a client that has introduced itself and confirms, unless told otherwise."""
        peer = Asker(outcome or Command(code=ResponseCode.SUCCESS, opaque=0, flag=1))
        self.world.tables.clients.heartbeat(
            heartbeat("asker", producers=["g"]), peer, language=0, version=0
        )
        return peer

    def reply(self, request: Command) -> Command:
        """Return what the replier is answered."""

        async def run() -> object:
            pending = self.router.handle(request, self.replier)
            return await pending if asyncio.iscoroutine(pending) else pending

        answer = self.world.loop.run_until_complete(run())
        assert isinstance(answer, Command)
        return answer


@pytest.fixture
def broker() -> Iterator[Replying]:
    """Return a broker without clients."""
    broker = Replying()
    yield broker
    broker.world.close()


def request(**changes: str) -> Command:
    """Return a reply with the long names."""
    return Command.request(RequestCode.SEND_REPLY_MESSAGE, 9, LONG | changes, b"yes")


@pytest.mark.parametrize(
    "sent",
    [request(), Command.request(RequestCode.SEND_REPLY_MESSAGE_V2, 9, SHORT, b"yes")],
    ids=["324", "325"],
)
def test_reply_reaches_its_asker(broker: Replying, sent: Command) -> None:
    """With everything that the replier said, where it came from, and when it was pushed."""
    asker = broker.asker()
    answer = broker.reply(sent)
    assert (answer.code, answer.remark, answer.opaque) == (ResponseCode.SUCCESS, None, 9)
    (pushed,) = asker.pushed
    assert pushed.code == RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
    assert not pushed.is_oneway
    assert pushed.body == b"yes"
    assert asker.limits == [10.0]
    header = PushReplyMessageRequest.decode(pushed.fields)
    assert (header.topic, header.producer_group, header.flag) == (TOPIC, "repliers", 3)
    assert header.born_host == broker.replier.address
    assert header.store_host == "127.0.0.1:10911"
    now_ms = broker.world.clock.now_ms()
    assert header.store_timestamp == now_ms
    assert decode_properties(header.properties or "") == {
        "REPLY_TO_CLIENT": "asker",
        "CORRELATION_ID": "c1",
        "MSG_TYPE": "reply",
        "PUSH_REPLY_TIME": str(now_ms),
    }


def test_reply_is_stored_as_well(broker: Replying) -> None:
    """And the replier is told where."""
    broker.asker()
    broker.world.rig.put(b"before", topic=TOPIC)
    answer = broker.reply(request())
    (_, record) = broker.world.rig.records(TOPIC)
    assert record.body == b"yes"
    assert answer.fields == {
        "msgId": (STORE_HOST + record.log_offset.to_bytes(8)).hex().upper(),
        "queueId": "0",
        "queueOffset": "1",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
    }
    assert broker.stored == [TOPIC]


def test_reply_is_part_of_no_transaction(broker: Replying) -> None:
    """Flags that say otherwise would keep it out of its queue; that of compression is kept."""
    broker.asker()
    broker.reply(request(sysFlag="5"))
    (record,) = broker.world.rig.records(TOPIC)
    assert record.sys_flag == 1


def test_reply_need_not_be_stored(broker: Replying) -> None:
    """Then the fields are there all the same: clients read them."""
    broker.asker()
    broker.world.set(stores_replies=False)
    answer = broker.reply(request())
    assert answer.code == ResponseCode.SUCCESS
    assert (answer.fields["msgId"], answer.fields["queueOffset"]) == ("0", "0")
    assert broker.world.rig.records(TOPIC) == []


def test_reply_that_cannot_be_stored_has_still_arrived(broker: Replying) -> None:
    """The asker has it; that is what the replier wants to know."""
    asker = broker.asker()
    broker.world.rig.store.writability.forbid("test", "no room")
    answer = broker.reply(request())
    assert answer.code == ResponseCode.SUCCESS
    assert answer.fields["msgId"] == "0"
    assert len(asker.pushed) == 1


@pytest.mark.parametrize(
    ("outcome", "problem"),
    [
        (PeerLate("no answer within 10 s"), "within 10 s"),
        (PeerGone("closed"), "closed"),
        (Command(code=1, opaque=0, flag=1, remark="nobody waits"), "nobody waits"),
    ],
)
def test_push_that_fails_is_told(
    broker: Replying, outcome: Command | Exception, problem: str
) -> None:
    """The reply is kept in the store even so."""
    broker.asker(outcome)
    answer = broker.reply(request())
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert problem in (answer.remark or "")
    assert "asker" in (answer.remark or "")
    assert broker.world.rig.bodies(TOPIC) == [b"yes"]


def test_asker_that_is_not_connected(broker: Replying) -> None:
    """Apache's words, which people search for."""
    answer = broker.reply(request())
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == "push reply message fail, channel of <asker> not found."
    assert answer.fields["MSG_REGION"] == "DefaultRegion"


def test_reply_to_nobody(broker: Replying) -> None:
    """The property that names the asker is missing."""
    answer = broker.reply(request(properties="CORRELATION_ID\x01c1"))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "REPLY_TO_CLIENT" in (answer.remark or "")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "no such"}, ResponseCode.INVALID_PARAMETER),
        ({"topic": "RMQ_SYS_TRANS_HALF_TOPIC"}, ResponseCode.NO_PERMISSION),
        ({"queueId": "99"}, ResponseCode.INVALID_PARAMETER),
        ({"queueId": "x"}, ResponseCode.SYSTEM_ERROR),
    ],
)
def test_checks_of_a_send_hold(broker: Replying, changes: dict[str, str], code: int) -> None:
    """Nothing is pushed or stored, and the refusal has the fields that senders look for."""
    asker = broker.asker()
    answer = broker.reply(request(**changes))
    assert answer.code == code
    assert answer.fields["TRACE_ON"] == "true"
    assert asker.pushed == []


def test_too_many_waiting_replies_are_refused(
    broker: Replying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An asker that does not confirm cannot make the broker keep replies without end."""
    monkeypatch.setattr(module, "PUSHES_MAX", 0)
    asker = broker.asker()
    assert broker.reply(request()).code == ResponseCode.SYSTEM_BUSY
    assert asker.pushed == []


def test_recorded_go_reply_is_handled(broker: Replying) -> None:
    """The Go client's reply has no body, and goes to an asker that is not there."""
    entries = wire_entries(WIRE / "go-2.1.2-vs-4.9.7" / "request-reply.jsonl")
    recorded = next(one for one in entries if one.code == 324 and one.is_request)
    fields = recorded.header["extFields"]
    sent = Command.request(324, 9, msgspec.convert(fields, dict[str, str]))
    answer = broker.reply(sent)
    assert answer.remark == "push reply message fail, channel of <192.0.2.2@go13> not found."


def test_reply_over_a_connection(broker: Replying) -> None:
    """The asker's own connection carries the push and its confirmation."""
    got: list[Command] = []

    def confirm(pushed: Command, _peer: object) -> Command:
        got.append(pushed)
        return pushed.response()

    async def run() -> Command:
        _asker, ours = memory_pair(CommandService(confirm), CommandService())
        broker.world.tables.clients.heartbeat(
            heartbeat("asker", producers=["g"]), ours, language=0, version=0
        )
        pending = broker.router.handle(request(), broker.replier)
        assert asyncio.iscoroutine(pending)
        answer = await pending
        assert isinstance(answer, Command)
        ours.close("done")
        await asyncio.sleep(0)
        return answer

    answer = broker.world.loop.run_until_complete(run())
    assert answer.code == ResponseCode.SUCCESS
    assert [one.body for one in got] == [b"yes"]
