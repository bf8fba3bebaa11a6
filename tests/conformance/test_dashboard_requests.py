"""Every request that Apache's rocketmq-dashboard makes is answered, in the form in which it asks.

The table has what its pages and buttons come to on the wire (its release of July 2026, with the
client of 5.3.3): by way of MQAdminExt, of the pull consumer behind the page of messages, and of
the producer behind the test message. What only its interface offers and no page calls is in
`UNUSED`, and must be known here all the same: answered, or refused with a sentence.
"""

from __future__ import annotations

import asyncio
from inspect import isawaitable
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from gantrymq.broker.admin.refused import REFUSED
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.frame import FrameParser
from gantrymq.wire.message_id import offset_id_text
from gantrymq.wire.peer import RawReply
from support.admin_world import HOST, AskedPeer, World
from support.client_peers import consumer, heartbeat, subscription
from support.namesrv import Site

if TYPE_CHECKING:
    from collections.abc import Mapping

CODE: Final = RequestCode
OK: Final = int(ResponseCode.SUCCESS)
OFF: Final = int(ResponseCode.NO_PERMISSION)
"""The pages of users and permissions, where access control is off: it is said, and is no error of
the broker."""
QUEUE: Final = {"topic": "T", "queueId": "0"}
GROUP: Final = {"consumerGroup": "G"}
MEMBER: Final = {"consumerGroup": "G", "clientId": "c1"}
SEND: Final = {"a": "p", "b": "T", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0",
               "i": "TAGS\x01a", "j": "0", "k": "false", "m": "false"}  # fmt: skip
PULL: Final = {
    **QUEUE, "consumerGroup": "G", "queueOffset": "0", "maxMsgNums": "32", "sysFlag": "4",
    "commitOffset": "0", "suspendTimeoutMillis": "0", "subVersion": "0", "subscription": "*",
}  # fmt: skip
MADE: Final = {
    "topic": "New", "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4",
    "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
}  # fmt: skip
RESET: Final = {"topic": "T", "group": "G", "timestamp": "0", "isForce": "true"}


class Asked(NamedTuple):
    """A request of a page."""

    page: str
    code: RequestCode
    fields: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""
    answer: int = OK


