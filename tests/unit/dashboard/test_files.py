"""What the dashboard reads and keeps: reports, undo files, the audit log's pages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest

from gantrymq.admin.offsets import Undo, UndoEntry
from gantrymq.dashboard import undo as undo_of
from gantrymq.dashboard.undo import UndoFiles
from gantrymq.errors import InvalidValue
from gantrymq.spark.jobs import JOB_MODULES
from gantrymq.spark.report.values import Report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from unit.dashboard.conftest import Desk


def report(job: str, **more: object) -> bytes:
    return msgspec.json.encode(Report(job=job, options={"topic": "T"}, **more))  # type: ignore[arg-type]


def test_jobs_are_listed_without_spark(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(stubs=False)
    told = desk.ask("GET", "/api/pipelines", **desk.headers_of("viewer")).data
    assert [row["name"] for row in told["rows"]] == list(JOB_MODULES)
    runs = desk.ask("GET", "/api/pipelines/runs", **desk.headers_of("viewer")).data
    assert runs["rows"] is None


def test_reports_are_read_and_what_is_none_is_named(
    make_desk: Callable[..., Desk], tmp_path: Path
) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "good.json").write_bytes(report("audit", state="checked", seconds=2.5))
    (folder / "bad.json").write_bytes(report("lag", state="done", problem_count=3))
    (folder / "other.json").write_text("<script>", encoding="utf-8")
    (folder / "ignored.txt").write_text("x", encoding="utf-8")
    desk = make_desk(stubs=False, reports=folder)
    headers = desk.headers_of("viewer")
    told = desk.ask("GET", "/api/pipelines/runs", **headers).data
    rows = {row["file"]: (row["job"], row["isGood"], row["problems"]) for row in told["rows"]}
    assert rows == {"good.json": ("audit", True, 0), "bad.json": ("lag", False, 3)}
    assert told["problemCount"] == 1
    assert told["problems"][0].startswith("other.json is no report")
    shown = desk.ask("GET", "/api/pipelines/run?file=good.json", **headers).data
    assert (shown["job"], shown["options"]) == ("audit", {"topic": "T"})
    (folder / "deep.json").write_bytes(b'{"job":"x","figures":{"a":' + b"[" * 5000)
    (folder / "bytes.json").write_bytes(b'{"job":"\xff"}')
    told = desk.ask("GET", "/api/pipelines/runs", **headers).data
    assert (len(told["rows"]), told["problemCount"]) == (2, 3)
    for name in (
        "../accounts.json", ".hidden.json", "other.json", "none.json", "ignored.txt", "deep.json",
        "bytes.json", "a%00b.json", "a%0Ab.json",
    ):  # fmt: skip
        refused = desk.ask("GET", f"/api/pipelines/run?file={name}", **headers)
        assert refused.status == 400, name


def test_the_audit_log_comes_in_pages(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(stubs=False)
    for number in range(120):
        desk.parts.audit.add(("anna", "admin", "::1"), "send", "done", f"topic <b>{number}</b>")
    log = next(path for path in desk.parts.settings.data.iterdir() if "audit" in path.name)
    log.write_bytes(log.read_bytes() + b'{"who":"\xff"}\n{"x":' + b"[" * 20_000 + b"\n")
    headers = desk.headers_of("admin")
    first = desk.ask("GET", "/api/audit", **headers).data
    assert (first["total"], len(first["rows"])) == (121, 50)
    assert first["rows"][0]["action"] == "log in"
    last = desk.ask("GET", "/api/audit?page=3", **headers).data
    assert [row["target"] for row in last["rows"]][-1] == "topic <b>0</b>"
    some = desk.ask("GET", "/api/audit?filter=%3Cb%3E7%3C&rows=10", **headers).data
    assert [row["target"] for row in some["rows"]] == ["topic <b>7</b>"]
    for bad in ("page=0", "page=x", "rows=201", "rows=-1"):
        assert desk.ask("GET", f"/api/audit?{bad}", **headers).status == 400


def test_moves_can_be_found_again_and_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo_of, "FILES_MAX", 5)
    files = UndoFiles(tmp_path / "undo")
    assert files.of_group("g") == []
    for number in range(9):
        group = "g" if number % 2 else "other"
        told = Undo(group, "T", 1_000 + number, (UndoEntry("broker-a", 0, number),))
        assert files.put(told) == str(1_000 + number)
    kept = files.of_group("g")
    assert [name for name, _undo in kept] == ["1007", "1005"]
    assert files.get("1007").queues[0].offset == 7
    for name in ("1000", "../accounts", "", "1007.json", "-1"):
        with pytest.raises(InvalidValue, match="nothing to undo"):
            files.get(name)
    (tmp_path / "undo" / "1008.json").write_text("{}", encoding="utf-8")
    (tmp_path / "undo" / "1010.json").write_bytes(b'{"group":"\xff"}')
    with pytest.raises(InvalidValue, match="cannot be read"):
        files.get("1010")
    assert files.of_group("other") == [("1006", files.get("1006")), ("1004", files.get("1004"))]


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/api/topic", {}, "topic is missing"),
        ("/api/topic", {"topic": "a b"}, "topic"),
        ("/api/topic", {"topic": "T", "readQueues": "x"}, "give a whole number"),
        ("/api/topic", {"topic": "T", "readQueues": 99999999}, "give 0 to"),
        ("/api/topic", {"topic": "T", "perm": "RWQ"}, "permission"),
        ("/api/topic", {"topic": "T", "type": "<b>"}, "is no type"),
        ("/api/topic", {"topic": ["T"]}, "topic is no text"),
        ("/api/topic", {"topic": "x" * 5000}, "at most 4096"),
        ("/api/topic/send", {"topic": "T", "properties": ["x"]}, "no table of texts"),
        ("/api/group", {"group": "g", "enabled": "maybe"}, "give true or false"),
        ("/api/group/reset", {"group": "g", "topic": "T"}, "say where to"),
        ("/api/group/reset", {"group": "g", "topic": "T", "to": "middle"}, "no end of a queue"),
        ("/api/group/undo", {"group": "g", "id": "../x"}, "nothing to undo"),
        ("/api/configuration", {"broker": "b", "name": "storePathRootDir", "value": "/"}, "cannot"),
        ("/api/configuration", {"broker": "b", "name": "traceOn", "value": "a\nb=c"}, "characters"),
        ("/api/dlq/redrive", {"group": "g", "to": "a b"}, "topic"),
        ("/api/dlq/stop", {"id": "x"}, "no job"),
        ("/api/dlq/resend", {"group": "g", "ids": []}, "1 to 200"),
    ],
)
def test_what_cannot_be_is_refused_before_anybody_is_asked(
    make_desk: Callable[..., Desk], path: str, body: dict[str, object], said: str
) -> None:
    desk = make_desk(stubs=False)
    answer = desk.ask("POST", path, data=body, **desk.headers_of("admin"))
    assert answer.status == 400, answer.body
    assert said in answer.data["error"]["text"]
    lines = (desk.parts.settings.data / "audit.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["outcome"] for line in lines] == ["done", "tried", "failed"]


@pytest.mark.parametrize("group", ["CID_RMQ_SYS_TRANS", "TOOLS_CONSUMER"])
def test_groups_of_the_system_are_untouchable(make_desk: Callable[..., Desk], group: str) -> None:
    desk = make_desk(stubs=False)
    headers = desk.headers_of("admin")
    moved = {"group": group, "topic": "T", "to": "latest"}
    assert desk.ask("POST", "/api/group/reset", data=moved, **headers).status == 409
    assert desk.ask("DELETE", "/api/group", data={"group": group}, **headers).status == 409
    assert desk.ask("POST", "/api/dlq/redrive", data={"group": group}, **headers).status == 409
