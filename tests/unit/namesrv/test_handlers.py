"""Every request that a name server handles, as its sender sees it."""

from __future__ import annotations

import msgspec
import pytest

from gantrymq.model.offsets import DataVersion
from gantrymq.model.route import QueueData, TopicRoute
from gantrymq.model.topic import READ_WRITE, TopicConfig
from gantrymq.namesrv.members import Announcement, Place
from gantrymq.namesrv.settings import NamesrvSettings
from gantrymq.wire.bodies.route import TOPIC_ROUTE
from gantrymq.wire.bodies.topic import DATA_VERSION
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import BINARY_HEADER, Command
from support.namesrv import CLUSTER, MASTER, SLAVE, FakePeer, Site

CODE = RequestCode
OTHER = "10.0.0.3:10911"


@pytest.fixture
def site() -> Site:
    return Site()


def route(site: Site, topic: str = "A", peer: FakePeer | None = None) -> dict[str, object]:
    answer = site.want(CODE.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}, peer=peer)
    return msgspec.json.decode(answer.body, type=dict[str, object])


def names(answer: Command) -> list[str]:
    body = msgspec.json.decode(answer.body, type=dict[str, object])
    listed = body["topicList"]
    assert isinstance(listed, list)
    return listed


class TestRoutes:
    def test_the_bytes(self, site: Site) -> None:
        site.register()
        site.register(address=SLAVE, broker_id=1, peer=FakePeer(2))

        answer = site.want(CODE.GET_ROUTEINFO_BY_TOPIC, {"topic": "A"})

        assert answer.body == (
            b'{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911","1":"10.0.0.2:10911"},'
            b'"brokerName":"broker-a","cluster":"DefaultCluster"}],"filterServerTable":{},'
            b'"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,'
            b'"topicSysFlag":0,"writeQueueNums":4}]}'
        )
        assert site.want(CODE.GET_ROUTEINFO_BY_TOPIC, {"topic": "A"}).body is answer.body

    def test_a_topic_that_nobody_has(self, site: Site) -> None:
        answer = site.ask(CODE.GET_ROUTEINFO_BY_TOPIC, {"topic": "Absent"})
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST
        assert answer.remark is not None
        assert "for the topic: Absent" in answer.remark

    def test_the_answer_follows_every_change(self, site: Site) -> None:
        site.register()
        before = route(site)
        site.register(("A",), version=2, address=MASTER)
        assert route(site) == before
        site.register(address=SLAVE, broker_id=1, peer=FakePeer(2))
        assert route(site) != before
        site.server.peer_closed(FakePeer(2))
        assert route(site) == before

    def test_order_is_told_only_if_it_is_switched_on(self, site: Site) -> None:
        site.register()
        put = {"namespace": "ORDER_TOPIC_CONFIG", "key": "A", "value": "broker-a:4"}
        site.want(CODE.PUT_KV_CONFIG, put)
        assert "orderTopicConf" not in route(site)

        site.want(CODE.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=true\n")
        assert route(site)["orderTopicConf"] == "broker-a:4"
        site.want(CODE.PUT_KV_CONFIG, {**put, "value": "broker-a:8"})
        assert route(site)["orderTopicConf"] == "broker-a:8"
        site.want(CODE.DELETE_KV_CONFIG, put)
        assert "orderTopicConf" not in route(site)

    def test_none_before_the_brokers_had_time_to_register(self) -> None:
        site = Site(NamesrvSettings(wait_for_service=True))
        site.register()
        site.clock.jump(44.9)
        answer = site.ask(CODE.GET_ROUTEINFO_BY_TOPIC, {"topic": "A"})
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert "not ready" in (answer.remark or "")
        site.clock.jump(0.1)
        route(site)

    @pytest.mark.parametrize("switched_on", [True, False])
    def test_an_acting_master(self, switched_on: bool) -> None:
        site = Site(NamesrvSettings(acting_masters=switched_on))
        having = ("A", "rmq_sys_SYNC_BROKER_MEMBER_broker-a")
        acting = {"enableActingMaster": "true"}
        site.register(having, peer=FakePeer(1), fields=acting)
        for number, address in ((1, SLAVE), (2, OTHER)):
            site.register(
                having, address=address, broker_id=number, peer=FakePeer(9 + number), fields=acting
            )
        site.server.peer_closed(FakePeer(1))

        def told(topic: str) -> object:
            (broker,) = TOPIC_ROUTE.decode(
                site.want(CODE.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}).body
            ).brokers
            return broker.addresses

        alone = {1: SLAVE, 2: OTHER}
        assert told("A") == ({0: SLAVE, 2: OTHER} if switched_on else alone)
        assert told(having[1]) == alone

    def test_a_client_that_stays_in_its_zone(self, site: Site) -> None:
        site.register(name="broker-a", __ZONE_NAME="z1")
        site.register(name="broker-b", address=OTHER, peer=FakePeer(2), __ZONE_NAME="z2")

        def brokers(**fields: str) -> list[str]:
            body = site.want(CODE.GET_ROUTEINFO_BY_TOPIC, {"topic": "A", **fields}).body
            decoded = TOPIC_ROUTE.decode(body)
            assert [b.name for b in decoded.brokers] == [q.broker_name for q in decoded.queues]
            return [broker.name for broker in decoded.brokers]

        assert brokers() == ["broker-a", "broker-b"]
        assert brokers(__ZONE_MODE="true") == ["broker-a", "broker-b"]
        assert brokers(__ZONE_MODE="false", __ZONE_NAME="z2") == ["broker-a", "broker-b"]
        assert brokers(__ZONE_MODE="true", __ZONE_NAME="Z2") == ["broker-b"]


