"""Whatever a peer sends, a name server answers something that can be sent, and goes on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.namesrv.handlers import NameServer
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.command import Command
from gantrymq.wire.frame import FrameParser, encode_frame
from support.namesrv import FakePeer, Site

FIELDS = (
    "topic", "clusterName", "brokerName", "brokerAddr", "brokerId", "haServerAddr", "namespace",
    "key", "value", "cluster", "heartbeatTimeoutMillis", "enableActingMaster", "bodyCrc32",
    "__ZONE_NAME", "__ZONE_MODE", "compressed",
)  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(["", "A", "0", "1", "-1", "true", "broker-a", "10.0.0.1:10911", "0.0.0.0:1"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
BODIES = st.one_of(
    st.just(b""),
    st.binary(max_size=40),
    st.sampled_from(
        [
            b"{}",
            b"[]",
            b"x\x9c\x03\x00",
            b'{"counter":1}',
            b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"A":{},"B":{"perm":99}}}}',
            b'{"topicConfigTable":{"A":{"readQueueNums":1},"B":{"writeQueueNums":-1}}}',
            b'{"topicConfigTable":{"A":{},"B":{}},"dataVersion":{"stateVersion":9}}',
            b'{"filterServerList":["x:1"],"topicConfigSerializeWrapper":{}}',
            b'{"queueDatas":[{"brokerName":"broker-a","perm":6}]}',
            b"orderMessageEnable=true",
            b"kvConfigPath=x",
        ]
    ),
)
CODES = [*sorted(NameServer(VirtualClock()).codes), 0, 10, 999, 1001]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(CODES) | st.just(int(RequestCode.REGISTER_BROKER)),
        st.dictionaries(st.sampled_from(FIELDS), TEXTS),
        BODIES,
        st.integers(1, 3),
        st.booleans(),
    ),
    max_size=12,
)


GOOD = {
    "brokerName": "broker-a",
    "brokerAddr": "10.0.0.1:10911",
    "clusterName": "c",
    "haServerAddr": "10.0.0.1:10912",
    "brokerId": "0",
    "topic": "A",
    "namespace": "ORDER_TOPIC_CONFIG",
    "key": "A",
    "value": "broker-a:4",
    "cluster": "c",
}

Step = tuple[int, dict[str, str], bytes, int, bool]


def take(steps: list[Step]) -> None:
    """Send requests, then close all connections: nothing is left."""
    site = Site()
    site.register()
    for code, fields, body, number, oneway in steps:
        request = Command.request(code, number, fields, body, oneway=oneway)
        answer = site.server.handle(request, FakePeer(number, address="127.0.0.1:5"))
        assert (answer is None) is oneway
        if answer is not None:
            (received,) = FrameParser().feed(encode_frame(answer))
            assert received.opaque == number
            assert received.code == 0 or received.remark
        site.clock.jump(7)
        site.server.tick(site.clock.monotonic())
    for number in (1, 2, 3):
        site.server.peer_closed(FakePeer(number))
    assert not site.server.table.groups
    assert not site.server.table.topics
    assert site.server.table.route_count == 0


@given(STEPS)
def test_every_answer_can_be_sent(steps: list[Step]) -> None:
    take(steps)


@given(STEPS)
def test_requests_that_get_further(steps: list[Step]) -> None:
    """What is required is there; what is given wins."""
    take([(code, {**GOOD, **fields}, body, n, oneway) for code, fields, body, n, oneway in steps])
