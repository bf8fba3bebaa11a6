"""Every metric of the catalogue is exported by something, and nothing else is."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from gantrymq.metrics.catalogue import FAMILIES, exported_names
from gantrymq.metrics.endpoint import Endpoint
from gantrymq.metrics.of_cluster import fill_cluster, fill_name_server
from gantrymq.metrics.parts import BrokerParts, FailoverParts, NamesrvParts
from gantrymq.metrics.request_times import RequestTimes, _Making
from gantrymq.namesrv.handlers import NameServer
from gantrymq.namesrv.settings import NamesrvSettings
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.bodies.heartbeat import HEARTBEAT
from gantrymq.wire.bodies.replication import HaConnection, HaStatus
from gantrymq.wire.command import Command
from support.broker_rig import BrokerRig, pull
from support.client_peers import consumer, heartbeat, subscription
from support.samples import json_request
from support.scraping import COMMON, RigScrapes, Samples

if TYPE_CHECKING:
    from gantrymq.metrics.sheet import Sheet
    from gantrymq.metrics.turns import Turns


def busy_rig() -> tuple[BrokerRig, RigScrapes, RequestTimes]:
    """Return a broker in which something of every kind has happened."""
    rig = BrokerRig()
    scrapes, times = RigScrapes(rig), RequestTimes(rig.clock)
    rig.broker.router.watch = times
    rig.send(b"x")
    rig.send(b"later", i="TIMER_DELAY_SEC\x0130")
    half = rig.send(b"half", i="TRAN_MSG\x01true\x02PGROUP\x01p", a="p")
    rig.settle(1)
    rig.ask(pull(0, consumerGroup="g"))
    fields = {
        "producerGroup": "p",
        "tranStateTableOffset": half.fields["queueOffset"],
        "commitLogOffset": str(int(half.fields["msgId"][16:], 16)),
        "commitOrRollback": "8",
        "fromTransactionCheck": "false",
        "msgId": "x",
    }
    assert rig.ask(json_request(37, fields)).code == 0
    back = {"offset": "0", "group": "g", "delayLevel": "-1", "originTopic": "T"}
    assert rig.ask(json_request(36, back)).code == 0
    told = heartbeat("c1", consumer("g", subscription("T")), producers=["p"])
    rig.ask(json_request(34, {}, HEARTBEAT.encode(told)))
    rig.broker.tables.offsets.commit("g", "T", 0, 0)
    make(times, 17, {"topic": "Made"})
    make(times, 200, body=b'{"groupName":"made"}')
    rig.store.cleaner.check()
    rig.settle(1)
    return rig, scrapes, times


def some(**values: object) -> Any:  # noqa: ANN401
    """Return something with these attributes."""
    return SimpleNamespace(**values)


class Everything:
    """A source that has a master, a slave and a name server."""

    def __init__(self, rig: BrokerRig, sheet: Sheet, times: RequestTimes) -> None:
        self._rig = rig
        self._sheet = sheet
        self._times = times

    async def fill(self, sheet: Sheet, turns: Turns) -> None:
        sheet._rows.update(self._sheet._rows)
        page = sheet.page(*COMMON.values())
        self._times.fill(page, self._rig.store.statistics.put_times)
        slaves = (HaConnection(addr="10.0.0.2:1", diff=7, in_sync=True),)
        status = HaStatus(master=True, ha_connection_info=slaves)
        seat = some(trouble=None, troubles=2, holds_lease=lambda: True)
        in_sync = some(state=some(in_sync=(1, 2)))
        connections = some(
            connections={1: 1}, buffered_bytes=5, slow_connections=1, busy_answers=2,
            closed={"idle": 1}, admission=some(refused={"all": 3}),
        )  # fmt: skip
        servers = ("10.0.0.1:9876",), frozenset[str]()
        leader = some(client=None, status=lambda: status)
        failover = FailoverParts(seat, 3, in_sync)
        fill_cluster(page, BrokerParts(self._rig.broker, leader, connections, *servers, failover))
        follower = some(client=some(is_connected=True, is_level=False))
        other = sheet.page("c", "broker", "broker-b")
        fill_cluster(other, BrokerParts(self._rig.broker, follower, None, *servers))
        names = NameServer(self._rig.clock, NamesrvSettings())
        fill_name_server(sheet.page("", "nameserver", "n"), NamesrvParts(names, None))


def test_every_metric_is_exported() -> None:
    rig, scrapes, times = busy_rig()
    source = Everything(rig, scrapes.sheet(), times)
    text = asyncio.run(Endpoint([source], list).text())
    told = {line.split()[2] for line in text.decode().splitlines() if line.startswith("# TYPE")}
    assert told == set(exported_names())
    found = Samples.parse(text)
    for name, family in FAMILIES.items():
        line = found[f"{name}_count" if family.kind.value == "histogram" else name][0]
        own = set(line.labels) - (set(COMMON) if family.is_common else set())
        assert own == set(family.labels), name
    assert found.value("gantrymq_replication_lag_bytes", slave="10.0.0.2:1") == 7
    assert found.value("gantrymq_failover_epoch") == 3
    assert found.value("gantrymq_in_sync_members") == 2
    assert found.value("gantrymq_replication_connected") == 1


def test_requests_are_timed_by_code_and_answer() -> None:
    rig = BrokerRig()
    times = RequestTimes(rig.clock)
    rig.broker.router.watch = times
    rig.ask(json_request(34, {}, HEARTBEAT.encode(heartbeat("c", producers=["p"]))))
    rig.ask(json_request(315, {"consumerGroup": "no", "topic": "no", "queueId": "x"}))
    kinds = {(asked.request, asked.response): sum(n) for asked, n in times._counts.items()}
    assert kinds[("heart_beat", "success")] == 1
    assert sum(kinds.values()) == 2
    assert cast("object", rig.broker.router.watch) is times


def make(
    times: RequestTimes,
    code: int,
    fields: dict[str, str] | None = None,
    body: bytes = b"",
    answer: int = 0,
) -> None:
    """Have a topic or a group made, as far as the times see it."""
    request = Command.request(code, 1, fields, body)
    assert times(request, lambda: request.response(answer)) is not None


def test_making_topics_and_groups_is_timed() -> None:
    times = RequestTimes(VirtualClock())
    make(times, 200, body=b'{"groupName":"mine"}')
    make(times, 200, body=b'{"groupName":"CID_RMQ_SYS_x"}')
    make(times, 200, body=b"not JSON", answer=1)
    make(times, 17, {"topic": "a/b"}, answer=1)
    make(times, 17, {"topic": "TBW102"})
    kinds = {kind: sum(counts) for kind, (counts, _total) in times._makings.items()}
    group = "rocketmq_consumer_group_create_execution_time"
    topic = "rocketmq_topic_create_execution_time"
    assert kinds == {
        _Making(group, "success", is_system=False): 1,
        _Making(group, "success", is_system=True): 1,
        _Making(group, "failure", is_system=False): 1,
        _Making(topic, "failure", is_system=False): 1,
        _Making(topic, "success", is_system=True): 1,
    }
