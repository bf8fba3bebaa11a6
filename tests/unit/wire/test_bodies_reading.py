"""The leniency that clients rely on, and errors that name the field."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final

import pytest

from gantrymq.errors import ProtocolError
from gantrymq.model.group import ConsumeFromWhere, ConsumeType, MessageModel
from gantrymq.model.queue import MessageQueue, QueueId
from gantrymq.model.route import BrokerData, QueueData, TopicRoute
from gantrymq.model.topic import FilterType, Perm
from gantrymq.wire.bodies.assignment import BATCH_ACK, BatchAck
from gantrymq.wire.bodies.connections import CONSUMER_CONNECTIONS
from gantrymq.wire.bodies.heartbeat import HEARTBEAT
from gantrymq.wire.bodies.offsets import CONSUMER_OFFSETS
from gantrymq.wire.bodies.reading import read, reader_of
from gantrymq.wire.bodies.route import TOPIC_ROUTE
from gantrymq.wire.bodies.stats import TOPIC_STATS
from gantrymq.wire.bodies.topic import TOPIC_LIST, TOPIC_TABLE
from gantrymq.wire.fastjson import parse

CPP_HEARTBEAT: Final = b"""{"clientID":"2093-127.0.0.1@DEFAULT","consumerDataSet":[{
"consumeFromWhere":0,"consumeType":1,"groupName":"cc_pb","messageModel":0,"subscriptionDataSet":[{"subString":"*",
"subVersion":"1794778348789","topic":"CppTopic"}]}],"producerDataSet":null}"""
GO_SUBSCRIPTION: Final = b"""{"clientID":"g","consumerDataSet":[{"groupName":"g",
"subscriptionDataSet":[{"topic":"t","codeSet":["2598919","-5"],"tagsSet":["a"]}]}]}"""


def test_a_cpp_heartbeat_with_ordinals_and_texts() -> None:
    heartbeat = HEARTBEAT.decode(CPP_HEARTBEAT)
    (consumer,) = heartbeat.consumer_data_set
    assert heartbeat.producer_data_set == ()
    assert consumer.consume_type is ConsumeType.CONSUME_PASSIVELY
    assert consumer.message_model is MessageModel.BROADCASTING
    assert consumer.consume_from_where is ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    assert consumer.subscription_data_set[0].version == 1794778348789


def test_a_go_subscription_with_codes_as_texts() -> None:
    (consumer,) = HEARTBEAT.decode(GO_SUBSCRIPTION).consumer_data_set
    assert consumer.subscription_data_set[0].tag_codes == {2598919, -5}


@pytest.mark.parametrize(
    ("raw", "model"),
    [
        (b'"CLUSTERING"', MessageModel.CLUSTERING),
        (b'"broadcasting"', MessageModel.BROADCASTING),
        (b"0", MessageModel.BROADCASTING),
        (b'"2"', MessageModel.LITE_SELECTIVE),
        (b'"SOMETHING_NEW"', None),
        (b'""', None),
        (b"null", None),
    ],
)
def test_enums_by_name_case_and_ordinal(raw: bytes, model: MessageModel | None) -> None:
    assert CONSUMER_CONNECTIONS.decode(b'{"messageModel":%s}' % raw).message_model is model


@pytest.mark.parametrize(
    ("hint", "raw", "value"),
    [
        (int, "5", 5),
        (int, " -5 ", -5),
        (int, 5.0, 5),
        (float, 5, 5.0),
        (float, "0.5", 0.5),
        (str, 5, "5"),
        (str, 0.5, "0.5"),
        (str, True, "true"),
        (str, False, "false"),
        (bool, "TRUE", True),
        (bool, "0", False),
        (bool, 1, True),
        (bool, 0, False),
        (Perm, "6", Perm(6)),
        (bytes, "AQI=", b"\x01\x02"),
        (tuple[int, ...], [1, None, "", "2"], (1, 2)),
        (frozenset[str], ["a", "a"], frozenset({"a"})),
        (FilterType | None, "multi_tag", FilterType.MULTI_TAG),
    ],
)
def test_values_in_other_forms(hint: object, raw: object, value: object) -> None:
    got = read(hint, raw, "f")
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("hint", "raw", "problem"),
    [
        (int, "5.5", "expected a whole number, got '5.5'"),
        (int, 5.5, "expected a whole number, got 5.5"),
        (int, float("inf"), "expected a whole number"),
        (int, True, "expected a whole number, got True"),
        (int, [], "got a list"),
        (int, {}, "got an object"),
        (int, "\u0665", "expected a whole number"),
        (int, 2**63, "is not between"),
        (int, "9" * 41, "expected a whole number"),
        (QueueId, 2**31, "is not between"),
        (float, "x", "expected a number, got 'x'"),
        (float, True, "expected a number"),
        (float, 10**400, "expected a number"),
        (bool, 2, "expected true or false, got 2"),
        (bool, "yes", "expected true or false, got 'yes'"),
        (bool, 0.0, "expected true or false"),
        (str, [], "expected a text, got a list"),
        (bytes, "=", "expected Base64"),
        (bytes, 5, "expected Base64"),
        (Perm, 16, "is not between 0 and 15"),
        (Perm, -1, "is not between"),
        (FilterType, 2, "2 is none of SINGLE_TAG, MULTI_TAG"),
        (FilterType, "7", "is none of"),
        (FilterType, [], "expected a whole number, got a list"),
        (MessageQueue, None, "expected an object, got null"),
        (tuple[int, ...], {}, "expected a list, got an object"),
        (int, "", "nothing is there"),
        (bool, "", "nothing is there"),
        (float, "", "nothing is there"),
        (Perm, "", "nothing is there"),
    ],
)
def test_other_values_are_refused(hint: object, raw: object, problem: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        read(hint, raw, "f")
    assert problem in caught.value.problem
    assert len(str(caught.value)) < 300


def test_a_type_without_a_reader_is_a_mistake_of_ours() -> None:
    for hint in (Callable[[], int], complex):
        with pytest.raises(TypeError, match="no reader"):
            reader_of(hint)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"topicConfigTable":{"X":{"topicName":"X","perm":"rw"}}}', "topicConfigTable.X.perm"),
        (b'{"topicConfigTable":{"X":{"topicName":"X","perm":-1}}}', "topicConfigTable.X.perm"),
        (b'{"topicConfigTable":{"X":{"perm":6}}}', "topicConfigTable.X.topicName"),
        (b'{"topicConfigTable":{"X":{"topicName":"X","readQueueNums":-1}}}', "topicConfigTable.X"),
        (b'{"topicConfigTable":[]}', "topicConfigTable"),
        (b'{"topicConfigTable":{{}:1}}', "topicConfigTable"),
        (b'{"dataVersion":{"counter":1e99}}', "dataVersion.counter"),
        (b"[]", ""),
    ],
)
def test_the_field_of_a_wrong_value_is_named(body: bytes, field: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        TOPIC_TABLE.decode(body)
    assert caught.value.field == f"body.{field}".rstrip(".")


def test_fields_inside_lists_and_object_keys_are_named() -> None:
    with pytest.raises(ProtocolError) as caught:
        HEARTBEAT.decode(b'{"clientID":"c","consumerDataSet":[{"groupName":"g"},{}]}')
    assert caught.value.field == "body.consumerDataSet[1].groupName"
    queue = b'{"brokerName":"b","queueId":0,"topic":"t"}'
    with pytest.raises(ProtocolError) as caught:
        TOPIC_STATS.decode(b'{"offsetTable":{%s:{"maxOffset":"x"}}}' % queue)
    assert caught.value.field == "body.offsetTable.{t/b/0}.maxOffset"
    with pytest.raises(ProtocolError) as caught:
        TOPIC_STATS.decode(b'{"offsetTable":{{}:{}}}')
    assert caught.value.field == "body.offsetTable.{None/None/None}.brokerName"
    with pytest.raises(ProtocolError) as caught:
        TOPIC_STATS.decode(b'{"offsetTable":{"text":{}}}')
    assert caught.value.field == "body.offsetTable"
    with pytest.raises(ProtocolError) as caught:
        TOPIC_STATS.decode(b'{"offsetTable":{%s:{},bare:{}}}' % queue)
    assert caught.value.field == "body.offsetTable.bare"


def test_long_keys_and_values_are_cut_in_errors() -> None:
    with pytest.raises(ProtocolError) as caught:
        CONSUMER_OFFSETS.decode(b'{"offsetTable":{"%s":"%s"}}' % (b"k" * 10_000, b"v" * 10_000))
    assert len(str(caught.value)) < 300


def test_keys_that_are_numbers() -> None:
    offsets = CONSUMER_OFFSETS.decode(b'{"offsetTable":{"t@g":{0:5,"1":6,2:null}}}')
    assert offsets.offset_table == {"t@g": {0: 5, 1: 6}}
    with pytest.raises(ProtocolError, match=r"t@g\.x: expected a whole number"):
        CONSUMER_OFFSETS.decode(b'{"offsetTable":{"t@g":{"x":5}}}')
    with pytest.raises(ProtocolError, match="empty key"):
        CONSUMER_OFFSETS.decode(b'{"offsetTable":{"t@g":{"":5}}}')


def test_values_that_count_as_none_are_left_out_of_maps() -> None:
    assert CONSUMER_OFFSETS.decode(b'{"offsetTable":{"t@g":{0:""}}}').offset_table == {"t@g": {}}


def test_unknown_keys_are_ignored_and_missing_ones_have_defaults() -> None:
    topics = TOPIC_LIST.decode(b'{"topicList":["t"],"new":{"deep":[1,{"x":2}]}}')
    assert topics.topic_list == ("t",)
    assert topics.broker_addr is None
    assert TOPIC_LIST.decode(b"{}").topic_list == ()


def test_bytes_are_base64() -> None:
    ack = BatchAck(
        group="g",
        topic="t",
        start_offset=5,
        queue_id=QueueId(0),
        revive_queue_id=QueueId(1),
        pop_time=2,
        invisible_time=3,
        bits=b"\x05",
    )
    body = b'{"acks":[{"b":"BQ==","c":"g","it":3,"pt":2,"q":0,"r":"0","rq":1,"so":5,"t":"t"}]'
    request = BATCH_ACK.decode(body + b',"brokerName":"b"}')
    assert request.acks == (ack,)
    assert BATCH_ACK.encode(request) == body + b',"brokerName":"b"}'


def test_an_empty_map_of_queues_looks_like_any_object() -> None:
    assert TOPIC_STATS.decode(b'{"offsetTable":{}}').offset_table == {}
    assert parse(TOPIC_STATS.encode(TOPIC_STATS.decode(b"{}"))) == {"offsetTable": {}}


def test_a_route_is_a_python_literal_too() -> None:
    # pyrocketmq evaluates the text; Go cuts brokerAddrs out of it and wants no blanks.
    route = TopicRoute(
        queues=(QueueData("b", 4, 4, Perm(6)),),
        brokers=(BrokerData("c", "b", {0: "192.0.2.1:10911", 1: "192.0.2.2:10911"}),),
    )
    body = TOPIC_ROUTE.encode(route)
    assert ast.literal_eval(body.decode())
    assert b'"brokerAddrs":{"0":"192.0.2.1:10911","1":"192.0.2.2:10911"}' in body
    acting = TopicRoute(brokers=(BrokerData("c", "b", acting_master=True),))
    assert b'"enableActingMaster":true' in TOPIC_ROUTE.encode(acting)
    assert TOPIC_ROUTE.decode(TOPIC_ROUTE.encode(acting)) == acting