class TestReach:
    """A route is answered as the asking client can reach it."""

    def test_every_answer_with_an_address(self, site: Site) -> None:
        site.register()
        site.server.advertise(MASTER, None)
        site.server.advertise("10.0.0.1:10912", None)
        near = FakePeer(5, listener="127.0.0.1:9876")

        for peer, host in ((near, b"127.0.0.1"), (site.peer, b"10.0.0.8")):
            for code, fields in (
                (CODE.GET_ROUTEINFO_BY_TOPIC, {"topic": "A"}),
                (CODE.GET_BROKER_CLUSTER_INFO, {}),
                (CODE.GET_SYSTEM_TOPIC_LIST_FROM_NS, {}),
                (
                    CODE.GET_BROKER_MEMBER_GROUP,
                    {"clusterName": CLUSTER, "brokerName": "broker-a"},
                ),
            ):
                body = site.want(code, fields, peer=peer).body
                assert host + b":10911" in body
                assert b"10.0.0.1:" not in body
        slave = site.register(address=SLAVE, broker_id=1, peer=near)
        assert slave.fields == {"haServerAddr": "127.0.0.1:10912", "masterAddr": "127.0.0.1:10911"}

        site.server.withdraw(MASTER)
        assert b"10.0.0.1:10911" in site.want(CODE.GET_BROKER_CLUSTER_INFO, peer=near).body

    def test_an_explicit_address_for_a_listener(self, site: Site) -> None:
        site.register()
        site.server.advertise(MASTER, {"127.0.0.1": "localhost:30911"})
        near = FakePeer(5, listener="127.0.0.1:9876")
        assert "localhost:30911" in str(route(site, peer=near))
        assert MASTER in str(route(site))

    def test_a_broker_that_says_as_you_see_me(self, site: Site) -> None:
        broker = FakePeer(2, address="172.17.0.3:51000")
        site.register(address="0.0.0.0:10911", peer=broker)
        assert "172.17.0.3:10911" in str(route(site))

        fields = {
            "clusterName": CLUSTER,
            "brokerName": "broker-a",
            "brokerAddr": "0.0.0.0:10911",
            "brokerId": "0",
        }
        version = DATA_VERSION.encode(DataVersion(0, 1_700_000_000_000, 1))
        answer = site.want(CODE.QUERY_DATA_VERSION, fields, version, broker)
        assert answer.fields == {"changed": "false"}
        site.want(CODE.UNREGISTER_BROKER, fields, peer=broker)
        assert not site.server.table.groups

    def test_many_listeners_do_not_fill_the_memory(self, site: Site) -> None:
        site.register()
        site.server.advertise(MASTER, None)
        for number in range(100):
            host = f"127.0.0.{number + 1}"
            assert f"{host}:10911" in str(route(site, peer=FakePeer(9, listener=f"{host}:1")))
        assert len(site.server.table.topics["A"].answers) <= 16