BROKER: Final = (
    Asked("ops, cluster", CODE.GET_BROKER_RUNTIME_INFO),
    Asked("cluster: config", CODE.GET_BROKER_CONFIG),
    Asked("dashboard", CODE.VIEW_BROKER_STATS_DATA,
          {"statsName": "TOPIC_PUT_NUMS", "statsKey": "T"}),
    Asked("topic", CODE.GET_ALL_TOPIC_CONFIG),
    Asked("topic: config", CODE.GET_TOPIC_CONFIG, {"topic": "T"}),
    Asked("topic: status", CODE.GET_TOPIC_STATS_INFO, {"topic": "T"}),
    Asked("topic: consumers", CODE.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": "T"}),
    Asked("topic: add, update", CODE.UPDATE_AND_CREATE_TOPIC, MADE),
    Asked("topic: delete", CODE.DELETE_TOPIC_IN_BROKER, {"topic": "New"}),
    Asked("topic: send", CODE.SEND_MESSAGE_V2, SEND, b"hello"),
    Asked("consumer", CODE.GET_ALL_SUBSCRIPTIONGROUP_CONFIG),
    Asked("consumer: add, update", CODE.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {},
          b'{"groupName":"New"}'),
    Asked("consumer: delete", CODE.DELETE_SUBSCRIPTIONGROUP,
          {"groupName": "New", "cleanOffset": "true"}),
    Asked("consumer: details", CODE.GET_CONSUME_STATS, GROUP),
    Asked("consumer: details of a topic", CODE.GET_CONSUME_STATS, {**GROUP, "topic": "T"}),
    Asked("consumer: clients", CODE.GET_CONSUMER_CONNECTION_LIST, GROUP),
    Asked("consumer: running info", CODE.GET_CONSUMER_RUNNING_INFO,
          {**MEMBER, "jstackEnable": "true"}),
    Asked("consumer: reset", CODE.INVOKE_BROKER_TO_RESET_OFFSET, RESET),
    Asked("consumer: reset of an old client", CODE.SEARCH_OFFSET_BY_TIMESTAMP,
          {**QUEUE, "timestamp": "0"}),
    Asked("consumer: reset of an old client", CODE.UPDATE_CONSUMER_OFFSET,
          {**QUEUE, **GROUP, "commitOffset": "0"}),
    Asked("producer", CODE.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": "p"}),
    Asked("message: by key, trace", CODE.QUERY_MESSAGE,
          {"topic": "T", "key": "k0", "maxNum": "64", "beginTimestamp": "0",
           "endTimestamp": "9223372036854775807", "indexType": "K"}, b"",
          int(ResponseCode.QUERY_NOT_FOUND)),
    Asked("message: by id, track", CODE.VIEW_MESSAGE_BY_ID, {"topic": "T", "offset": "0"}),
    Asked("message: consume directly, dlq: resend", CODE.CONSUME_MESSAGE_DIRECTLY,
          {**MEMBER, "msgId": offset_id_text(HOST, 0), "brokerName": "broker-a"}),
    Asked("message: by topic, dlq", CODE.GET_MIN_OFFSET, QUEUE),
    Asked("message: by topic, dlq", CODE.GET_MAX_OFFSET, QUEUE),
    Asked("message: by topic, dlq", CODE.PULL_MESSAGE, PULL),
    Asked("message: by topic, dlq", CODE.HEART_BEAT, {},
          b'{"clientID":"d","consumerDataSet":[],"producerDataSet":[{"groupName":"d"}]}'),
    Asked("message: by topic, dlq", CODE.UNREGISTER_CLIENT,
          {"clientID": "d", "producerGroup": "d"}),
    *(Asked("acl", code, fields, body, OFF) for code, fields, body in (
        (CODE.AUTH_LIST_USER, {}, b""),
        (CODE.AUTH_GET_USER, {"username": "u"}, b""),
        (CODE.AUTH_CREATE_USER, {"username": "u"}, b'{"username":"u","password":"p"}'),
        (CODE.AUTH_UPDATE_USER, {"username": "u"}, b'{"username":"u","password":"p"}'),
        (CODE.AUTH_DELETE_USER, {"username": "u"}, b""),
        (CODE.AUTH_LIST_ACL, {}, b""),
        (CODE.AUTH_CREATE_ACL, {"subject": "User:u"}, b'{"subject":"User:u","policies":[]}'),
        (CODE.AUTH_UPDATE_ACL, {"subject": "User:u"}, b'{"subject":"User:u","policies":[]}'),
        (CODE.AUTH_DELETE_ACL, {"subject": "User:u"}, b""),
    )),
)  # fmt: skip
NAME_SERVER: Final = (
    Asked("cluster", CODE.GET_BROKER_CLUSTER_INFO),
    Asked("topic", CODE.GET_ALL_TOPIC_LIST_FROM_NAMESERVER),
    Asked("topic: route", CODE.GET_ROUTEINFO_BY_TOPIC, {"topic": "A"}),
    Asked("topic: delete", CODE.DELETE_TOPIC_IN_NAMESRV, {"topic": "A"}),
)
UNUSED: Final = frozenset({
    CODE.GET_KV_CONFIG, CODE.PUT_KV_CONFIG, CODE.DELETE_KV_CONFIG, CODE.GET_KVLIST_BY_NAMESPACE,
    CODE.WIPE_WRITE_PERM_OF_BROKER, CODE.ADD_WRITE_PERM_OF_BROKER, CODE.GET_TOPICS_BY_CLUSTER,
    CODE.UPDATE_BROKER_CONFIG, CODE.CLEAN_EXPIRED_CONSUMEQUEUE, CODE.CLEAN_UNUSED_TOPIC,
    CODE.CLONE_GROUP_OFFSET, CODE.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
    CODE.QUERY_CONSUME_TIME_SPAN, CODE.GET_BROKER_CONSUME_STATS, CODE.GET_EARLIEST_MSG_STORETIME,
    CODE.GET_SUBSCRIPTIONGROUP_CONFIG, CODE.GET_COLD_DATA_FLOW_CTR_INFO,
    CODE.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, CODE.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
    CODE.SET_COMMITLOG_READ_MODE, CODE.POP_ROLLBACK, CODE.AUTH_GET_ACL, CODE.QUERY_CONSUMER_OFFSET,
    CODE.GET_CONSUMER_LIST_BY_GROUP,
})  # fmt: skip


@pytest.fixture
def world() -> World:
    made = World()
    made.topic("T")
    made.topic("New")
    made.group("G")
    made.group("New")
    made.put("T", 0, 3)
    made.commit("G", "T", 0, 1)
    member = AskedPeer(2)
    made.join(heartbeat("c1", consumer("G", subscription("T")), producers=["p"]), member)
    made.ask(CODE.SEND_MESSAGE_V2, SEND, b"counted")
    return made


@pytest.mark.parametrize("asked", BROKER, ids=lambda each: f"{each.code.name}-{each.page}")
def test_a_broker_answers(world: World, asked: Asked) -> None:
    code, remark = answered(world, asked)
    assert code == asked.answer, remark
    if asked.answer == OFF:
        assert "access control is off" in (remark or "")


def answered(world: World, asked: Asked) -> tuple[int, str | None]:
    """Return the code and the remark of an answer, also of one that is bytes already."""

    async def ask() -> object:
        request = Command.request(asked.code, 7, asked.fields, asked.body)
        pending = world.broker.router.handle(request, world.peer)
        return await pending if isawaitable(pending) else pending

    reply = asyncio.run(ask())
    if isinstance(reply, RawReply):
        (reply,) = FrameParser().feed(b"".join(reply.parts))
    assert isinstance(reply, Command)
    return reply.code, reply.remark


@pytest.mark.parametrize("asked", NAME_SERVER, ids=lambda each: f"{each.code.name}-{each.page}")
def test_a_name_server_answers(asked: Asked) -> None:
    site = Site()
    site.register()
    assert site.ask(asked.code, asked.fields).code == asked.answer


def test_what_no_page_calls_is_known_too(world: World) -> None:
    site = Site()
    known = world.broker.router.codes | site.server.codes | set(REFUSED)
    assert known >= UNUSED
    assert not UNUSED & {each.code for each in (*BROKER, *NAME_SERVER)}
