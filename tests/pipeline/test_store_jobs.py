"""Audit, rebuild-cq, rebuild-index and the jobs that look at stores, over what Apache wrote."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from gantrymq.kernel import kernel
from gantrymq.spark.report.html import report_html
from support.golden import STORE_LABELS
from support.golden_trees import configuration, manifest, tree_digest, unpacked
from support.pipeline import run, run_well
from support.small_stores import COUNT, written_store

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [pytest.mark.tool("java"), pytest.mark.usefixtures("spark")]

SLICE_BYTES = 100_000
"""A few slices for each of the small files, so that edges lie anywhere."""
CLEAN = [label for label in STORE_LABELS if label.endswith(("clean", "v2records"))]
DAMAGED = [label for label in STORE_LABELS if label.endswith("torn")]


def queue_files(root: Path) -> dict[str, bytes]:
    base = root / "consumequeue"
    return {
        str(path.relative_to(base)): path.read_bytes()
        for path in sorted(base.rglob("*"))
        if path.is_file()
    }


def index_files(root: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((root / "index").iterdir())]


# -- audit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", CLEAN)
def test_audit_of_a_sound_store_finds_nothing(label: str, tmp_path: Path) -> None:
    root = unpacked(label, tmp_path)
    before = tree_digest(root)
    report = run_well(
        "audit", path=str(root), config=str(configuration(label)), slice_bytes=SLICE_BYTES
    )
    known = manifest(label)
    served = sum(row["messages"] for row in report.tables["queues"] if row["has queue"])  # type: ignore[misc]
    assert served == known.message_count
    assert report.figures["log ends at"] == known.end_of_last_readable_record
    assert tree_digest(root) == before
    page = report_html(report)
    assert page.count("<svg") == 3
    assert "http" not in page


def flip_in_body(raw: bytearray, base: int) -> None:
    """Flip bits of a body in the middle of a log file."""
    at = kernel.find_record(raw, len(raw) // 2, len(raw), base)
    record, _end = kernel.decode_record(raw, at, len(raw), True)
    raw[raw.index(record.body, at)] ^= 0xFF


def test_audit_finds_a_flipped_bit_a_zero_page_and_a_cut_file(tmp_path: Path) -> None:
    root = tmp_path / "store"
    written_store(root)
    files = sorted((root / "commitlog").iterdir())
    assert len(files) >= 3
    for number, change in enumerate(("flip", "zeros", "cut")):
        raw = bytearray(files[number].read_bytes())
        middle = len(raw) // 2
        if change == "flip":
            flip_in_body(raw, int(files[number].name))
        elif change == "zeros":
            raw[middle : middle + 4096] = bytes(len(raw[middle : middle + 4096]))
        else:
            del raw[middle:]
        files[number].write_bytes(raw)
    report = run("audit", path=str(root), slice_bytes=4096, queues=False)
    assert report.state == "done"
    assert not report.is_good
    places = [int(row["log offset"]) for row in report.tables["damage"]]  # type: ignore[arg-type]
    for path in files[:2]:
        base, size = int(path.name), path.stat().st_size
        assert any(base < place < base + size for place in places), (path, places)
    assert any(files[2].name in what for what in report.problems)
    assert not next(check for check in report.checks if check.name == "damage").passed


def test_audit_sees_an_entry_that_leads_elsewhere(tmp_path: Path) -> None:
    root = tmp_path / "store"
    written_store(root)
    path = next(path for path in sorted((root / "consumequeue").rglob("*")) if path.is_file())
    raw = bytearray(path.read_bytes())
    raw[7] ^= 1
    path.write_bytes(raw)
    report = run("audit", path=str(root))
    assert sum(int(row["differing"] or 0) for row in report.tables["queues"]) == 1
    assert not report.is_good


# -- rebuild -------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", CLEAN)
def test_rebuilt_queues_and_index_are_apaches(label: str, tmp_path: Path) -> None:
    root, to = unpacked(label, tmp_path), tmp_path / "made"
    options = {
        "path": str(root), "config": str(configuration(label)), "slice_bytes": SLICE_BYTES,
    }  # fmt: skip
    report = run_well("rebuild-cq", to=str(to / "cq"), known_topics=True, **options)
    assert report.figures["queues differs"] == 0
    made = queue_files(to / "cq")
    own = {
        name: raw
        for name, raw in queue_files(root).items()
        if any(raw) or name in made  # Apache makes files of zeros for queues without a message
    }
    assert made == own
    assert len(made) >= 10
    run_well("rebuild-index", to=str(to / "ix"), tag_keys="5.5.0" in label, **options)
    assert index_files(to / "ix") == index_files(root)


def test_rebuilt_queues_and_index_are_our_brokers(tmp_path: Path) -> None:
    root, to = tmp_path / "store", tmp_path / "made"
    written_store(root)
    shutil.copytree(root, tmp_path / "lost")
    shutil.rmtree(tmp_path / "lost" / "consumequeue")
    report = run_well("rebuild-cq", path=str(root), to=str(to / "cq"), slice_bytes=4096)
    assert report.figures["messages"] == COUNT
    assert queue_files(to / "cq") == queue_files(root)
    run_well("rebuild-index", path=str(root), to=str(to / "ix"), slice_bytes=4096)
    assert index_files(to / "ix") == index_files(root)


def test_nothing_is_written_into_a_store(tmp_path: Path) -> None:
    root = tmp_path / "store"
    written_store(root)
    report = run("rebuild-cq", path=str(root), to=str(root / "new"))
    assert report.state == "failed"
    assert "lie in each other" in report.problems[0]


# -- looking at groups ---------------------------------------------------------------------------


def test_lag_of_every_group_that_is_saved(tmp_path: Path) -> None:
    root = unpacked("apache-4.9.7-clean", tmp_path)
    history = tmp_path / "history.jsonl"
    report = run_well("lag", path=[str(root)], history=str(history))
    behind = {
        row["queue"]: (row["lag"], row["bytes"])
        for row in report.tables["queues"]
        if row["group"] == "cg_partial"
    }
    assert behind[0] == (27, 6371)
    assert behind[7] == (0, 0)
    again = run_well("lag", path=[str(root)], history=str(history))
    rates = {row["reads a second"] for row in again.tables["queues"]}
    assert rates == {0.0}
    assert report_html(report).count("<svg") == 3


def test_latency_by_topic_client_and_minute(tmp_path: Path) -> None:
    root = unpacked("apache-5.5.0-clean", tmp_path)
    report = run_well("latency", path=[str(root)], topic_pattern=".*")
    assert (
        sum(int(row["messages"] or 0) for row in report.tables["topics"])
        == report.figures["messages"]
    )
    assert report.tables["clients"][0]["client"]
    assert report_html(report).count("<svg") == 3