class TestRegistration:
    @pytest.mark.parametrize("compressed", [False, True])
    def test_both_forms(self, site: Site, compressed: bool) -> None:
        answer = site.register(compressed=compressed)
        assert (answer.code, answer.fields, answer.body) == (0, {}, b"")
        assert names(site.want(CODE.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)) == ["A", "B"]

    def test_a_slave_gets_its_master_and_the_order_configuration(self, site: Site) -> None:
        site.register()
        site.want(
            CODE.PUT_KV_CONFIG,
            {"namespace": "ORDER_TOPIC_CONFIG", "key": "A", "value": "broker-a:4"},
        )
        answer = site.register(address=SLAVE, broker_id=1, peer=FakePeer(2))
        assert answer.fields == {"haServerAddr": "10.0.0.1:10912", "masterAddr": MASTER}
        assert answer.body == b'{"table":{"A":"broker-a:4"}}'

        site.want(CODE.UPDATE_NAMESRV_CONFIG, body=b"returnOrderTopicConfigToBroker=false")
        assert site.register().body == b""

    def test_a_body_that_was_damaged(self, site: Site) -> None:
        answer = site.register(bodyCrc32="1")
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert (answer.remark or "").startswith("crc32 not match")
        assert not site.server.table.groups

    def test_no_checksum_is_not_compared(self, site: Site) -> None:
        assert site.register(bodyCrc32="0").code == ResponseCode.SUCCESS

    def test_an_empty_body(self, site: Site) -> None:
        site.register()
        answer = site.ask(
            CODE.REGISTER_BROKER,
            {
                "brokerName": "broker-b",
                "brokerAddr": OTHER,
                "clusterName": CLUSTER,
                "haServerAddr": "",
                "brokerId": "0",
            },
            peer=FakePeer(2),
        )
        assert answer.code == ResponseCode.SUCCESS
        assert OTHER in str(site.want(CODE.GET_BROKER_CLUSTER_INFO).body)

    @pytest.mark.parametrize(
        ("field", "value", "problem"),
        [
            ("brokerName", " ", "the broker name ' ' is blank"),
            ("brokerName", "b" * 256, "more than 255 bytes"),
            ("clusterName", "a\nb", "control characters"),
            ("brokerAddr", "nowhere", "'nowhere' is not host:port"),
            ("brokerAddr", '1.1.1.1:1","9":"x:1', "is not host:port"),
            ("haServerAddr", "1.1.1.1:99999", "no port from 1 to 65535"),
            ("brokerId", "x", "header.extFields.brokerId: 'x' is not a 64-bit integer"),
            ("heartbeatTimeoutMillis", "0", "give a time above 0"),
            ("__ZONE_NAME", "\x07", "control characters"),
        ],
    )
    def test_bad_fields(self, site: Site, field: str, value: str, problem: str) -> None:
        answer = site.register(fields={field: value})
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert problem in (answer.remark or "")
        assert not site.server.table.groups

    @pytest.mark.parametrize("body", [b"{", b"x\x9c", b"[]", b'{"filterServerList":["a b"]}'])
    def test_bad_bodies(self, site: Site, body: bytes) -> None:
        fields = {
            "brokerName": "b",
            "brokerAddr": MASTER,
            "clusterName": CLUSTER,
            "haServerAddr": MASTER,
            "brokerId": "0",
        }
        answer = site.ask(CODE.REGISTER_BROKER, fields, body)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert answer.remark
        assert not site.server.table.groups

    def test_a_field_that_is_missing(self, site: Site) -> None:
        answer = site.ask(CODE.REGISTER_BROKER, {"brokerName": "b"})
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert answer.remark == "header.extFields.brokerAddr: is missing"

    def test_oneway(self, site: Site) -> None:
        site.register()
        fields = {
            "clusterName": CLUSTER,
            "brokerName": "broker-a",
            "brokerAddr": MASTER,
            "brokerId": "0",
        }
        request = Command.request(CODE.UNREGISTER_BROKER, 1, fields, oneway=True)
        assert site.server.handle(request, site.peer) is None
        assert not site.server.table.groups
        broken = Command.request(CODE.UNREGISTER_BROKER, 1, {}, oneway=True)
        assert site.server.handle(broken, site.peer) is None

    def test_a_repetition_is_not_read_but_counts_as_life(self, site: Site) -> None:
        site.register()
        site.clock.jump(100)
        site.register()
        member = site.server.table.member(Place(CLUSTER, MASTER))
        assert member is not None
        assert member.seen == 100
        site.want(CODE.DELETE_TOPIC_IN_NAMESRV, {"topic": "A"})
        site.register()
        route(site)

    def test_topics_that_are_not_named_are_dropped_if_it_is_switched_on(self) -> None:
        site = Site(NamesrvSettings(drop_missing_topics=True))
        site.register(("A", "B", "C"))
        site.register(("B", "C"), version=2)
        assert names(site.want(CODE.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)) == ["B", "C"]

    def test_one_topic_alone(self, site: Site) -> None:
        site.register()
        given = TopicRoute(queues=(QueueData("broker-a", 2, 2, READ_WRITE),))
        topic = {"topic": "New"}
        site.want(CODE.REGISTER_TOPIC_IN_NAMESRV, topic, TOPIC_ROUTE.encode(given))
        assert "New" in names(site.want(CODE.GET_ALL_TOPIC_LIST_FROM_NAMESERVER))
        site.want(CODE.REGISTER_TOPIC_IN_NAMESRV, topic)

        for bad in (QueueData("broker-x", 2, 2, READ_WRITE), QueueData("broker-a", -1, 2)):
            body = TOPIC_ROUTE.encode(TopicRoute(queues=(bad,)))
            answer = site.ask(CODE.REGISTER_TOPIC_IN_NAMESRV, {"topic": "Bad"}, body)
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "'Bad'" in (answer.remark or "")


