"""Every command of Apache's `mqadmin`, of both releases, against a running `gantrymq server`.

Each has to print what it prints with Apache's own broker of its release, the recorded column heads
where there is a recording, and words that only come with success. What is not served here has to be
refused with our sentence, not with a time-out.
"""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from interop.conftest import had_here
from support import apache, gantry
from support.golden import WIRE
from support.mqadmin import mqadmin

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from support.mqadmin import MqAdmin

pytestmark = [
    pytest.mark.tool("java"),
    pytest.mark.tool("javac"),  # it compiles the program that runs the commands
    pytest.mark.tool("mvn"),
]

COMPARED: Final = "4.9.7"
"""The release whose output is compared with that of its own broker."""
SIDE_BY_SIDE: Final = 8
COMMIT_SECONDS_MAX: Final = 60
SETTINGS: Final = {"brokerName": "broker-a", "brokerClusterName": "DefaultCluster"}
OFFSET: Final = "org.apache.rocketmq.tools.command.offset"
UNIQUE: Final = "org.apache.rocketmq.tools.command.message.QueryMsgByUniqueKeySubCommand"
CONTROLLER: Final = "CODE: 3 .*there is no controller here"
LITE: Final = "CODE: 3 .*light topics are not supported here"
COLD: Final = "cold reads are not limited by group here"
OFF: Final = "access control is off"


NO_ROUTE: Final = "our sentence says more"
REFUSED: Final = "Apache's broker takes what breaks it, or fails with a NullPointerException"
SETS: Final = "each has its own settings, and ours has the system topics of 5.x"
NEVER_READ: Final = "as in 5.x, a group that was made and has never read can be sent to an offset"
THREADS: Final = "prints what the threads of the client do at the moment"
DIFFERENT: Final = {
    "topicRoute -t NoSuch": NO_ROUTE,
    "topicStatus -t NoSuch": NO_ROUTE,
    "topicRoute -t AdmTopic2": NO_ROUTE,
    "consumerConnection -g nobody": NO_ROUTE,
    "resetOffsetByTime -g nosuch -t AdmTopic -s now": NO_ROUTE,
    "resetOffsetByTime -g AdmGroup -t AdmTopic -s 2020-01-01#00:00:00:000": NEVER_READ,
    "skipAccumulatedMessage -g AdmGroup -t AdmTopic": NEVER_READ,
    "brokerConsumeStats -b {b}": NEVER_READ,
    "statsAll -a": "lists what was busy in the minute before",
    "topicList": SETS,
    "topicList -c": SETS,
    "getBrokerConfig -b {b}": SETS,
    "brokerStatus -b {b}": SETS,
    "getNamesrvConfig": SETS,
    "consumerStatus -g cg_live -i {client} -s": THREADS,
    "updateBrokerConfig -b {b} -k storePathRootDir -v /x": REFUSED,
    "updateBrokerConfig -b {b} -k waitTimeMillsInSendQueue -v no": REFUSED,
    "updateAclConfig -b {b} -a RocketMQ -s 1234567809123": REFUSED,
    "deleteAclConfig -b {b} -a RocketMQ": REFUSED,
    "clusterAclConfigVersion -b {b}": REFUSED,
    "updateGlobalWhiteAddr -b {b} -g 10.0.0.1": REFUSED,
    "getAclConfig -b {b}": REFUSED,
    "getColdDataFlowCtrInfo -b {b}": "the same fields in another order",
}
"""Commands whose output differs from that with Apache's broker, and why."""


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
    # It watches for ever; that it has come is seen by the next.
    Case("startMonitoring", ""),
    Case(f"{OFFSET}.GetConsumerStatusCommand -g cg_live -t AdmTopic", "probe-consumer +broker-a"),
)
CHANGE: Final = (
    Case("consumerConnection -g __MONITOR_CONSUMER", r"OFFSET_MOVED_EVENT +\*"),
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
    Case("exportPopRecord -b {b}", "Export broker records"),
    Case("getParentTopicInfo -p AdmTopic", "broker-a.*error"),
    Case("getLiteTopicInfo -p AdmTopic -l L1", "broker-a.*error"),
    Case("getLiteClientInfo -p AdmTopic -g AdmGroup -c id", "broker-a.*error"),
    Case("getLiteGroupInfo -p AdmTopic -g AdmGroup", "broker-a.*error"),
    Case("triggerLiteDispatch -p AdmTopic -g AdmGroup", "broker-a.*error"),
)
NOT_HERE: Final = (
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
)
"""Of 5.5.0: what is about parts that are not here, each refused with a sentence of ours."""

