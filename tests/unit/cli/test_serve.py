"""`gantrymq server`, `namesrv` and `broker` as an operator runs them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from gantrymq.cli import main as cli
from gantrymq.cli.shards import shard_properties
from gantrymq.node.config import read_broker_config, read_file
from gantrymq.wire.bodies.route import TOPIC_ROUTE
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.namesrv import GetRouteInfoRequest
from gantrymq.wire.headers.send import SendMessageV2Request
from support.ports import free_port
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[3]
READY_S_MAX = 60
SMALL = (
    "mappedFileSizeCommitLog=1048576\nmaxHashSlotNum=1000\nmaxIndexNum=4000\nbrokerIP1=127.0.0.1\n"
    "waitTimeMillsInSendQueue=10000\n"
)
SEND = SendMessageV2Request(
    producer_group="g", topic="T", default_topic="TBW102", default_topic_queue_nums=1, queue_id=0,
    sys_flag=0, born_timestamp=0, flag=0, properties="",
)  # fmt: skip


def apaches(broker: str, number: int, role: str) -> str:
    """Return one of the files that come with Apache RocketMQ, as it stands there."""
    return (
        f"# Licensed to somebody\nbrokerClusterName=DefaultCluster\nbrokerName=broker-{broker}\n"
        f"brokerId={number}\ndeleteWhen=04\nfileReservedTime=48\nbrokerRole={role}\n"
        "flushDiskType=ASYNC_FLUSH\n"
    )


APACHES = {
    "broker.conf": apaches("a", 0, "ASYNC_MASTER").replace("=", " = "),
    **{
        f"2m-2s-{kind}/broker-{broker}{suffix}.properties": apaches(
            broker, number, "SLAVE" if number else f"{kind.upper()}_MASTER"
        )
        for kind in ("async", "sync")
        for broker in "ab"
        for number, suffix in enumerate(("", "-s"))
    },
    **{
        f"2m-noslave/broker-{broker}.properties": apaches(broker, 0, "ASYNC_MASTER")
        for broker in ("a", "b", "trace")
    },
}


class Process:
    """A command that runs until it is ended."""

    def __init__(self, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        environment.pop("NAMESRV_ADDR", None)
        self.begun = time.monotonic()
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "gantrymq", *arguments],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def first_line(self) -> str:
        """Return what it says first; that it is ready, if all is well."""
        assert self.popen.stdout is not None
        return self.popen.stdout.readline()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """End it; return exit status, and the rest of what it said."""
        if self.popen.poll() is None:
            self.popen.send_signal(number)
        out, err = self.popen.communicate(timeout=READY_S_MAX)
        return self.popen.returncode, out, err


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    """Return a list; whatever is in it at the end is killed."""
    begun: list[Process] = []
    yield begun
    for process in begun:
        if process.popen.poll() is None:
            process.popen.kill()
        process.popen.communicate()


def server(processes: list[Process], folder: Path, *more: str) -> Process:
    config = folder / "small.conf"
    config.write_text(SMALL, encoding="utf-8")
    process = Process(
        "server", "--data", str(folder / "data"), "--namesrv-port", "0", "--port", "0",
        "--bind", "127.0.0.1", "-c", str(config), *more,
    )  # fmt: skip
    processes.append(process)
    return process


def broker_port(line: str) -> int:
    return int(line.split("broker ")[1].split(",", maxsplit=1)[0].rpartition(":")[2])


def test_a_server_is_ready_soon_and_stops_when_told(
    processes: list[Process], tmp_path: Path
) -> None:
    process = server(processes, tmp_path)
    line = process.first_line()
    seconds = time.monotonic() - process.begun
    assert "is ready" in line, process.end()
    assert seconds < READY_S_MAX / 2, "the aim is one second; test machines are busy"
    with RemotingClient("127.0.0.1", broker_port(line)) as client:
        assert client.max_offset("T", 0) == 0
    more = [process.first_line() for _ in range(4)]
    assert more[0] == "try it:\n"
    tried = "".join(more[1:]).replace("gantrymq", f"{sys.executable} -m gantrymq")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", tried], env=environment, capture_output=True, text=True,
        timeout=READY_S_MAX, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout, "what was sent is found"
    status, _out, err = process.end()
    assert (status, err) == (0, "")
    assert not (tmp_path / "data" / "store" / "abort").exists()


def test_a_second_server_on_the_same_data_is_refused(
    processes: list[Process], tmp_path: Path
) -> None:
    first = server(processes, tmp_path)
    assert "is ready" in first.first_line()
    status, out, err = server(processes, tmp_path).popen.wait(READY_S_MAX), "", ""
    out, err = processes[1].popen.communicate()
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert str(first.popen.pid) in err, "it names the holder"
    assert first.end()[0] == 0


def test_a_port_in_use_is_one_clear_line(processes: list[Process], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        process = server(processes, tmp_path, "--port", str(port))
        out, err = process.popen.communicate(timeout=READY_S_MAX)
    assert (process.popen.returncode, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert f"127.0.0.1:{port}" in err
    assert not (tmp_path / "data" / "store" / "abort").exists()


def test_a_killed_server_starts_again(processes: list[Process], tmp_path: Path) -> None:
    first = server(processes, tmp_path)
    assert "is ready" in first.first_line()
    assert first.end(signal.SIGKILL)[0] == -signal.SIGKILL
    second = server(processes, tmp_path)
    assert "is ready" in second.first_line()
    assert second.end(signal.SIGINT)[0] == 0


def test_a_name_server_alone(processes: list[Process], tmp_path: Path) -> None:
    config = tmp_path / "namesrv.conf"
    config.write_text(f"listenPort={free_port()}\nkvConfigPath={tmp_path}/kv.json\n")
    processes.append(Process("namesrv", "-c", str(config)))
    assert "is ready" in processes[0].first_line()
    assert processes[0].end()[0] == 0


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", APACHES)
def test_apaches_own_files_are_taken(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / Path(name).name
    path.write_text(APACHES[name], encoding="utf-8")
    assert cli.main(["broker", "-p", "-c", str(path)]) == 0
    printed = dict(line.split("=", 1) for line in capsys.readouterr().out.splitlines())
    for line in APACHES[name].splitlines():
        if not line.startswith("#"):
            key, value = (part.strip() for part in line.split("="))
            assert printed[key] == value, key
    assert len(printed) > 100
    assert cli.main(["broker", "-m", "-c", str(path)]) == 0
    changed = dict(line.split("=", 1) for line in capsys.readouterr().out.splitlines())
    assert 0 < len(changed) < 20
    assert "brokerName" in changed


COPIED = """\
brokerClusterName=rocketmq-cluster
brokerName=broker-a
brokerId=0
defaultTopicQueueNums=4
mapedFileSizeCommitLog=1073741824
mapedFileSizeConsumeQueue=300000
storePathRootDir=/usr/local/rocketmq/store
storePathCommitLog=/usr/local/rocketmq/store/commitlog
storePathConsumeQueue=/usr/local/rocketmq/store/consumequeue
storePathIndex=/elsewhere/index
storeCheckpoint=/usr/local/rocketmq/store/checkpoint
abortFile=/usr/local/rocketmq/store/abort
brokerRole=ASYNC_MASTER
flushDiskType=ASYNC_FLUSH
checkTransactionMessageEnable=false
sendMessageThreadPoolNums=128
"""


def test_a_file_as_it_goes_from_hand_to_hand_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """It has names that no release of Apache's has ever read."""
    path = tmp_path / "broker.conf"
    path.write_text(COPIED)
    assert cli.main(["broker", "-p", "-c", str(path)]) == 0
    assert "mappedFileSizeConsumeQueue=300000\n" in capsys.readouterr().out
    (line,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert "storePathIndex=/elsewhere/index has no effect" in line
    assert "/usr/local/rocketmq/store/index" in line


def test_all_that_is_wrong_is_said_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("brokerRole=SLAVE\nlistenPort=many\nflushDiskTyp=SYNC_FLUSH\n")
    assert cli.main(["broker", "-p", "-c", str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    for words in ("listenPort", "many", "flushDiskTyp", "flushDiskType"):
        assert words in line


def test_a_raft_log_is_refused_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("enableDLegerCommitLog=true\ndLegerGroup=g\ndLegerPeers=n0-a:1\n")
    assert cli.main(["broker", "-c", str(path)]) == 1
    assert "DLedger" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("aclEnable=true", "there is no account file"),
        ("aclEnable = TRUE", "there is no account file"),
        ("aclEnable=yes", "true or false"),
        ("aclBrokerAccessKey=somebody", "aclEnable is not true"),
        ("authenticationEnabled=true", "aclEnable=true"),
        ("authorizationEnabled=true", "aclEnable=true"),
        ("enableControllerMode=true", "controller"),
        ("enableSlaveActingMaster=true", "acts for its master"),
        ("duplicationEnable=true", "second copy"),
        ("storeType=defaultRocksDB", "RocksDB"),
        ("messageStorePlugIn=org.apache.rocketmq.tieredstore.TieredMessageStore", "plug-ins"),
        ("listenPort=65535", "from 0 to 65534"),
        ("inSyncReplicas=3", "waits for one slave"),
        ("filterServerNums=1", "SQL92"),
        ("rejectPullConsumerEnable=true", "not kept out"),
        ("fetchNamesrvAddrByAddressServer=true", "namesrvAddr"),
        ("fetchNameSrvAddrByDnsLookup=true", "namesrvAddr"),
        ("namesrvAddr=127.0.0.1:abc", "host:port"),
        ("namesrvAddr=127.0.0.1:9876;10.0.0.1", "host:port"),
    ],
)
def test_what_there_is_not_is_refused_with_a_sentence(
    line: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(f"{line}\nstorePathRootDir={tmp_path / 'store'}\n", encoding="utf-8")
    assert cli.main(["broker", "-c", str(path)]) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert line.partition("=")[0].strip() in told
    assert said in told
    assert not (tmp_path / "store").exists()


def test_switches_that_are_off_are_no_reason_to_refuse() -> None:
    found = read_broker_config(
        {
            **dict.fromkeys(
                ("aclEnable", "authenticationEnabled", "enableControllerMode"), "false"
            ),
            "duplicationEnable": " False ",
            "storeType": "default",
            "messageStorePlugIn": "",
            "inSyncReplicas": "2",
            "filterServerNums": "0",
            "fetchNamesrvAddrByAddressServer": "true",
            "namesrvAddr": "a:9876; b.example:9876;",
        },
        Path("/srv"),
    )
    assert found.store.paths.root == Path("/srv/store")


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["broker", "-c", str(tmp_path / "none.conf")]) == 1
    assert "none.conf cannot be read" in capsys.readouterr().err


def test_all_that_is_wrong_with_a_name_server_is_said_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A misspelt name would be a name server at another port than its operator thinks."""
    path = tmp_path / "namesrv.conf"
    path.write_text(
        "listenProt=9877\norderMessageEnable=maybe\nenableControllerInNamesrv=true\n"
        "controllerDLegerSelfId=n0\nserverWorkerThreads=8\ntls.server.mode=disabled\n"
    )
    assert cli.main(["namesrv", "-p", "-c", str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "listenProt is not a setting that is known here; did you mean listenPort?" in line
    assert "orderMessageEnable must be true or false" in line
    assert "there is no controller here" in line
    assert line.count(";") < 6, "what Apache's have and means nothing here is no problem"


def test_the_settings_of_a_name_server_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["namesrv", "-p"]) == 0
    assert "listenPort=9876" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["server", "namesrv", "broker"])
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main([command, "--help"])
    assert left.value.code == 0
    out = capsys.readouterr().out
    assert f"gantrymq {command}" in out
    assert "exit status" in out


@pytest.mark.parametrize(
    "arguments",
    [["server", "--port", "x"], ["server", "--port", "65536"], ["broker", "--shards", "0"],
     ["broker", "--shards", "65"], ["namesrv", "--what"], ["server", "--metrics-port", "on"],
     ["namesrv", "--log-format", "xml"]],
)  # fmt: skip
def test_bad_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 2
    assert "--help" in capsys.readouterr().err


def test_shards_share_nothing(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(APACHES["broker.conf"] + f"storePathRootDir={tmp_path}/store\n")
    properties = read_file(path)
    found = read_broker_config(properties, tmp_path)
    shards = [shard_properties(found, properties, number) for number in range(3)]
    assert [one["brokerName"] for one in shards] == ["broker-a-0", "broker-a-1", "broker-a-2"]
    for name in ("listenPort", "storePathRootDir"):
        assert len({one[name] for one in shards}) == 3
    assert {one["brokerClusterName"] for one in shards} == {"DefaultCluster"}


def test_a_log_on_another_disk_stays_there_and_is_shared_by_no_shards(tmp_path: Path) -> None:
    properties = {
        "storePathRootDir": f"{tmp_path}/store",
        "storePathCommitLog": "/fast/one,/fast/two",
        "readOnlyCommitLogStorePaths": "/old",
        "storePathIndex": f"{tmp_path}/store/index",
    }
    second = shard_properties(read_broker_config(properties, tmp_path), properties, 1)
    assert second["storePathRootDir"] == f"{tmp_path}/store/shard-1"
    assert second["storePathCommitLog"] == "/fast/one/shard-1,/fast/two/shard-1"
    assert second["readOnlyCommitLogStorePaths"] == "/old/shard-1"
    assert "storePathIndex" not in second
    properties = {
        "storePathRootDir": f"{tmp_path}/store",
        "storePathCommitLog": f"{tmp_path}/store/commitlog",
    }
    second = shard_properties(read_broker_config(properties, tmp_path), properties, 1)
    assert "storePathCommitLog" not in second, "it is below the shard's own root"


def test_shards_have_no_master_in_common(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(
        f"brokerRole=SLAVE\nbrokerId=1\nhaMasterAddress=10.0.0.1:10912\n"
        f"storePathRootDir={tmp_path}/store\n"
    )
    assert cli.main(["broker", "--shards", "2", "-c", str(path)]) == 1
    assert "each of 2 shards has its own" in capsys.readouterr().err


def test_shards_have_ports_of_metrics_side_by_side(tmp_path: Path) -> None:
    found = read_broker_config({"metricsPort": "7000"}, tmp_path)
    shards = [shard_properties(found, {"metricsPort": "7000"}, number) for number in range(3)]
    assert [one["metricsPort"] for one in shards] == ["7000", "7001", "7002"]
    for port in ("0", "-1"):
        found = read_broker_config({"metricsPort": port}, tmp_path)
        assert shard_properties(found, {"metricsPort": port}, 2)["metricsPort"] == port


@pytest.mark.parametrize(
    ("properties", "port", "address"),
    [
        ({}, -1, "127.0.0.1"),
        ({"metricsExporterType": "DISABLE", "metricsPromExporterPort": "9"}, -1, "127.0.0.1"),
        ({"metricsExporterType": "PROM"}, 5557, "127.0.0.1"),
        ({"metricsExporterType": "prom", "metricsPromExporterPort": "9"}, 9, "127.0.0.1"),
        ({"metricsExporterType": "PROM", "metricsPromExporterHost": "::1"}, 5557, "::1"),
        ({"metricsExporterType": "PROM", "metricsPort": "8"}, 8, "127.0.0.1"),
    ],
)
def test_apaches_names_for_the_port_of_metrics_are_understood(
    properties: dict[str, str], port: int, address: str, tmp_path: Path
) -> None:
    found = read_broker_config(properties, tmp_path).broker
    assert (found.metrics_port, found.metrics_bind_address) == (port, address)


def lines_until(process: Process, begin: str) -> str:
    """Return the line that begins so; nothing but an end of the output ends the search earlier."""
    assert process.popen.stdout is not None
    return next((line for line in process.popen.stdout if line.startswith(begin)), "")


def fetched(line: str, path: str = "/metrics") -> str:
    url = line.removeprefix("metrics: ").strip().replace("/metrics", path)
    with urlopen(url, timeout=READY_S_MAX) as answer:  # noqa: S310 - of this machine
        text: str = answer.read().decode()
        return text


def test_every_kind_of_server_has_metrics(processes: list[Process], tmp_path: Path) -> None:
    config = tmp_path / "namesrv.conf"
    config.write_text(f"listenPort=0\nkvConfigPath={tmp_path}/kv.json\nmetricsPort=0\n")
    processes.append(Process("namesrv", "-c", str(config)))
    assert "gantrymq_namesrv_topics" in fetched(lines_until(processes[0], "metrics: "))
    settings = tmp_path / "broker.conf"
    settings.write_text(f"{SMALL}listenPort=0\nstorePathRootDir={tmp_path}/store\n")
    broker = Process("broker", "-c", str(settings), "--metrics-port", "0", "--log-format", "json")
    processes.append(broker)
    line = lines_until(broker, "metrics: ")
    assert "rocketmq_broker_permission" in fetched(line)
    assert "alive" in fetched(line, "/healthz")


def test_no_metrics_where_they_are_off(processes: list[Process], tmp_path: Path) -> None:
    config = tmp_path / "broker.conf"
    config.write_text(f"{SMALL}listenPort=0\n")
    arguments = ["--data", str(tmp_path), "--namesrv-port", "0", "-c", str(config)]
    processes.append(Process("server", *arguments, "--metrics-port", "off"))
    assert "is ready" in processes[0].first_line()
    status, out, err = processes[0].end()
    assert (status, err) == (0, "")
    assert "metrics" not in out


def free_shard_ports() -> int:
    """Return the port of the first of two shards; each uses three (-2, 0 and +1)."""
    return free_port(beside=(-2, 1, 8, 10, 11))


def shards(processes: list[Process], folder: Path) -> tuple[Process, int, int]:
    """Start a name server and two shards; return those, and where both can be reached."""
    names, first = free_port(), free_shard_ports()
    namesrv = folder / "namesrv.conf"
    namesrv.write_text(f"listenPort={names}\nkvConfigPath={folder}/kv.json\n")
    processes.append(Process("namesrv", "-c", str(namesrv)))
    config = folder / "broker.conf"
    config.write_text(
        f"{SMALL}brokerName=b\nbindAddress=127.0.0.1\nlistenPort={first}\n"
        f"storePathRootDir={folder}/store\n"
    )
    assert "is ready" in processes[0].first_line()
    address = f"127.0.0.1:{names}"
    processes.append(Process("broker", "--shards", "2", "-n", address, "-c", str(config)))
    return processes[1], names, first


def brokers_of(client: RemotingClient, topic: str) -> list[str]:
    answer = client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest(topic=topic))
    if answer.code != 0:
        return []
    return sorted(one.broker_name for one in TOPIC_ROUTE.decode(answer.body).queues)


def wait_for(condition: Callable[[], bool], process: Process) -> None:
    deadline = time.monotonic() + READY_S_MAX
    while not condition():
        assert process.popen.poll() is None, process.end()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_shards_run_beside_each_other_and_stop_together(
    processes: list[Process], tmp_path: Path
) -> None:
    process, names, first = shards(processes, tmp_path)
    said = sorted(process.first_line() for _ in range(3))
    assert said[0].startswith("2 shards, processes ")
    assert "broker b-0 is ready" in said[1]
    assert "broker b-1 is ready" in said[2]
    with RemotingClient("127.0.0.1", names) as client:
        wait_for(lambda: brokers_of(client, "TBW102") == ["b-0", "b-1"], process)
        for number, port in enumerate((first, first + 10)):
            with RemotingClient("127.0.0.1", port) as broker:
                broker.send(SEND, f"to {number}".encode())
                (record,) = broker.pull_all("T", 0)
                assert f"to {number}".encode() in record, "each has its own store"
        wait_for(lambda: brokers_of(client, "T") == ["b-0", "b-1"], process)
        status, _out, err = process.end()
        assert (status, err) == (0, "")
        assert brokers_of(client, "T") == [], "they have said good-bye"
    for number in range(2):
        store = tmp_path / "store" / f"shard-{number}"
        assert (store / "commitlog").is_dir()
        assert not (store / "abort").exists(), "stopped in good order"
    assert processes[0].end()[0] == 0


def test_a_shard_that_dies_is_said_and_takes_the_others_along(
    processes: list[Process], tmp_path: Path
) -> None:
    process, names, _first = shards(processes, tmp_path)
    said = sorted(process.first_line() for _ in range(3))
    with RemotingClient("127.0.0.1", names) as client:
        wait_for(lambda: brokers_of(client, "TBW102") == ["b-0", "b-1"], process)
    pids = [int(pid) for pid in said[0].split("processes ")[1].split(",")]
    os.kill(pids[1], signal.SIGKILL)
    _out, err = process.popen.communicate(timeout=READY_S_MAX)
    assert process.popen.returncode == 1
    assert f"shard 1 (process {pids[1]}) ended by signal 9" in err
    assert (tmp_path / "store" / "shard-1" / "abort").exists()
    assert not (tmp_path / "store" / "shard-0" / "abort").exists(), "the other one stopped cleanly"
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    config = str(tmp_path / "broker.conf")
    address = f"127.0.0.1:{names}"
    with RemotingClient("127.0.0.1", names) as client:
        assert brokers_of(client, "TBW102") == [], "both have left the routes, the dead one too"
        processes.append(Process("broker", "--shards", "2", "-n", address, "-c", config))
        again = processes[-1]
        wait_for(lambda: brokers_of(client, "TBW102") == ["b-0", "b-1"], again)
    assert again.end()[0] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a dead parent")
def test_shards_stop_when_their_parent_is_killed(processes: list[Process], tmp_path: Path) -> None:
    process, _names, _first = shards(processes, tmp_path)
    for _ in range(3):
        process.first_line()
    process.popen.kill()
    process.popen.communicate(timeout=READY_S_MAX)  # ends when the last shard has closed its output
    for number in range(2):
        assert not (tmp_path / "store" / f"shard-{number}" / "abort").exists()