class TestLife:
    IDENTITY = {  # noqa: RUF012 - the tests only read it
        "clusterName": CLUSTER,
        "brokerName": "broker-a",
        "brokerAddr": MASTER,
        "brokerId": "0",
    }

    def test_a_question_for_the_version(self, site: Site) -> None:
        old, new = (DATA_VERSION.encode(DataVersion(0, 1_700_000_000_000, n)) for n in (1, 2))
        answer = site.want(CODE.QUERY_DATA_VERSION, self.IDENTITY, old)
        assert (answer.fields, answer.body) == ({"changed": "true"}, b"")
        site.register()
        for body, changed in ((old, "false"), (new, "true"), (b"", "true")):
            answer = site.want(CODE.QUERY_DATA_VERSION, self.IDENTITY, body)
            assert (answer.fields, answer.body) == ({"changed": changed}, old)

    @pytest.mark.parametrize(
        ("code", "body"),
        [(CODE.BROKER_HEARTBEAT, b""), (CODE.QUERY_DATA_VERSION, b'{"counter":1}')],
    )
    def test_signs_of_life(self, site: Site, code: int, body: bytes) -> None:
        site.register()
        for _ in range(4):
            site.clock.jump(100)
            site.want(code, self.IDENTITY, body)
            site.server.tick(site.clock.monotonic())
        route(site)

    def test_a_silent_broker_goes_and_its_connection_is_closed(self, site: Site) -> None:
        peer = FakePeer(3)
        site.register(peer=peer)
        site.clock.jump(120)
        site.server.tick(site.clock.monotonic())
        route(site)
        site.clock.jump(5)
        site.server.tick(site.clock.monotonic())
        assert site.ask(CODE.GET_ROUTEINFO_BY_TOPIC, {"topic": "A"}).code == 17
        assert peer.closed_because == f"broker {MASTER} was silent for 120 s"
        site.server.peer_closed(peer)

    def test_a_broker_may_ask_for_less_patience(self, site: Site) -> None:
        site.register(heartbeatTimeoutMillis="10000")
        site.clock.jump(11)
        site.server.tick(site.clock.monotonic())
        assert not site.server.table.groups

    def test_a_connection_that_another_broker_lives_on_stays(self, site: Site) -> None:
        peer = FakePeer(3)
        site.register(peer=peer, heartbeatTimeoutMillis="10000")
        site.register(peer=peer, name="broker-b", address=OTHER)
        site.clock.jump(11)
        site.server.tick(site.clock.monotonic())
        assert list(site.server.table.groups) == ["broker-b"]
        assert peer.is_open

    def test_looking_for_silence_has_its_interval(self) -> None:
        site = Site(NamesrvSettings(scan_interval_ms=60_000))
        site.register(heartbeatTimeoutMillis="1000")
        site.clock.jump(59)
        site.server.tick(site.clock.monotonic())
        assert site.server.table.groups
        site.clock.jump(1)
        site.server.tick(site.clock.monotonic())
        assert not site.server.table.groups

    def test_a_closed_connection(self, site: Site) -> None:
        peer = FakePeer(3)
        site.register(peer=peer)
        site.server.peer_closed(FakePeer(4))
        route(site)
        site.server.peer_closed(peer)
        assert site.ask(CODE.GET_ROUTEINFO_BY_TOPIC, {"topic": "A"}).code == 17

    @pytest.mark.parametrize("switched_on", [True, False])
    def test_brokers_are_told_who_is_lowest(self, switched_on: bool) -> None:
        site = Site(NamesrvSettings(tell_lowest_changed=switched_on))
        master, acting = FakePeer(3), {"enableActingMaster": "true"}
        site.register(peer=master, fields=acting)
        site.register(address=SLAVE, broker_id=1, peer=FakePeer(4), fields=acting)
        site.server.peer_closed(master)
        assert not site.server.table.lowest_changes
        if not switched_on:
            assert not site.sent
            return
        ((address, notice),) = site.sent
        assert address == SLAVE
        assert notice.code == CODE.NOTIFY_MIN_BROKER_ID_CHANGE
        assert notice.is_oneway
        assert notice.fields == {
            "minBrokerId": "1",
            "brokerName": "broker-a",
            "minBrokerAddr": SLAVE,
            "offlineBrokerAddr": MASTER,
        }


