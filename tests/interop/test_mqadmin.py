"""Every command of Apache's `mqadmin`, of both releases, against a running `gantrymq server`.

Each has to print what it prints with Apache's own broker: the recorded column heads where there is
a recording, and words that only come with success. What is not served here has to be refused with
our sentence, not with a time-out.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from support import gantry
from support.golden import WIRE
from support.mqadmin import mqadmin

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from support.mqadmin import MqAdmin

pytestmark = [
    pytest.mark.tool("java"),
    pytest.mark.tool("javac"),  # it compiles the program that runs the commands
    pytest.mark.tool("mvn"),
]

SIDE_BY_SIDE: Final = 8
COMMIT_SECONDS_MAX: Final = 60
SETTINGS: Final = {"brokerName": "broker-a", "brokerClusterName": "DefaultCluster"}
OFFSET: Final = "org.apache.rocketmq.tools.command.offset"
UNIQUE: Final = "org.apache.rocketmq.tools.command.message.QueryMsgByUniqueKeySubCommand"
CONTROLLER: Final = "CODE: 3 .*there is no controller here"
LITE: Final = "CODE: 3 .*light topics are not supported here"
COLD: Final = "cold reads are not limited by group here"
OFF: Final = "access control is off"


class Case(NamedTuple):
    """A command, what it has to print, and which recording has its column heads."""

    command: str
    wanted: str
    """A regular expression."""
    recorded: str | None = None


# Commands that build on others come behind them, in a later tuple, or run one by one.
MAKE: Final = (
    Case("updateTopic -c DefaultCluster -t AdmTopic -r 4 -w 4", "success", "updateTopic-cluster"),
    Case("updateTopic -b {b} -t AdmTopic2 -r 2 -w 2", "success", "updateTopic-broker"),
    Case("updateTopic -c DefaultCluster -t AdmOrder -r 4 -w 4 -o true", r"\[broker-a:4\]"),
    Case("updateSubGroup -c DefaultCluster -g AdmGroup -q 2 -r 5", "success.*retryMaxTimes=5"),
    Case("updateSubGroup -b {b} -g AdmGroup2", "success", "updateSubGroup"),
)
COME: Final = (
    Case("+producer pg_live", ""),
    Case("+send AdmTopic TagA k0 20", "SEND_OK"),
    Case("+consumer cg_live AdmTopic", ""),
    Case("consumeMessage -t AdmTopic -g cg_tool -c 3", "Consume ok", "consumeMessage"),
)
READ: Final = (
    Case("topicRoute -t AdmTopic", '"brokerName":"broker-a"', "topicRoute"),
    Case("topicRoute -t NoSuch", "CODE: 17"),
    Case("allocateMQ -t AdmTopic -i 10.0.0.1,10.0.0.2", '"10.0.0.2"', "allocateMQ"),
    Case("topicStatus -t AdmTopic", r"broker-a +3 +0 +5 ", "topicStatus"),
    Case("topicStatus -t NoSuch", "CODE: 17"),
    Case("topicClusterList -t AdmTopic", "DefaultCluster", "topicClusterList"),
    Case("topicList", "AdmTopic2", "topicList"),
    Case("topicList -c", "AdmTopic +cg_live", "topicList-c"),
    Case("getConsumerConfig -g AdmGroup", "retryQueueNums += +2"),
    Case("consumerConnection -g cg_live", "probe-consumer.*AdmTopic +\\*", "consumerConnection"),
    Case("consumerConnection -g nobody", "CODE: 17"),
    Case("consumerProgress", "cg_live +1 .*PUSH +CLUSTERING", "consumerProgress"),
    Case("consumerProgress -g cg_live", "AdmTopic +broker-a +3 +5 ", "consumerProgress-live"),
    Case("consumerProgress -g cg_live -s true", "192|127|[0-9]"),
    Case("consumerStatus -g cg_live", "probe-consumer.*Rebalance OK", "consumerStatus"),
    Case("consumerStatus -g cg_live -i {client} -s", "#ConsumerRunning|Consumer|AdmTopic"),
    Case("producerConnection -g pg_live -t AdmTopic", "probe-producer", "producerConnection"),
    Case("producer -b {b}", r"producer group \(pg_live\).*probe-producer"),
    Case("clusterList", "DefaultCluster +broker-a +0 +{b} +V", "clusterList"),
    Case("clusterList -m", "broker-a +0 +0 +2[0-9] ", "clusterList-m"),
    Case("brokerStatus -b {b}", "commitLogMaxOffset +: [1-9]", "brokerStatus"),
    Case("getBrokerConfig -b {b}", "brokerName += +broker-a", "getBrokerConfig"),
    Case("getNamesrvConfig", "listenPort", "getNamesrvConfig"),
    Case("queryMsgByKey -t AdmTopic -k k0", "#Message ID.*{uk}", "queryMsgByKey"),
    Case("queryMsgByOffset -t AdmTopic -b broker-a -i 0 -o 0", r"Keys: +\[k0\]"),
    Case("queryMsgById {t} -i {id}", r"OffsetID: +{id}.*Keys: +\[k0\]"),
    Case("queryMsgByUniqueKey -t AdmTopic -i {uk}", r"OffsetID: +{id}|Keys: +\[?k0"),
    # The menu's object serves once; this is another one of the same command.
    Case(f"{UNIQUE} -t AdmTopic -i {{uk}} -g cg_live -d {{client}}", "CR_SUCCESS"),
    Case("printMsg -t AdmTopic -d true", "MSGID: {uk}"),
    Case("printMsgByQueue -t AdmTopic -a broker-a -i 0 -p true -d true", "MSGID: "),
    Case("queryCq -b {b} -t AdmTopic -q 0 -i 0 -c 3", "physicSize=.*tagsCode=2598919", "queryCq"),
    Case("queryCq -b {b} -t AdmTopic -q 99 -i 0 -c 3", "99@AdmTopic is not exist!"),
    Case("statsAll -t AdmTopic", "AdmTopic +cg_live", "statsAll"),
    Case("statsAll -a", "#Topic +#Consumer Group"),
    Case("exportMetadata -c DefaultCluster -f {w}/1", "metadata.json success", "exportMetadata"),
    Case("exportConfigs -c DefaultCluster -f {w}/2", "configs.json success", "exportConfigs"),
    Case("exportMetrics -c DefaultCluster -f {w}/3", "metrics.json success"),
    Case("queryMsgTraceById -i {uk}", "RMQ_SYS_TRACE_TOPIC"),
    Case(f"{OFFSET}.GetConsumerStatusCommand -g cg_live -t AdmTopic", "probe-consumer +broker-a"),
)
CHANGE: Final = (
    Case("updateTopicPerm -c DefaultCluster -t AdmTopic2 -p 4", "from 6 to 4", "updateTopicPerm"),
    Case("updateOrderConf -t AdmOrder -m put -v broker-a:4", "success", "updateOrderConf"),
    Case("sendMsgStatus -b broker-a -c 2", "SEND_OK"),
    Case("checkMsgSendRT -t AdmTopic -a 2 -s 10", "broker-a +0 +true", "checkMsgSendRT"),
    Case("sendMessage -t AdmTopic -p hello -k kk -c TagX", "SEND_OK", "sendMessage"),
    Case("updateBrokerConfig -b {b} -k fileReservedTime -v 48", "success", "updateBrokerConfig"),
    Case("updateKvConfig -s ns -k key -v value", "success", "updateKvConfig"),
    Case("clusterRT -a 1 -s 10 -c DefaultCluster -i 60", r"broker-a +\S+ +1 +0 "),
    Case("cleanExpiredCQ -b {b}", "success", "cleanExpiredCQ"),
    Case("cleanUnusedTopic -b {b}", "success", "cleanUnusedTopic"),
    Case("deleteExpiredCommitLog -b {b}", "success", "deleteExpiredCommitLog"),
    Case("updateNamesrvConfig -k enableTopicList -v true", "success", "updateNamesrvConfig"),
    Case("resetOffsetByTime -g AdmGroup -t AdmTopic -s 2020-01-01#00:00:00:000", "broker-a +3 +0"),
)
THEN: Final = (
    Case("updateOrderConf -t AdmOrder -m get", r"orderConf=\[broker-a:4\]"),
    Case("updateBrokerConfig -b {b} -k storePathRootDir -v /x", "CODE: 16 .*storePathRootDir"),
    Case("getBrokerConfig -b {b}", "fileReservedTime += +48"),
    Case("deleteKvConfig -s ns -k key", "success", "deleteKvConfig"),
    Case("resetOffsetByTime -g cg_live -t AdmTopic -s now", "broker-a +3 +[5-9]"),
    Case("skipAccumulatedMessage -g AdmGroup -t AdmTopic", "broker-a +3 +[5-9]"),
    Case("queryMsgByKey -t AdmTopic -k kk", "#Message ID"),
)
LAST: Final = (
    Case("updateOrderConf -t AdmOrder -m delete", "success"),
    Case("updateBrokerConfig -b {b} -k waitTimeMillsInSendQueue -v no", "CODE: 29 .*whole number"),
    Case("resetOffsetByTime -g nosuch -t AdmTopic -s now", "CODE: 26"),
    Case("wipeWritePerm -b broker-a -n {n}", r"OK, \d+", "wipeWritePerm"),
    Case("addWritePerm -b broker-a -n {n}", r"OK, \d+", "addWritePerm"),
    Case("brokerConsumeStats -b {b}", r"AdmTopic +cg_live +broker-a +\d ", "brokerConsumeStats"),
    Case("cloneGroupOffset -s cg_live -d AdmGroup2 -t AdmTopic", "success", "cloneGroupOffset"),
    Case(
        f"{OFFSET}.ResetOffsetByTimeOldCommand -g cg_live -t AdmTopic -s 2020-01-01#00:00:00:000",
        "broker-a",
    ),
)
DELETE: Final = (
    Case("deleteSubGroup -c DefaultCluster -g AdmGroup", "success", "deleteSubGroup"),
    Case("deleteTopic -c DefaultCluster -t AdmTopic2", "success", "deleteTopic"),
    Case("deleteTopic -c DefaultCluster -t TBW102", "CODE: 29"),
    Case("topicRoute -t AdmTopic2", "CODE: 17"),
)
ACCOUNTS: Final = (
    Case("updateAclConfig -b {b} -a RocketMQ -s 1234567809123", f"CODE: 209 .*{OFF}"),
    Case("deleteAclConfig -b {b} -a RocketMQ", f"CODE: 210 .*{OFF}"),
    Case("clusterAclConfigVersion -b {b}", "success"),
    Case("updateGlobalWhiteAddr -b {b} -g 10.0.0.1", f"CODE: 211 .*{OFF}"),
    Case("getAclConfig -b {b}", r"globalWhiteRemoteAddresses: \[\]"),
)
NEWER: Final = (
    Case("updateTopicList -c DefaultCluster -f {w}/topics.json", "success"),
    Case("updateSubGroupList -c DefaultCluster -f {w}/groups.json", "success"),
    Case("setConsumeMode -c DefaultCluster -t AdmTopic -g AdmGroup -m POP -q 2", "success"),
    Case("resetOffsetByTime -g AdmGroup -t AdmTopic -s now -b {b} -q 1", r"offset to \d"),
    Case("resetOffsetByTime -g AdmGroup -t AdmTopic -s now -c DefaultCluster", "broker-a +3 "),
    Case("haStatus -b {b}", "#MasterAddr.*#SlaveNum"),
    Case("getColdDataFlowCtrInfo -b {b}", "globalAcc|coldAcc|Table"),
    Case("updateColdDataFlowCtrGroupConfig -b {b} -g AdmGroup -v 1024", COLD),
    Case("removeColdDataFlowCtrGroupConfig -b {b} -g AdmGroup", COLD),
    Case("setCommitLogReadAheadMode -b {b} -m 0", "the machine decides"),
    Case("getBrokerEpoch -b broker-a", CONTROLLER),
    Case("getSyncStateSet -a {b} -b broker-a", CONTROLLER),
    Case("getControllerMetaData -a {b}", CONTROLLER),
    Case("getControllerConfig -a {b}", CONTROLLER),
    Case("updateControllerConfig -a {b} -k a -v b", CONTROLLER),
    Case("electMaster -a {b} -b 1 -bn broker-a -c DefaultCluster", CONTROLLER),
    Case("cleanBrokerMetadata -a {b} -b 1 -bn broker-a -c DefaultCluster", CONTROLLER),
    Case("checkRocksdbCqWriteProgress -c DefaultCluster -n {n} -t AdmTopic", "no RocksDB here"),
    Case("switchTimerEngine -b {b} -e F", "nothing to switch to"),
    Case("exportPopRecord -b {b}", "Export broker records"),
    Case("resetMasterFlushOffset -b {b} -o 0", "nothing has to be reset"),
    Case("addBroker -c {b} -b /none", "no broker container"),
    Case("removeBroker -c {b} -b DefaultCluster:broker-a:0", "no broker container"),
    Case("rocksDBConfigToJson -b {b} -t topics", "no RocksDB here|CODE: 3"),
    Case("updateStaticTopic -t StaticT -qn 4 -c DefaultCluster", "static topics are not supported"),
    *(
        Case(f"{command} -b {{b}} {more}", f"CODE: 16 .*{OFF}")
        for command, more in (
            ("createUser", "-u u1 -p p1"),
            ("updateUser", "-u u1 -p p2"),
            ("getUser", "-u u1"),
            ("listUser", ""),
            ("deleteUser", "-u u1"),
            ("createAcl", "-s User:u1 -r Topic:* -a Pub -d Allow"),
            ("updateAcl", "-s User:u1 -r Topic:* -a Pub -d Allow"),
            ("getAcl", "-s User:u1"),
            ("listAcl", ""),
            ("deleteAcl", "-s User:u1"),
        )
    ),
    Case("copyUser -f {b} -t {b} -u u1", OFF),
    Case("copyAcl -f {b} -t {b} -s User:u1", OFF),
    Case("getBrokerLiteInfo -b {b}", LITE),
    Case("getParentTopicInfo -p AdmTopic", "broker-a.*error"),
    Case("getLiteTopicInfo -p AdmTopic -l L1", "broker-a.*error"),
    Case("getLiteClientInfo -p AdmTopic -g AdmGroup -c id", "broker-a.*error"),
    Case("getLiteGroupInfo -p AdmTopic -g AdmGroup", "broker-a.*error"),
    Case("triggerLiteDispatch -p AdmTopic -g AdmGroup", "broker-a.*error"),
)


def heads(text: str) -> list[list[str]]:
    """Return the column heads of what a command printed."""
    lines = [line for line in text.splitlines() if line.startswith("#")]
    return [re.findall(r"#[^#]*[^#\s]", line) for line in lines]


def problems(case: Case, said: str, values: dict[str, str], release: str) -> list[str]:
    """Return what is wrong with what a command printed."""
    known = {name: re.escape(value) for name, value in values.items()}
    wanted = re.sub(r"\{(b|n|id|uk|w|client)\}", lambda found: known[found[1]], case.wanted)
    found: list[str] = []
    if not re.search(wanted, said, re.DOTALL):
        found.append(f"no {wanted!r}")
    recording = WIRE / f"mqadmin-{release}" / f"{case.recorded}.stdout.txt"
    if case.recorded is not None and recording.exists():
        asked = heads(recording.read_text(encoding="utf-8"))
        missing = [head for head in asked if head not in heads(said)]
        found += [f"no columns {head}" for head in missing]
    return [f"{case.command}: {what} in\n{said[:2000]}" for what in found]


def try_all(
    tool: MqAdmin, cases: Iterable[Case], values: dict[str, str], release: str, at_once: int
) -> list[str]:
    """Run commands, some of them side by side; return everything that is wrong."""
    wrong: list[str] = []
    listed = list(cases)
    for start in range(0, len(listed), at_once):
        some = listed[start : start + at_once]
        commands = [
            re.sub(r"\{(\w+)\}", lambda found: values[found[1]], case.command) for case in some
        ]
        for case, command, said in zip(some, commands, tool.run(*commands), strict=True):
            found = problems(case, said, values, release)
            if found and len(some) > 1:
                # Two of the same kind at once are more than the tool was made for.
                found = problems(case, tool.one(command), values, release)
            wrong += found
    return wrong


def wait_for_progress(tool: MqAdmin) -> None:
    """Wait until the consumer has committed: it does so 10 s after its start, not before."""
    deadline = time.monotonic() + COMMIT_SECONDS_MAX
    while "AdmTopic" not in tool.one("consumerProgress -g cg_live"):
        assert time.monotonic() < deadline, "the consumer does not commit"
        time.sleep(0.5)


def test_every_command(apache_version: str, tmp_path: Path) -> None:
    release, work = apache_version, tmp_path / "files"
    work.mkdir()
    (work / "topics.json").write_text('[{"topicName":"ListT1","readQueueNums":2}]')
    (work / "groups.json").write_text('[{"groupName":"ListG1","retryMaxTimes":3}]')
    with (
        gantry.server(tmp_path / "server", SETTINGS) as server,
        mqadmin(release, tmp_path / "tool", server.name_server) as tool,
    ):
        values = {
            "b": f"127.0.0.1:{server.port}",
            "n": server.name_server,
            "w": str(work),
            "t": "" if release.startswith("4.") else "-t AdmTopic",
        }
        wrong = try_all(tool, MAKE, values, release, 1)
        wrong += try_all(tool, COME[:1], values, release, 1)
        sent = tool.one(COME[1].command)
        key, offset_id = re.findall(r"msgId=(\w+), offsetMsgId=(\w+)", sent)[0]
        wrong += try_all(tool, COME[2:], values, release, 1)
        listed = tool.one("consumerConnection -g cg_live")
        (client,) = re.findall(r"^(\S+@probe-consumer\S*)", listed, re.MULTILINE)
        values |= {"uk": key, "id": offset_id, "client": client}
        wait_for_progress(tool)
        wrong += try_all(tool, READ, values, release, SIDE_BY_SIDE)
        wrong += try_all(tool, CHANGE, values, release, SIDE_BY_SIDE)
        wrong += try_all(tool, THEN, values, release, SIDE_BY_SIDE)
        wrong += try_all(tool, LAST, values, release, 1)
        if release.startswith("4."):
            wrong += try_all(tool, ACCOUNTS, values, release, SIDE_BY_SIDE)
        else:
            wrong += try_all(tool, NEWER, values, release, SIDE_BY_SIDE)
        wrong += try_all(tool, DELETE, values, release, 1)
        assert not wrong, "\n\n".join(wrong)
