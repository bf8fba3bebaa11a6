"""`gantrymq admin` and Apache's mqadmin, asked the same of the same cluster, field by field.

The cluster is ours once and Apache's once, of either release, with the tool of its release. Where
mqadmin prints a table, ours has its heads and, in the columns that do not change between two looks,
its values; where it prints a sentence, the same.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from gantrymq.cli.main import main
from gantrymq.wire import fastjson
from support import apache, gantry, tools
from support.mqadmin import mqadmin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.mqadmin import MqAdmin

pytestmark = [
    pytest.mark.tool("java"),
    pytest.mark.tool("javac"),
    pytest.mark.tool("mvn"),
]

WORLDS: Final = (("gantrymq", "4.9.7"), ("4.9.7", "4.9.7"), ("5.5.0", "5.5.0"))
"""Whose broker, and the release of the tool."""
COMMIT_SECONDS_MAX: Final = 40
NAMES: Final = {"brokerName": "broker-a", "brokerClusterName": "DefaultCluster"}


class World(NamedTuple):
    """A cluster with somebody online, and both tools."""

    release: str
    """Of the tool."""
    name_server: str
    broker: str
    tool: MqAdmin
    ours: Callable[..., str]
    unique_key: str
    offset_id: str

    def both(self, command: str) -> tuple[str, str]:
        """Return what each tool says to the same command."""
        given = "" if self.release == "4.9.7" else "-t AdmTopic"
        filled = command.format(b=self.broker, uk=self.unique_key, id=self.offset_id, t=given)
        return self.tool.one(filled), self.ours(filled)


@contextmanager
def cluster(kind: str, work: Path) -> Iterator[tuple[str, str]]:
    """Run a name server and a broker; give their addresses."""
    with ExitStack() as stack:
        if kind == "gantrymq":
            server = stack.enter_context(gantry.server(work / "server", NAMES))
            yield server.name_server, f"127.0.0.1:{server.port}"
            return
        try:
            apache.fetch(kind)
        except apache.NotFetched as error:
            if tools.required():
                pytest.fail(f"{error}; with CI=true no test may be left out", pytrace=False)
            pytest.skip(str(error))
        names = stack.enter_context(apache.name_server(kind, work / "namesrv"))
        settings = {"namesrvAddr": names.address, "storePathRootDir": str(work / "store"),
                    "mappedFileSizeCommitLog": str(16 << 20), "maxHashSlotNum": "10000",
                    "maxIndexNum": "40000"}  # fmt: skip
        broker = stack.enter_context(apache.broker(kind, work / "broker", settings))
        yield names.address, broker.address


@pytest.fixture(scope="module", params=WORLDS, ids=lambda pair: f"{pair[0]}-by-{pair[1]}")
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    work = tmp_path_factory.mktemp("cluster")
    kind, release = request.param
    with (
        cluster(kind, work) as (name_server, broker),
        mqadmin(release, work / "tool", name_server) as tool,
    ):
        ours = asker(name_server)
        wait_until("the name server knows the broker", lambda: broker in ours("clusterList"))
        assert "success" in ours(f"updateTopic -b {broker} -t AdmTopic -r 4 -w 4")
        assert "success" in ours(f"updateSubGroup -b {broker} -g AdmGroup -r 5")
        wait_until("the route is there", lambda: "broker-a" in ours("topicRoute -t AdmTopic"))
        tool.one("+producer pg_live")
        sent = tool.one("+send AdmTopic TagA k0 20")
        key, offset_id = re.findall(r"msgId=(\w+), offsetMsgId=(\w+)", sent)[0]
        tool.one("+consumer cg_live AdmTopic")
        wait_until(
            "the consumer has committed",
            lambda: (
                "Diff Total: 0" in ours("consumerProgress -g cg_live")
                and ours("consumerProgress -g cg_live").count("AdmTopic") == 4
            ),
        )
        yield World(release, name_server, broker, tool, ours, key, offset_id)


def asker(name_server: str) -> Callable[..., str]:
    """Return what runs our command and gives back all that it said."""

    def ask(command: str, *, status: int = 0) -> str:
        text, ended = run(["admin", *command.split(), "-n", name_server])
        assert ended == status, (command, text)
        return text

    return ask


def run(words: list[str]) -> tuple[str, int]:
    """Run our command in this process; return what it printed and its status."""
    said = io.StringIO()
    said.fileno = lambda: 1  # type: ignore[method-assign]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = main(words)
    return said.getvalue(), status


def wait_until(what: str, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + COMMIT_SECONDS_MAX
    while True:
        try:
            if is_so():
                return
        except AssertionError:
            pass
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.3)


def table(text: str, heads: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the rows of what a tool printed, of the columns with these heads, sorted."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    begin = next(at for at, line in enumerate(lines) if line.startswith("#"))
    known = re.findall(r"#[^#]*[^#\s]", lines[begin])
    assert set(heads) <= set(known), (heads, known)
    columns = [known.index(head) for head in heads]
    found = []
    for line in lines[begin + 1 :]:
        cells = re.split(r"\s{2,}", line)
        if len(cells) <= max(columns):
            break
        # 5.5.0 leaves one blank behind an offset, where a column of its own begins.
        found.append(
            tuple(
                cells[at].split()[0] if head == "#Offset" else cells[at]
                for head, at in zip(heads, columns, strict=True)
            )
        )
    return sorted(found)


TABLES: Final = (
    ("topicStatus -t AdmTopic",
     "#Broker Name, #QID, #Min Offset, #Max Offset, #Last Updated"),
    ("consumerProgress -g cg_live",
     "#Topic, #Broker Name, #QID, #Broker Offset, #Consumer Offset, #Diff, #LastTime"),
    ("consumerConnection -g cg_live", "#ClientId, #ClientAddr, #Language, #Version"),
    ("clusterList", "#Cluster Name, #Broker Name, #BID, #Addr, #Version"),
    ("clusterList -m", "#Cluster Name, #Broker Name, #InTotalYest, #OutTotalYest, #InTotalToday"),
    ("brokerConsumeStats -b {b}",
     "#Topic, #Group, #Broker Name, #QID, #Broker Offset, #Consumer Offset, #Diff, #LastTime"),
    ("queryMsgByKey -t AdmTopic -k k0", "#Message ID, #QID, #Offset"),
    ("statsAll -t AdmTopic", "#Topic, #Consumer Group, #Accumulation"),
)  # fmt: skip


@pytest.mark.parametrize(("command", "heads"), TABLES, ids=lambda value: str(value)[:30])
def test_tables_have_the_same_heads_and_values(world: World, command: str, heads: str) -> None:
    columns = tuple(heads.split(", "))
    theirs, ours = world.both(command)
    wanted = table(theirs, columns)
    assert wanted, theirs
    # mqadmin leaves queues out of this table of which nobody has taken anything yet.
    is_known = command.startswith("consumerProgress")
    assert [row for row in table(ours, columns) if is_known or "N/A" not in row] == wanted


def test_lists_have_the_same_entries(world: World) -> None:
    theirs, ours = world.both("topicList")
    assert set(ours.split()) == set(theirs.split()) >= {"AdmTopic", "%RETRY%cg_live"}
    theirs, ours = world.both("topicClusterList -t AdmTopic")
    assert ours.split() == theirs.split() == ["DefaultCluster"]
    theirs, ours = world.both("topicList -c")
    wanted = {tuple(line.split()) for line in theirs.splitlines() if "AdmTopic" in line}
    assert wanted == {("DefaultCluster", "AdmTopic", "cg_live")}
    assert wanted == {tuple(line.split()) for line in ours.splitlines() if "AdmTopic" in line}
    theirs, ours = world.both("consumerProgress")
    pattern = r"^cg_live +(\d+) +(\S+) +(\S+) +(\S+) +\d+ +(-?\d+) *$"
    wanted = set(re.findall(pattern, theirs, re.MULTILINE))
    assert wanted, theirs
    assert set(re.findall(pattern, ours, re.MULTILINE)) == wanted


def test_json_is_the_same_value(world: World) -> None:
    theirs, ours = world.both("topicRoute -t AdmTopic")
    assert parsed(ours) == parsed(theirs)
    theirs, ours = world.both("allocateMQ -t AdmTopic -i 10.0.0.1,10.0.0.2")
    # Which member is the first is left to a hash table there.
    shares = [sorted(map(str, parsed(each)["result"].values())) for each in (ours, theirs)]
    assert shares[0] == shares[1]
    assert set(parsed(ours)["result"]) == set(parsed(theirs)["result"]) == {"10.0.0.1", "10.0.0.2"}


def parsed(text: str) -> Any:  # noqa: ANN401  (what a tool prints)
    """Read JSON as Apache prints it, and leave out what says nothing."""
    tree = fastjson.parse(text.strip().encode())
    assert isinstance(tree, dict)
    for queues in tree.get("queueDatas", ()):
        queues.pop("topicSynFlag", None)
    for broker in tree.get("brokerDatas", ()):
        broker.pop("enableActingMaster", None)
        broker["brokerAddrs"] = {str(k): v for k, v in broker["brokerAddrs"].items()}
    return tree


def settings_in(text: str) -> dict[str, str]:
    """Read lines of `name = value` or `name : value`."""
    pairs = (re.match(r"(\S+?)\s*(?:=  ?|: )(.*)$", line) for line in text.splitlines())
    return {found[1]: found[2].strip() for found in pairs if found and found[1][0] != "="}


def test_settings_are_the_same(world: World) -> None:
    for command in ("getBrokerConfig -b {b}", "getNamesrvConfig", "getConsumerConfig -g AdmGroup"):
        theirs, ours = map(settings_in, world.both(command))
        shared = set(theirs) & set(ours)
        # The settings of a group that only 5.x has are shown beside those of 4.9.
        assert set(theirs) <= set(ours) | {"subscriptionGroupConfig"}, command
        assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}
        assert len(shared) > 5


def test_figures_have_the_same_names(world: World) -> None:
    theirs, ours = map(settings_in, world.both("brokerStatus -b {b}"))
    moving = re.compile(
        "(?i)tps|time|runtime|behind|capacity|times|total|size|distribute|ratio|max"
    )
    assert set(ours) == set(theirs)
    fixed = {name for name in theirs if not moving.search(name)}
    assert {name: ours[name] for name in fixed} == {name: theirs[name] for name in fixed}
    assert "brokerVersionDesc" in fixed


MESSAGES: Final = (
    "queryMsgById {t} -i {id}",
    "queryMsgByUniqueKey -t AdmTopic -i {uk}",
    "queryMsgByOffset -t AdmTopic -b broker-a -i 0 -o 0",
)


@pytest.mark.parametrize("command", MESSAGES, ids=lambda command: str(command).partition(" ")[0])
def test_a_message_has_the_same_fields(world: World, command: str) -> None:
    theirs, ours = world.both(command)
    wanted = fields_of(theirs)
    wanted.pop("Message Body Path")
    found = fields_of(ours)
    assert len(wanted) >= 13
    assert found.pop("Message Body").startswith("body ")
    # mqadmin pulls the message at an offset, and a consumer's properties show in it.
    properties = set(wanted.pop("Properties").strip("{}").split(", "))
    assert properties - set(found.pop("Properties").strip("{}").split(", ")) <= {
        each for each in properties if each.startswith(("MIN_OFFSET", "MAX_OFFSET"))
    }
    assert {name: found[name] for name in wanted} == wanted
    assert re.search(r"cg_live +CONSUMED", ours)
    assert "consumerGroup=cg_live, trackType=CONSUMED" in theirs


def fields_of(text: str) -> dict[str, str]:
    found = re.findall(r"^([A-Z][A-Za-z ]+): +(.*)$", text, re.MULTILINE)
    return {name: value.strip() for name, value in found}


def test_members_and_producers_are_the_same(world: World) -> None:
    theirs, ours = world.both("consumerConnection -g cg_live")
    for line in ("ConsumeType: CONSUME_PASSIVELY", "MessageModel: CLUSTERING",
                 "ConsumeFromWhere: CONSUME_FROM_FIRST_OFFSET"):  # fmt: skip
        assert line in ours
        assert line in theirs
    taken = {tuple(line.split()) for line in theirs.splitlines() if line.endswith("*")}
    assert taken == {tuple(line.split()) for line in ours.splitlines() if line.endswith("*")}
    theirs, ours = world.both("producerConnection -g pg_live -t AdmTopic")
    wanted = theirs.split()[1:]
    assert "probe-producer" in theirs
    assert ours.split()[-len(wanted) :] == wanted
    theirs, ours = world.both("consumerStatus -g cg_live")
    for line in ("Same subscription in the same group of consumer", "Rebalance OK"):
        assert line in ours
        assert line in theirs


def test_a_queue_has_the_same_units(world: World) -> None:
    theirs, ours = world.both("queryCq -b {b} -t AdmTopic -q 0 -i 0 -c 3")
    wanted = re.findall(r"physicOffset=(\d+), physicSize=(\d+), tagsCode=(-?\d+)", theirs)
    assert len(wanted) == 3
    assert re.findall(r"^\d+ +(\d+) +(\d+) +(-?\d+)", ours, re.MULTILINE) == wanted


def test_a_group_that_has_never_committed_is_nowhere(world: World) -> None:
    # Brokers say 0 of it; whoever believes them sends it to the beginning when a reset is undone.
    for group, known in (("AdmGroup", False), ("cg_live", True)):
        words = ["group", "reset", group, "AdmTopic", "--to", "latest", "--json"]
        text, status = run([*words, "-n", world.name_server])
        assert status == 0, text
        plan = json.loads(text)["plan"]
        assert len(plan) == 4
        # Of a queue without a message a group may be nowhere all its life.
        assert {each["isAt"] is not None for each in plan if each["next"]} == {known}


SENTENCES: Final = (
    "updateTopic -b {b} -t AdmTopic2 -r 3 -w 2 -p 6",
    "updateTopicPerm -b {b} -t AdmTopic2 -p 4",
    "updateKvConfig -s ns1 -k k1 -v v1",
    "deleteKvConfig -s ns1 -k k1",
    "updateOrderConf -t AdmOrder -m put -v broker-a:4",
    "updateOrderConf -t AdmOrder -m get",
    "updateBrokerConfig -b {b} -k fileReservedTime -v 48",
    "cleanExpiredCQ -b {b}",
    "cleanUnusedTopic -b {b}",
    "wipeWritePerm -b broker-a",
    "addWritePerm -b broker-a",
    "cloneGroupOffset -s cg_live -d AdmGroup -t AdmTopic",
    "deleteSubGroup -b {b} -g AdmGroup",
    "deleteTopic -c DefaultCluster -t AdmTopic2",
)


def words_of(sentence: str) -> str:
    """Return what a tool said without blanks, counts, and the attributes that 4.9 has not."""
    return re.sub(r"\s+|OK, \d+|, attributes=\{\}", "", sentence)


def test_changes_say_the_same(world: World) -> None:
    wrong = []
    for command in SENTENCES:
        ours = world.ours(command.format(b=world.broker))
        if command.startswith("updateTopicPerm"):  # the second time there is nothing to change
            wait_until("it is 4", lambda: '"perm": 4' in world.ours("topicRoute -t AdmTopic2"))
            world.ours(f"updateTopicPerm -b {world.broker} -t AdmTopic2 -p 6")
        if command.startswith("deleteSubGroup"):
            world.ours(f"updateSubGroup -b {world.broker} -g AdmGroup")
        if command.startswith("deleteKvConfig"):
            world.ours("updateKvConfig -s ns1 -k k1 -v v1")
        if command.startswith("updateTopic -b"):
            wait_until("there is a route", lambda: bool(world.ours("topicRoute -t AdmTopic2")))
        if command.startswith("updateTopicPerm"):
            wait_until(
                "it is 6 again", lambda: '"perm": 6' in world.ours("topicRoute -t AdmTopic2")
            )
        theirs = world.tool.one(command.format(b=world.broker))
        if words_of(ours) != words_of(theirs):
            wrong.append((command, theirs, ours))
    assert not wrong


def test_reset_moves_as_mqadmin_does(world: World) -> None:
    command = "resetOffsetByTime -g cg_live -t AdmTopic -s 0"
    theirs, ours = world.both(command)
    heads = ("#brokerName", "#queueId", "#offset")
    assert table(ours, heads) == table(theirs, heads)
    assert {row[2] for row in table(ours, heads)} == {"0"}


def test_an_error_is_no_empty_list(world: World) -> None:
    for command, wanted in {
        "topicStatus -t NoSuch": "TOPIC_NOT_EXIST (17)",
        "consumerConnection -g nobody": "TOPIC_NOT_EXIST (17)",
        "queryMsgByKey -t AdmTopic -k nosuch": "no message with that key",
        "brokerStatus -b 127.0.0.1:1": "cannot connect",
        "deleteTopic -c Nowhere -t AdmTopic": "there is no cluster 'Nowhere'",
    }.items():
        said = world.ours(command, status=1)
        assert wanted in said, command
        told = json.loads(world.ours(f"{command} --json", status=1).splitlines()[0])
        assert wanted.partition(" ")[2] in told["error"]["text"]


def test_system_names_are_untouchable(world: World) -> None:
    for command in ("deleteTopic -c DefaultCluster -t TBW102",
                    "deleteTopic -c DefaultCluster -t DefaultCluster",
                    "updateTopic -c DefaultCluster -t SCHEDULE_TOPIC_XXXX",
                    "deleteSubGroup -c DefaultCluster -g CID_RMQ_SYS_TRANS"):  # fmt: skip
        assert "is a system" in world.ours(command, status=2)