class TestLists:
    def test_clusters(self, site: Site) -> None:
        site.register()
        site.register(name="broker-b", address=OTHER, peer=FakePeer(2), clusterName="Other")
        assert site.want(CODE.GET_BROKER_CLUSTER_INFO).body == (
            b'{"brokerAddrTable":{"broker-a":{"brokerAddrs":{"0":"10.0.0.1:10911"},'
            b'"brokerName":"broker-a","cluster":"DefaultCluster"},"broker-b":{"brokerAddrs":'
            b'{"0":"10.0.0.3:10911"},"brokerName":"broker-b","cluster":"Other"}},'
            b'"clusterAddrTable":{"DefaultCluster":["broker-a"],"Other":["broker-b"]}}'
        )

    def test_topics_by_cluster_and_of_the_system(self, site: Site) -> None:
        site.register()
        site.register(
            ("B", "C"), name="broker-b", address=OTHER, peer=FakePeer(2), clusterName="Other"
        )
        for cluster, topics in ((CLUSTER, ["A", "B"]), ("Other", ["B", "C"]), ("Nowhere", [])):
            assert names(site.want(CODE.GET_TOPICS_BY_CLUSTER, {"cluster": cluster})) == topics
        system = site.want(CODE.GET_SYSTEM_TOPIC_LIST_FROM_NS)
        assert names(system) == ["DefaultCluster", "Other", "broker-a", "broker-b"]
        assert b'"brokerAddr":"10.0.0.1:10911"' in system.body

    def test_nothing_is_there(self, site: Site) -> None:
        assert site.want(CODE.GET_SYSTEM_TOPIC_LIST_FROM_NS).body == b'{"topicList":[]}'
        assert site.want(CODE.GET_ALL_TOPIC_LIST_FROM_NAMESERVER).body == b'{"topicList":[]}'
        empty = b'{"brokerAddrTable":{},"clusterAddrTable":{}}'
        assert site.want(CODE.GET_BROKER_CLUSTER_INFO).body == empty

    def test_unit_flags(self, site: Site) -> None:
        topics = {f"T{flags}": TopicConfig(f"T{flags}", system_flags=flags) for flags in range(4)}
        said = Announcement(cluster=CLUSTER, name="b", broker_id=0, address=MASTER, topics=topics)
        site.server.table.register(said, 1, 0.0)
        assert names(site.want(CODE.GET_UNIT_TOPIC_LIST)) == ["T1", "T3"]
        assert names(site.want(CODE.GET_HAS_UNIT_SUB_TOPIC_LIST)) == ["T2", "T3"]
        assert names(site.want(CODE.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST)) == ["T2"]

    @pytest.mark.parametrize(
        ("code", "name"),
        [
            (CODE.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, "enableAllTopicList"),
            (CODE.GET_TOPICS_BY_CLUSTER, "enableTopicList"),
            (CODE.GET_UNIT_TOPIC_LIST, "enableTopicList"),
            (CODE.GET_HAS_UNIT_SUB_TOPIC_LIST, "enableTopicList"),
            (CODE.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, "enableTopicList"),
        ],
    )
    def test_switched_off(self, site: Site, code: int, name: str) -> None:
        site.want(CODE.UPDATE_NAMESRV_CONFIG, body=f"{name}=false".encode())
        answer = site.ask(code, {"cluster": CLUSTER})
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert name in (answer.remark or "")

    def test_members_of_a_group(self, site: Site) -> None:
        site.register()
        site.register(address=SLAVE, broker_id=1, peer=FakePeer(2))
        fields = {"clusterName": CLUSTER, "brokerName": "broker-a"}
        assert site.want(CODE.GET_BROKER_MEMBER_GROUP, fields).body == (
            b'{"brokerMemberGroup":{"brokerAddrs":{"0":"10.0.0.1:10911","1":"10.0.0.2:10911"},'
            b'"brokerName":"broker-a","cluster":"DefaultCluster"}}'
        )
        absent = site.want(CODE.GET_BROKER_MEMBER_GROUP, {**fields, "brokerName": "x"}).body
        assert b'"brokerAddrs":{}' in absent


