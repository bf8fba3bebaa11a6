"""`gantrymq store`: what it prints, what it leaves alone, and with which status it ends."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gantrymq.cli.main import main
from gantrymq.cli.progress import Progress
from gantrymq.cli.store_text import size_text, time_text
from gantrymq.node.config import read_broker_config
from gantrymq.store.files import OsFiles
from gantrymq.store.process_lock import ProcessLock
from support.golden import stored_messages
from support.golden_trees import configuration, tree_digest, unpacked
from support.small_stores import COUNT, PROPERTIES, config_file, crashed_store, edit, written_store

if TYPE_CHECKING:
    from pathlib import Path

Output = pytest.CaptureFixture[str]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    written_store(tmp_path / "store")
    return tmp_path / "store"


def fails(arguments: list[str], printed: Output) -> str:
    """Run a command that fails; return its one line."""
    assert main(arguments) == 1
    said = printed.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


# -- all of them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["inspect", "verify", "export"])
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("with_config", [False, True])
def test_the_directory_is_left_as_it_is(
    tmp_path: Path, command: str, options: list[str], with_config: bool, capsys: Output
) -> None:
    root = tmp_path / "store"
    crashed_store(root, tmp_path)
    config = ["-c", str(config_file(tmp_path))] if with_config else []
    before = tree_digest(root)
    assert main(["store", command, str(root), *options, *config]) == 0
    assert tree_digest(root) == before
    printed = capsys.readouterr()
    assert printed.out
    assert printed.err == ""


def test_no_command_is_a_call_for_help(capsys: Output) -> None:
    assert main(["store"]) == 0
    assert "first steps:" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_teaches(option: str, capsys: Output) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["store", option])
    assert stopped.value.code == 0
    printed = capsys.readouterr()
    assert "first steps:" in printed.out
    for command in ("inspect", "verify", "rebuild", "export"):
        assert f"gantrymq store {command} /data/store" in printed.out
    assert "exit status: 0 success, 1 a failed operation or problems found" in printed.out


@pytest.mark.parametrize("command", ["inspect", "verify", "rebuild", "export"])
def test_every_command_has_help(command: str, capsys: Output) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["store", command, "--help"])
    assert stopped.value.code == 0
    assert "broker.conf" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["bogus"], "bogus"),
        (["inspect"], "DIR"),
        (["inspect", "a", "b"], "b"),
        (["verify", "x", "--jso"], "--jso"),
        (["export", "x", "--to", "y"], "--to"),
    ],
)
def test_bad_usage_is_one_line(arguments: list[str], named: str, capsys: Output) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["store", *arguments])
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert named in printed.err
    assert "--help" in printed.err


def test_what_cannot_be_read_is_one_line(root: Path, tmp_path: Path, capsys: Output) -> None:
    assert "storePathRootDir" in fails(["store", "inspect", str(tmp_path)], capsys)
    line = fails(["store", "inspect", str(root), "-c", str(tmp_path / "no.conf")], capsys)
    assert "no.conf: No such file" in line
    config = tmp_path / "bad.conf"
    config.write_text("mappedFileSizeCommitLog=5\nnonsense=1\n")
    line = fails(["store", "verify", str(root), "-c", str(config)], capsys)
    assert "mappedFileSizeCommitLog" in line
    assert "nonsense" in line
    config.write_text("mappedFileSizeCommitLog=16384\n")
    assert "8192 bytes" in fails(["store", "export", str(root), "-c", str(config)], capsys)


@pytest.mark.parametrize("command", ["inspect", "verify", "export", "rebuild"])
def test_the_file_of_a_broker_that_says_everything(
    root: Path, tmp_path: Path, command: str, capsys: Output
) -> None:
    """Whatever a broker may be told stands in the way of no tool."""
    everything = read_broker_config({}, tmp_path).properties()
    assert everything.keys() >= {"metricsPort", "failoverEtcd", "namesrvAddr", "deleteWhen"}
    config = tmp_path / "all.conf"
    lines = [f"{name}={value}\n" for name, value in (everything | PROPERTIES).items()]
    config.write_text("".join(lines))
    assert main(["store", command, str(root), "-c", str(config)]) == 0
    assert capsys.readouterr().err == ""


# -- one by one ------------------------------------------------------------------------------------


def test_inspect(root: Path, capsys: Output) -> None:
    assert main(["store", "inspect", str(root)]) == 0
    text = capsys.readouterr().out
    assert "stopped cleanly" in text
    assert "files of 8 KiB" in text
    assert "3 in 2 topics, files of 200 bytes" in text
    assert f"{3 * COUNT} keys, 10 slots and 40 entries a file" in text
    rows = [line.split() for line in text.splitlines() if line.endswith("Beta")]
    assert [row[:4] for row in rows] == [["0", "0", str(COUNT // 3), str(COUNT // 3)]]
    assert main(["store", "inspect", str(root), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["state"] == "stopped"
    assert found["log"]["fileBytes"] == 8192
    assert [queue["maxOffset"] for queue in found["queues"]] == [COUNT // 3] * 3
    assert (found["indexSlots"], found["indexEntries"]) == (10, 40)


def test_inspect_tells_a_crash(tmp_path: Path, capsys: Output) -> None:
    label = "apache-4.9.7-torn"
    root = unpacked(label, tmp_path)
    assert main(["store", "inspect", str(root), "-c", str(configuration(label))]) == 0
    text = capsys.readouterr().out
    assert "not stopped cleanly" in text
    assert "a damaged record behind: BAD_SIZE" in text
    assert "topics.json" in text


def test_inspect_names_the_process_that_has_it_open(root: Path, capsys: Output) -> None:
    lock = ProcessLock(OsFiles(), root)
    try:
        command = [sys.executable, "-m", "gantrymq", "store", "inspect", str(root), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    finally:
        lock.release()
    found = json.loads(done.stdout)
    assert found["state"] == "open"
    assert found["holder"].startswith("process ")
    assert capsys.readouterr().err == ""


def test_verify(root: Path, capsys: Output) -> None:
    assert main(["store", "verify", str(root)]) == 0
    assert "no problems" in capsys.readouterr().out
    path = root / "consumequeue" / "Alpha" / "0" / f"{0:020d}"
    edit(path, 12, b"\1\2\3\4\5\6\7\0")
    assert main(["store", "verify", str(root)]) == 1
    text = capsys.readouterr().out
    assert "Alpha/0: entry 0 has the tags code" in text
    assert "PROBLEMS: queue.tags 1" in text
    assert f"gantrymq store rebuild {root}" in text
    assert main(["store", "verify", str(root), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["counts"] == {"queue.tags": 1}
    assert found["problems"][0]["kind"] == "queue.tags"
    assert found["records"] == COUNT


def test_rebuild(root: Path, tmp_path: Path, capsys: Output) -> None:
    path = root / "consumequeue" / "Alpha" / "0" / f"{0:020d}"
    edit(path, 12, b"\1\2\3\4\5\6\7\0")
    assert main(["store", "rebuild", str(root), "--to", str(tmp_path / "other")]) == 0
    assert main(["store", "verify", str(root)]) == 1
    capsys.readouterr()
    assert main(["store", "rebuild", str(root), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["queueEntries"] == COUNT
    assert found["replaced"].startswith(str(root / "replaced-"))
    assert main(["store", "verify", str(root)]) == 0
    assert main(["store", "rebuild", str(root)]) == 0
    assert "the old ones are in" in capsys.readouterr().out
    edit(root / "commitlog" / f"{0:020d}", 90, b"?")
    assert main(["store", "rebuild", str(root)]) == 1
    assert "PROBLEMS: 1" in capsys.readouterr().out


def test_rebuild_refuses_what_it_cannot_do(root: Path, tmp_path: Path, capsys: Output) -> None:
    lock = ProcessLock(OsFiles(), root)
    assert "close it there first" in fails(["store", "rebuild", str(root)], capsys)
    lock.release()
    for path in sorted((root / "consumequeue").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    line = fails(["store", "rebuild", str(root)], capsys)
    assert "mappedFileSizeConsumeQueue; give the broker's configuration with -c" in line
    assert main(["store", "rebuild", str(root), "-c", str(config_file(tmp_path))]) == 0
    capsys.readouterr()
    assert main(["store", "verify", str(root)]) == 0


def test_rebuild_without_deleted_topics(tmp_path: Path, capsys: Output) -> None:
    label = "apache-4.9.7-clean"
    root = unpacked(label, tmp_path)
    assert main(["store", "rebuild", str(root), "--known-topics", "--json"]) == 0
    left_out = json.loads(capsys.readouterr().out)["leftOut"]
    assert left_out == {"DeletedTopic": 6}
    assert not (root / "consumequeue" / "DeletedTopic").exists()


@pytest.mark.parametrize("options", [[], ["--jsonl"], ["--json"]])
def test_export(tmp_path: Path, options: list[str], capsys: Output) -> None:
    label = "apache-5.5.0-pop-v2records"
    root = unpacked(label, tmp_path)
    assert main(["store", "export", str(root), *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == stored_messages(label)
    path = tmp_path / "all.jsonl"
    assert main(["store", "export", str(root), *options, "-o", str(path)]) == 0
    assert path.read_text().splitlines() == lines
    assert capsys.readouterr().out == ""


def test_export_into_a_pipe_that_closes(tmp_path: Path) -> None:
    root = unpacked("apache-4.9.7-killed", tmp_path)
    command = [sys.executable, "-m", "gantrymq", "store", "export", str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 1


# -- text ------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """A stream that people look at."""

    def isatty(self) -> bool:
        return True


def test_progress_is_for_terminals() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        with Progress("walking", 1 << 20, 3 << 20, stream) as progress:
            for offset in (0, 1 << 20, 2 << 20, (2 << 20) + 1, 9 << 20):
                progress(offset)
    assert pipe.getvalue() == ""
    drawn = terminal.getvalue().split("\r")
    assert drawn[0] == ""
    assert drawn[1].startswith("walking [........................]   0 % 0 of 2 MiB")
    assert drawn[2].startswith("walking [############............]  50 % 1 of 2 MiB")
    assert drawn[3].startswith("walking [########################] 100 % 2 of 2 MiB")
    assert drawn[4] == "\x1b[K"
    assert len(drawn) == 5


def test_sizes_and_times() -> None:
    assert [size_text(count) for count in (0, 1000, 8192, 6_000_000, 1 << 30)] == [
        "0 bytes",
        "1000 bytes",
        "8 KiB",
        "5.7 MiB",
        "1 GiB",
    ]
    assert time_text(0) == "-"
    assert time_text(None) == "-"
    assert time_text(1_700_000_000_123) == "2023-11-14 22:13:20.123"
    assert time_text(2**62) == str(2**62)


@pytest.mark.parametrize("place", [".", "commitlog/all.jsonl", "consumequeue/../all.jsonl", "new"])
def test_nothing_is_written_into_the_store_itself(root: Path, place: str, capsys: Output) -> None:
    before = tree_digest(root)
    for command, option in (("export", "-o"), ("rebuild", "--to")):
        said = fails(["store", command, str(root), option, str(root / place)], capsys)
        assert f"{option} {root / place} lies in the store itself" in said
        assert "name a place outside of it" in said
    assert tree_digest(root) == before


def test_a_log_on_another_disk_is_the_store_as_well(tmp_path: Path, capsys: Output) -> None:
    root, log = tmp_path / "store", tmp_path / "log"
    written_store(root)
    (root / "commitlog").rename(log)
    config = config_file(tmp_path)
    config.write_text(config.read_text() + f"\nstorePathCommitLog={log}\n")
    link = tmp_path / "link"
    link.symlink_to(log)
    arguments = ["store", "export", str(root), "-c", str(config), "-o"]
    assert "lies in the store itself" in fails([*arguments, str(link / "all.jsonl")], capsys)
    assert main([*arguments, str(tmp_path / "all.jsonl")]) == 0
    assert (tmp_path / "all.jsonl").read_text().count("\n") == COUNT
