"""What Apache's name servers answered, asked of ours: the same requests give the same answers.

A recorded question comes without the table it was asked of, since most registrations were trimmed.
So the table is made from the answer: a broker registers with exactly what the answer shows, and
then the recorded frame must be answered the same. Registrations themselves are replayed as they
were recorded.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

from gantrymq.model.offsets import DataVersion
from gantrymq.model.topic import TopicConfig
from gantrymq.namesrv.members import Announcement
from gantrymq.namesrv.settings import SETTING_NAMES
from gantrymq.wire import fastjson
from gantrymq.wire.bodies.route import CLUSTER_INFO, TOPIC_ROUTE
from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.bodies.topic import TOPIC_LIST
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.frame import FrameParser
from support.golden import WIRE, WIRE_FILES, Entry, exchanges, wire_entries
from support.namesrv import FakePeer, Site

if TYPE_CHECKING:
    from gantrymq.model.route import BrokerData
    from gantrymq.wire.command import Command

EXPECTED: Final = {
    RequestCode.PUT_KV_CONFIG: 12,
    RequestCode.DELETE_KV_CONFIG: 4,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: 726,
    RequestCode.GET_BROKER_CLUSTER_INFO: 61,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: 4,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: 18,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: 4,
    RequestCode.UPDATE_NAMESRV_CONFIG: 4,
    RequestCode.GET_NAMESRV_CONFIG: 4,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: 4,
}
"""How many questions with answers the conversations hold, beside those of brokers."""
OURS_ALONE: Final = {
    "aclEnable", "aclPath", "insecure", "logFormat", "metricsBindAddress", "metricsPort",
    "usersFile", "usersKeyFile",
}  # fmt: skip
"""Settings that Apache's name server does not have."""
ELSEWHERE: Final = {"bindAddress", "configStorePath", "kvConfigPath", "listenPort"}
LISTENING: Final = {("127.0.0.1", "0.0.0.0"), ("127.0.0.1", None)}  # noqa: S104
"""Ours lets other machines in when it is told to; 4.9.7 does not show the setting."""
OF_BROKERS: Final = frozenset({RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER})
HERE_ONLY: Final = {"wipeTopicCount", "addTopicCount"}


def command(entry: Entry) -> Command:
    (decoded,) = FrameParser().feed(entry.frame)
    return decoded


def questions() -> list[tuple[Command, Command]]:
    """Return every recorded question to a name server that was answered, brokers' own left out."""
    return [
        (command(asked), command(answered))
        for path in WIRE_FILES
        for asked, answered in exchanges(wire_entries(path))
        if asked.peer == "namesrv" and asked.direction == "c2s" and answered is not None
        if asked.code not in OF_BROKERS
    ]


def tree(body: bytes) -> object:
    """Return a body without what ours leaves out on purpose and without the order of lists."""
    return _plain(fastjson.parse(body)) if body else None


def _plain(value: object) -> object:
    if isinstance(value, dict):
        items = {str(key): _plain(item) for key, item in value.items()}
        return {k: v for k, v in items.items() if not (k == "enableActingMaster" and v is False)}
    if isinstance(value, list):
        return sorted((_plain(item) for item in value), key=str)
    return value


def site_that_knows(asked: Command, answered: Command) -> Site:
    """Return a name server whose table is what the answer shows."""
    site = Site()
    brokers: tuple[BrokerData, ...] = ()
    topics: dict[str, dict[str, TopicConfig]] = {}
    if asked.code == RequestCode.GET_ROUTEINFO_BY_TOPIC and answered.body:
        route = TOPIC_ROUTE.decode(answered.body)
        brokers = route.brokers
        for data in route.queues:
            topic = asked.fields["topic"]
            topics[data.broker_name] = {
                topic: TopicConfig(
                    topic,
                    data.read_queues,
                    data.write_queues,
                    data.perm,
                    system_flags=data.system_flags,
                )
            }
    elif asked.code == RequestCode.GET_BROKER_CLUSTER_INFO:
        brokers = tuple(CLUSTER_INFO.decode(answered.body).broker_addr_table.values())
    elif asked.code == RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER:
        register(site, "broker-a", TOPIC_LIST.decode(answered.body).topic_list)
    elif HERE_ONLY & answered.fields.keys():
        (count,) = answered.fields.values()
        register(site, asked.fields["brokerName"], [f"T{n}" for n in range(int(count))])
    for broker in brokers:
        for number, address in broker.addresses.items():
            register_one(site, broker, number, address, topics.get(broker.name, {}))
    return site