class TestAdministration:
    def test_key_values(self, site: Site) -> None:
        key = {"namespace": "ns1", "key": "k1"}
        assert site.ask(CODE.GET_KV_CONFIG, key).code == ResponseCode.QUERY_NOT_FOUND
        assert site.ask(CODE.GET_KVLIST_BY_NAMESPACE, key).code == ResponseCode.QUERY_NOT_FOUND
        site.want(CODE.PUT_KV_CONFIG, {**key, "value": "v1"})
        assert site.saved == [b'{"configTable":{"ns1":{"k1":"v1"}}}']
        assert site.want(CODE.GET_KV_CONFIG, key).fields == {"value": "v1"}
        assert site.want(CODE.GET_KVLIST_BY_NAMESPACE, key).body == b'{"table":{"k1":"v1"}}'
        site.want(CODE.DELETE_KV_CONFIG, key)
        assert site.ask(CODE.GET_KV_CONFIG, key).code == ResponseCode.QUERY_NOT_FOUND
        assert site.ask(CODE.PUT_KV_CONFIG, key).remark == "header.extFields.value: is missing"
        blank = site.ask(CODE.PUT_KV_CONFIG, {"namespace": "", "key": "k", "value": "v"})
        assert (blank.code, blank.remark) == (1, "the namespace is blank: give one")

    def test_key_values_are_loaded(self, site: Site) -> None:
        site.server.load_kv(b'{"configTable":{"ns1":{"k1":"v1"}}}')
        key = {"namespace": "ns1", "key": "k1"}
        assert site.want(CODE.GET_KV_CONFIG, key).fields == {"value": "v1"}

    def test_write_permission(self, site: Site) -> None:
        site.register(("A", "B", "C"))
        broker = {"brokerName": "broker-a"}
        wiped = site.want(CODE.WIPE_WRITE_PERM_OF_BROKER, broker)
        assert wiped.fields == {"wipeTopicCount": "3"}
        assert "'perm': 4" in str(route(site))
        site.register(("A", "B", "C"))
        assert "'perm': 4" in str(route(site))
        added = site.want(CODE.ADD_WRITE_PERM_OF_BROKER, broker)
        assert added.fields == {"addTopicCount": "3"}
        assert "'perm': 6" in str(route(site))
        nobody = site.want(CODE.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "x"})
        assert nobody.fields == {"wipeTopicCount": "0"}

    def test_topics_are_forgotten(self, site: Site) -> None:
        site.register()
        site.register(name="broker-b", address=OTHER, peer=FakePeer(2), clusterName="Other")
        site.want(CODE.DELETE_TOPIC_IN_NAMESRV, {"topic": "A", "clusterName": "Other"})
        assert OTHER not in str(route(site))
        site.want(CODE.DELETE_TOPIC_IN_NAMESRV, {"topic": "A", "clusterName": ""})
        site.want(CODE.DELETE_TOPIC_IN_NAMESRV, {"topic": "Absent"})
        assert names(site.want(CODE.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)) == ["B"]

    def test_settings(self, site: Site) -> None:
        site.want(CODE.UPDATE_NAMESRV_CONFIG, body=b"# why\norderMessageEnable=true\n")
        assert site.server.settings.order_in_routes
        assert b"orderMessageEnable=true\n" in site.saved_settings[-1]
        assert b"Path" not in site.saved_settings[-1]
        body = site.want(CODE.GET_NAMESRV_CONFIG).body
        assert b"orderMessageEnable=true\n" in body
        assert b"listenPort=9876\n" in body

    @pytest.mark.parametrize(
        ("body", "code", "problem"),
        [
            (b"kvConfigPath=/tmp/x", 16, "'kvConfigPath' cannot be set by a request"),
            (b"orderMessageEnable=true\nrocketmqHome=/", 16, "'rocketmqHome' cannot be set"),
            (b"waitSecondsForService=-1", 1, "must be a whole number from 0 to 3600"),
            (b"\xff", 1, "body: not UTF-8"),
            (b"a=\\u12", 1, "without four digits"),
        ],
    )
    def test_settings_that_are_refused(
        self, site: Site, body: bytes, code: int, problem: str
    ) -> None:
        before = site.server.settings
        answer = site.ask(CODE.UPDATE_NAMESRV_CONFIG, body=body)
        assert answer.code == code
        assert problem in (answer.remark or "")
        assert site.server.settings == before
        assert not site.saved_settings

    def test_settings_that_could_not_be_saved(self) -> None:
        site = Site()

        def read_only(_content: bytes) -> None:
            raise OSError(30, "Read-only file system")

        site.server._state.save_settings = read_only
        answer = site.ask(CODE.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=true")
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert "Read-only" in (answer.remark or "")
        assert not site.server.settings.order_in_routes


@pytest.mark.parametrize("code", [0, -1, 10, 34, 999, 1007, 2**31 - 1])
def test_codes_of_others(site: Site, code: int) -> None:
    answer = site.ask(code)
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert str(code) in (answer.remark or "")


@pytest.mark.parametrize("code", [CODE.SEND_MESSAGE_V2, CODE.HEART_BEAT])
def test_what_is_for_a_broker_is_said_to_be(site: Site, code: int) -> None:
    answer = site.ask(code)
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert "ask a broker" in str(answer.remark)


@pytest.mark.parametrize("code", [1001, 1003, 1006, 1009, 1018])
def test_controller_codes(site: Site, code: int) -> None:
    answer = site.ask(code)
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert "etcd" in (answer.remark or "")


def test_an_answer_has_the_serialization_of_its_request(site: Site) -> None:
    for code in (CODE.GET_BROKER_CLUSTER_INFO, 999):
        request = Command.request(code, 3, serialize_type=BINARY_HEADER)
        answer = site.server.handle(request, site.peer)
        assert answer is not None
        assert answer.serialize_type == BINARY_HEADER


def test_what_any_request_may_carry_is_passed_over(site: Site) -> None:
    site.register(AccessKey="x", Signature="y", nsd="true", bname="z")
    fields = {"topic": "A", "AccessKey": "", "OnsChannel": "ALIYUN", "__ZONE_MODE": ""}
    site.want(CODE.GET_ROUTEINFO_BY_TOPIC, fields)