UNTRIED: Final = {
    "remappingStaticTopic": "it wants a static topic, and making one is refused",
    "exportMetadataInRocksDB": "it reads files of this machine, and asks nobody",
    "dumpCompactionLog": "it reads files of this machine, and asks nobody",
}
"""Commands of 5.5.0 that are not run, and why."""


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


class Run:
    """All commands of a release, one behind the other, against one server."""

    def __init__(self, tool: MqAdmin, values: dict[str, str], release: str) -> None:
        self._tool = tool
        self._values = values
        self._release = release
        self.said: dict[str, str] = {}
        """What each command printed, with names in place of what is this server's own."""
        self.wrong: list[str] = []

    def all(self) -> None:
        """Run everything in the order in which it builds on what is there."""
        tool, values = self._tool, self._values
        self._try(MAKE, 1)
        self._try(COME[:1], 1)
        sent = tool.one(COME[1].command)
        key, offset_id = re.findall(r"msgId=(\w+), offsetMsgId=(\w+)", sent)[0]
        self._try(COME[2:], 1)
        listed = tool.one("consumerConnection -g cg_live")
        (client,) = re.findall(r"^(\S+@probe-consumer\S*)", listed, re.MULTILINE)
        values |= {"uk": key, "id": offset_id, "client": client}
        wait_for_progress(tool)
        newest = ACCOUNTS if self._release.startswith("4.") else (*NEWER, *NOT_HERE)
        for cases, at_once in (
            (READ, SIDE_BY_SIDE), (CHANGE, SIDE_BY_SIDE), (THEN, SIDE_BY_SIDE), (LAST, 1),
            (newest, SIDE_BY_SIDE), (DELETE, 1),
        ):  # fmt: skip
            self._try(cases, at_once)

    def _try(self, cases: Sequence[Case], at_once: int) -> None:
        """Run commands, some of them side by side; note everything that is wrong."""
        for start in range(0, len(cases), at_once):
            some = cases[start : start + at_once]
            commands = [
                re.sub(r"\{(\w+)\}", lambda found: self._values[found[1]], case.command)
                for case in some
            ]
            for case, command, said in zip(some, commands, self._tool.run(*commands), strict=True):
                self._judge(case, command, said, is_alone=len(some) == 1)

    def _judge(self, case: Case, command: str, said: str, *, is_alone: bool) -> None:
        found = problems(case, said, self._values, self._release)
        has_failed = bool(found) or (self._release == COMPARED and "Exception" in said)
        if has_failed and not is_alone:
            # Two of the same kind at once are more than the tool was made for.
            said = self._tool.one(command)
            found = problems(case, said, self._values, self._release)
        self.wrong += found
        for name in ("uk", "id", "client", "b", "n", "w"):
            said = said.replace(self._values.get(name, "\0"), f"<{name}>")
        self.said[case.command] = said


def shape(said: str) -> set[str]:
    """Return what a command printed, without the numbers, moments and places of this run."""
    said = re.sub(r"^\s+(at |\.\.\. \d+ more).*", "", said, flags=re.MULTILINE)
    said = re.sub(r"N/A|\d+-\d+-\d+ \d+:\d+:\d+", "<moment>", said)
    said = re.sub(r"\b[0-9A-F]{16,}\b|<uk>", "<id>", said)
    said = re.sub(r"trackType=(NOT_CONSUME_YET|CONSUMED)", "trackType", said)
    # A 5.x broker stores these with every message; ours, as 4.9, adds them when it is read.
    said = re.sub(r"(, )?\b(MSG_REGION=\w+|WAIT=true|TRACE_ON=true)", "", said)
    said = said.replace("{, ", "{")
    said = re.sub(r"-?\d+(\.\d+)?(E-?\d+)?", "9", said)
    said = re.sub(r"9(, 9)+", "9", said)
    return {" ".join(line.split()) for line in said.splitlines() if line.strip()}


