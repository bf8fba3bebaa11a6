"""The page on metrics: its table is the catalogue, its commands are run, the board is one."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gantrymq.metrics.catalogue import COMMON, FAMILIES, Kind, exported_names
from gantrymq.node.logs import JsonFormatter
from support import markdown, ports
from support.scraping import Samples

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "metrics.md"
BOARD = ROOT / "contrib" / "grafana" / "gantrymq.json"
ROW = re.compile(r"^\| (`[a-z_`, ]+`) \| (\w+) \| ([`a-z_, ]*) \| (.+) \|$", re.MULTILINE)
READY_S_MAX = 30


def words(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`(\w+)`", cell))


def test_the_table_is_the_catalogue() -> None:
    rows = {
        names[0]: (names[1:], kind, words(labels), text)
        for cell, kind, labels, text in ROW.findall(PAGE.read_text(encoding="utf-8"))
        if (names := words(cell))
    }
    expected = {
        family.name: (
            (family.also,) if family.also else (),
            family.kind.value,
            family.labels,
            family.text,
        )
        for family in FAMILIES.values()
    }
    assert rows == expected


APACHE = """
processor_watermark broker_permission topic_number consumer_group_number messages_in_total
messages_out_total throughput_in_total throughput_out_total message_size topic_create_execution_time
consumer_group_create_execution_time producer_connections consumer_connections
consumer_lag_messages consumer_lag_latency consumer_inflight_messages consumer_queueing_latency
consumer_ready_messages send_to_dlq_messages_total commit_messages_total rollback_messages_total
finish_message_latency half_messages pop_buffer_scan_time_consume pop_revive_in_message_total
pop_revive_out_message_total pop_revive_retry_messages_total pop_revive_lag pop_revive_latency
pop_offset_buffer_size pop_checkpoint_buffer_size rpc_latency storage_size
storage_flush_behind_bytes storage_dispatch_behind_bytes storage_message_reserve_time
timer_enqueue_lag timer_enqueue_latency timer_dequeue_lag timer_dequeue_latency timing_messages
timer_enqueue_total timer_dequeue_total timer_message_snapshot delay_message_latency
"""
"""What a broker of Apache 5.5.0 exports, without `rocketmq_`; RocksDB and tiered storage apart."""


def test_every_metric_of_apache_is_here_or_named_with_a_reason() -> None:
    page = PAGE.read_text(encoding="utf-8")
    left_out = page[page.index("### What Apache has and we do not") :]
    reasons = re.findall(r"^\| (.*`.*) \| (.+) \|$", left_out, re.MULTILINE)
    named = {name for cell, why in reasons if why.strip() for name in words(cell)}
    known = {f"rocketmq_{name}" for name in APACHE.split()}
    exported = {name for name, family in FAMILIES.items() if name.startswith("rocketmq_")}
    assert len(known) == 45
    assert exported <= known
    named.discard("rocketmq_half_messages")  # which is here, without one of its labels
    assert known - exported == named & known
    assert not named & exported


def shell_lines() -> list[str]:
    blocks = markdown.blocks(PAGE.read_text(encoding="utf-8"))
    return [line for block in blocks if block.kind == "shell" for line in block.text.splitlines()]


def start(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start the server of the page at free ports, with its log as JSON."""
    places = ["--namesrv-port", str(ports.free_port()), "--port", str(ports.free_broker_port())]
    more = ["--bind", "127.0.0.1", "--metrics-port", str(port), "--log-format", "json"]
    with (folder / "said").open("wb") as said, (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "gantrymq", "server", *places, *more, "--log", "info"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"},
            stdout=said,
            stderr=log,
        )


def test_the_commands_run(tmp_path: Path) -> None:
    first, *others = shell_lines()
    assert first == "gantrymq server"
    assert len(others) == 3
    port = ports.free_port()
    process = start(tmp_path, port)
    try:
        deadline = time.monotonic() + READY_S_MAX
        said = tmp_path / "said"
        while "metrics: " not in said.read_text() and time.monotonic() < deadline:
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.02)
        assert said.read_text().splitlines()[-1] == f"metrics: http://127.0.0.1:{port}/metrics"
        answers = [ask(line, port) for line in others]
        process.terminate()
        assert process.wait(READY_S_MAX) == 0
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    assert Samples.parse(answers[0]).value("gantrymq_store_writable") == 1
    assert [json.loads(answer)["status"] for answer in answers[1:]] == ["alive", "ready"]
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert lines
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)


def ask(line: str, port: int) -> bytes:
    """Run a `curl` of the page, at another port."""
    assert line.startswith("curl ")
    command = shlex.split(line.replace(":5557/", f":{port}/"))
    done = subprocess.run(command, capture_output=True, check=True, timeout=READY_S_MAX)
    return done.stdout


def test_the_line_of_the_log_is_one() -> None:
    (block,) = [
        block for block in markdown.blocks(PAGE.read_text(encoding="utf-8")) if block.kind == "json"
    ]
    record = logging.makeLogRecord(
        {
            "name": "gantrymq.store.put",
            "levelname": "WARNING",
            "msg": "the store takes no writes: %s",
            "args": ("the disk is full",),
            "created": datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC).timestamp(),
        }
    )
    assert JsonFormatter().format(record) + "\n" == block.text


# -- the board --------------------------------------------------------------------------------


def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(BOARD.read_text(encoding="utf-8"))
    return found


def expressions() -> Iterator[str]:
    found = board()
    for panel in found["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in found["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def test_the_board_is_whole() -> None:
    found = board()
    panels = found["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 30
    assert found["schemaVersion"] >= 36
    assert found["uid"]
    for panel in panels:
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24
        if panel["type"] != "row":
            assert panel["targets"], panel["title"]
            assert panel["datasource"]["uid"] == "${datasource}"
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)


def test_the_board_asks_for_nothing_that_is_not_exported() -> None:
    histograms = {name for name, family in FAMILIES.items() if family.kind is Kind.HISTOGRAM}
    known = set(exported_names()) - histograms
    known |= {f"{name}_{end}" for name in histograms for end in ("bucket", "sum", "count")}
    asked = {
        name
        for expression in expressions()
        for name in re.findall(r"\b(?:rocketmq|gantrymq|process)_\w+", expression)
    }
    assert len(asked) > 40
    assert asked <= known


def test_the_board_asks_by_labels_that_there_are() -> None:
    labels = {label for family in FAMILIES.values() for label in family.labels}
    labels |= {*COMMON, "instance", "le"}
    for expression in expressions():
        for inside in re.findall(r"\{([^}]*)\}", expression):
            assert set(re.findall(r"(\w+)\s*=~?", inside)) <= labels, expression
        for group in re.findall(r"\b(?:by|ignoring) \(([^)]*)\)", expression):
            assert {one.strip() for one in group.split(",")} <= labels, expression
        for opening, closing in ("()", "{}", "[]"):
            assert expression.count(opening) == expression.count(closing), expression