def register(site: Site, name: str, topics: tuple[str, ...] | list[str]) -> None:
    said = Announcement(
        cluster="DefaultCluster",
        name=name,
        broker_id=0,
        address="127.0.0.2:21911",
        topics={topic: TopicConfig(topic) for topic in topics},
    )
    site.server.table.register(said, 1, 0.0)


def register_one(
    site: Site, broker: BrokerData, number: int, address: str, topics: dict[str, TopicConfig]
) -> None:
    """Register without topics, as the first registration of an id must have more than one."""
    for version, table in enumerate(({}, topics)):
        said = Announcement(
            cluster=broker.cluster,
            name=broker.name,
            broker_id=number,
            address=address,
            version=DataVersion(0, 0, version),
            topics=table,
        )
        site.server.table.register(said, number + 1, 0.0)


def test_every_question_is_answered_as_apache_did() -> None:
    seen: Counter[int] = Counter()
    for asked, answered in questions():
        seen[asked.code] += 1
        answer = site_that_knows(asked, answered).server.handle(asked, FakePeer())
        assert answer is not None
        assert answer.code == answered.code, (asked, answered, answer)
        assert answer.opaque == answered.opaque
        assert answer.fields == answered.fields
        if asked.code == RequestCode.GET_NAMESRV_CONFIG:
            _check_settings(answer.body, answered.body)
        else:
            assert tree(answer.body) == tree(answered.body), asked
    assert seen == EXPECTED


def _check_settings(ours: bytes, theirs: bytes) -> None:
    """Compare the settings that both have, but for the two places, the port and who may come in."""
    mine, apaches = SETTINGS.decode(ours), SETTINGS.decode(theirs)
    assert mine.keys() == SETTING_NAMES
    assert (mine["bindAddress"], apaches.get("bindAddress")) in LISTENING
    both = (mine.keys() & apaches.keys()) - ELSEWHERE
    assert both
    assert {name: mine[name] for name in both} == {name: apaches[name] for name in both}


def test_the_settings_are_those_of_5_5() -> None:
    (answered,) = [
        command(answer)
        for asked, answer in exchanges(
            wire_entries(WIRE / "mqadmin-5.5.0" / "getNamesrvConfig.jsonl")
        )
        if asked.code == RequestCode.GET_NAMESRV_CONFIG and answer is not None
    ]
    assert SETTINGS.decode(answered.body).keys() > SETTING_NAMES - OURS_ALONE


@pytest.mark.parametrize("release", ["4.9.7", "5.5.0"])
@pytest.mark.parametrize("role", ["master", "slave"])
def test_brokers_register_and_leave_as_they_did(role: str, release: str) -> None:
    site = Site()
    if role == "slave":
        _register_master(site, release)
    answers = registrations = 0
    for asked, answered in exchanges(
        wire_entries(WIRE / "broker-namesrv" / f"{role}-{release}.jsonl")
    ):
        request = command(asked)
        if request.code not in OF_BROKERS:
            continue
        answer = site.server.handle(request, FakePeer(asked.connection))
        name = request.fields["brokerName"]
        assert (answer is None) is asked.oneway
        if request.code == RequestCode.REGISTER_BROKER:
            registrations += 1
            number = int(request.fields["brokerId"])
            group = site.server.table.groups[name]
            assert group.members[number].address == request.fields["brokerAddr"]
        elif role == "master":
            assert name not in site.server.table.groups
        if answer is not None and answered is not None:
            answers += 1
            expected = command(answered)
            assert (answer.code, answer.body) == (expected.code, expected.body)
            assert answer.fields == expected.fields
    assert registrations == 3
    assert answers >= 4


def _register_master(site: Site, release: str) -> None:
    """Register the master that the recorded answers to the slave name."""
    path = WIRE / "broker-namesrv" / f"slave-{release}.jsonl"
    fields = next(
        command(answered).fields
        for asked, answered in exchanges(wire_entries(path))
        if asked.code == RequestCode.REGISTER_BROKER and answered is not None
    )
    said = Announcement(
        cluster="DefaultCluster",
        name="broker-a",
        broker_id=0,
        address=fields["masterAddr"],
        ha_address=fields["haServerAddr"],
    )
    site.server.table.register(said, 100, 0.0)