def wait_for_progress(tool: MqAdmin) -> None:
    """Wait until the consumer has committed: it does so 10 s after its start, not before."""
    deadline = time.monotonic() + COMMIT_SECONDS_MAX
    while "AdmTopic" not in tool.one("consumerProgress -g cg_live"):
        assert time.monotonic() < deadline, "the consumer does not commit"
        time.sleep(0.5)


def values_of(release: str, port: int, names: str, work: Path) -> dict[str, str]:
    """Return what stands for the names in commands."""
    work.mkdir()
    (work / "topics.json").write_text('[{"topicName":"ListT1","readQueueNums":2}]')
    (work / "groups.json").write_text('[{"groupName":"ListG1","retryMaxTimes":3}]')
    subject = "" if release.startswith("4.") else "-t AdmTopic"
    return {"b": f"127.0.0.1:{port}", "n": names, "w": str(work), "t": subject}


def run_here(release: str, work: Path) -> Run:
    """Run all commands against our server."""
    with (
        gantry.server(work / "server", SETTINGS) as server,
        mqadmin(release, work / "tool", server.name_server) as tool,
    ):
        values = values_of(release, server.port, server.name_server, work / "files")
        run = Run(tool, values, release)
        run.all()
    return run


def run_with_apache(release: str, work: Path) -> Run:
    """Run all commands against Apache's servers."""
    with (
        apache.name_server(release, work / "names") as names,
        apache.broker(
            release, work / "broker",
            {"storePathRootDir": str(work / "store"), "namesrvAddr": names.address},
        ) as broker,
        mqadmin(release, work / "tool", names.address) as tool,
    ):  # fmt: skip
        values = values_of(release, broker.port, names.address, work / "files")
        deadline = time.monotonic() + COMMIT_SECONDS_MAX
        while "broker-a" not in tool.one("clusterList"):
            assert time.monotonic() < deadline, "the broker does not register"
            time.sleep(0.2)
        run = Run(tool, values, release)
        run.all()
    return run


@pytest.mark.parametrize("release", apache.VERSIONS)
def test_every_command_prints_what_it_prints_with_apache(release: str, tmp_path: Path) -> None:
    had_here(release)
    with ThreadPoolExecutor(2) as threads:
        waiting = threads.submit(run_with_apache, release, tmp_path / "apache")
        ours = run_here(release, tmp_path)
        theirs = waiting.result()
    assert not ours.wrong, "\n\n".join(ours.wrong)
    assert theirs.said.keys() == ours.said.keys()
    refused = {case.command for case in NOT_HERE}
    compared = [command for command in theirs.said if command not in {*DIFFERENT, *refused}]
    assert len(compared) > 60
    differing = {
        command: {"ours": sorted(here - there), "apache": sorted(there - here)}
        for command in compared
        if (here := shape(ours.said[command])) != (there := shape(theirs.said[command]))
    }
    assert differing == {}, json.dumps(differing, indent=1)


@pytest.mark.parametrize("release", apache.VERSIONS)
def test_no_command_is_left_out(release: str, tmp_path: Path) -> None:
    had_here(release)
    with mqadmin(release, tmp_path / "tool", "127.0.0.1:1") as tool:
        listed = set(re.findall(r"^   (\w+) +\S", tool.one("+menu"), re.MULTILINE))
    cases = (*MAKE, *COME, *READ, *CHANGE, *THEN, *LAST, *DELETE, *ACCOUNTS, *NEWER, *NOT_HERE)
    assert len(listed) > 50
    assert listed - {case.command.split()[0] for case in cases} <= set(UNTRIED)
