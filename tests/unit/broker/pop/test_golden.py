"""What Apache 5.5.0 said and left behind: its conversation is replayed, its open pops go on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gantrymq.testing.clock import VirtualClock
from gantrymq.testing.disk import SimulatedFiles
from gantrymq.wire.frame import FrameParser, encode_frame
from gantrymq.wire.properties import decode_properties
from support.golden import WIRE, exchanges, wire_entries
from support.golden_trees import unpacked
from support.store_rig import ROOT
from support.timed_rig import TimedRig, decoded

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.wire.command import Command
    from support.golden import Entry

POPS = {200050, 200051, 200053}
SENDS = {310}
LABEL = "apache-5.5.0-pop-v2records"


def test_a_recorded_conversation_of_a_java_client_is_answered_alike() -> None:
    rig = TimedRig(broker_settings={"topic_queues": 2})
    rig.send(b"makes the topic", topic="WirePop", queue_id=0)
    rig.broker.tables.offsets.commit("cg_pop", "WirePop", 0, 1)
    compared = []
    for request, answer in exchanges(wire_entries(WIRE / "java-5.5.0" / "pop.jsonl")):
        if request.peer != "broker" or request.code not in POPS | SENDS or answer is None:
            continue
        ours = asked(rig, request)
        theirs = answer.header.get("extFields") or {}
        assert isinstance(theirs, dict)
        if request.code == 200050 and ours.code == 210:
            continue  # theirs waited for a message that comes later here
        assert ours.code == answer.code, request
        if request.code in POPS:
            assert set(ours.fields) == set(theirs)
        compared.append(request.code)
    assert set(compared) == POPS | SENDS


def asked(rig: TimedRig, request: Entry) -> Command:
    """Ask what was asked then, of messages and at a time of our own."""
    (command,) = FrameParser().feed(request.frame)
    fields = dict(command.fields)
    now_ms = rig.clock.now_ms()
    if "bornTime" in fields:
        fields |= {"bornTime": str(now_ms), "pollTime": "0"}
    if "extraInfo" in fields:
        start, _, *rest = fields["extraInfo"].split(" ")
        fields["extraInfo"] = " ".join([start, str(now_ms), *rest])
    frame = command.with_fields(fields)
    assert encode_frame(frame)
    pending = rig.begin(frame)
    rig.settle()
    return pending.answer


def test_pops_that_apache_has_left_open_go_on(tmp_path: Path) -> None:
    root = unpacked(LABEL, tmp_path)
    disk, clock = SimulatedFiles(), VirtualClock(1_794_779_299_000)
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.name not in {"abort", "lock"}:
            disk.place(ROOT / path.relative_to(root), path.read_bytes())
    settings = {
        "mappedFileSizeCommitLog": "262144",
        "mappedFileSizeConsumeQueue": "1000",
        "maxHashSlotNum": "200",
        "maxIndexNum": "800",
    }
    rig = TimedRig(settings, {}, disk, clock)
    retry = "%RETRY%cg_pop_PopShort"
    before = len(rig.records(retry))
    revives = [len(rig.records("rmq_sys_REVIVE_LOG_DefaultCluster", one)) for one in range(8)]
    rig.wait(10)
    assert [len(rig.records("rmq_sys_REVIVE_LOG_DefaultCluster", one)) for one in range(8)] == (
        revives
    ), "its timers were all delivered"
    assert len(rig.records(retry)) == before, "everything in it was acknowledged"


def test_an_apache_broker_finds_our_records_where_it_looks() -> None:
    rig = TimedRig()
    rig.send(b"a")
    answer = rig.pop(invisibleTime=5000)
    assert len(decoded(answer.body)) == 1
    (stored,) = rig.records("rmq_sys_wheel_timer")
    properties = decode_properties(stored.properties)
    assert properties["REAL_TOPIC"] == "rmq_sys_REVIVE_LOG_DefaultCluster"
    assert properties["REAL_QID"] == answer.fields["reviveQid"]
    assert int(properties["TIMER_DELIVER_MS"]) == int(answer.fields["popTime"]) + 4000
    rig.wait(5)
    queue_id = int(answer.fields["reviveQid"])
    (record,) = rig.records("rmq_sys_REVIVE_LOG_DefaultCluster", queue_id)
    assert json.loads(record.body)["d"] == [0]
