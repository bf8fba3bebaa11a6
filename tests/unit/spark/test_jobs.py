"""What jobs are made of, without Spark: options, manifests, slices of a log, key filters, pages."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gantrymq.cli.main import main
from gantrymq.errors import InvalidValue
from gantrymq.spark.jobs import JOB_MODULES, load_job
from gantrymq.spark.jobs.archive import Planned, covered, shared_ends
from gantrymq.spark.jobs.key_filter import key_filter, may_have
from gantrymq.spark.jobs.lake import (
    Batch,
    Lake,
    LakeConflict,
    LakeFile,
    file_path,
    joined_ranges,
)
from gantrymq.spark.jobs.log_scan import PACK_BYTES_MAX, packed
from gantrymq.spark.jobs.log_slices import Edge, LogSlice, join_edges, realigned
from gantrymq.spark.jobs.slice_walk import SliceWalk, auditing, dispatching
from gantrymq.spark.report.html import report_html
from gantrymq.spark.report.svg import nice_ceiling, plot_svg, short_number
from gantrymq.spark.report.text import report_text
from gantrymq.spark.report.values import Plot, Report, Series
from gantrymq.spark.slices import Queue, Slice
from support.small_stores import written_store

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = Queue("Orders", "broker-a", 0)


def lake_range(begin: int, end: int, path: str = "x") -> LakeFile:
    return LakeFile("Orders", "broker-a", 0, begin, end, end - begin, 7, path)


def batch(number: int, *files: LakeFile, replaced: tuple[str, ...] = ()) -> Batch:
    ends: dict[str, object] = {"v": 1, "q": {"Orders": {"broker-a": {"0": files[-1].end}}}}
    return Batch(number, "archive", 1, ends, ends, list(files), list(replaced))


def commit(lake: Lake, made: Batch) -> None:
    """Commit a batch whose files are there."""
    for one in made.files:
        (lake.root / one.path).touch()
    lake.commit(made)


# -- the command line ----------------------------------------------------------------------------


def test_every_job_has_help_a_module_and_its_own_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "list"]) == 0
    listed = capsys.readouterr().out
    for name, (_module, summary) in JOB_MODULES.items():
        job = load_job(name)
        assert (job.name, job.summary) == (name, summary)
        assert f"{name} " in listed
        with pytest.raises(SystemExit) as left:
            main(["pipeline", "run", name, "--help"])
        assert left.value.code == 0
        assert "--dry-run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "nothing"], "there is no job 'nothing'"),
        (["run", "audit"], "--path is needed"),
        (["run", "audit", "--path", "x", "--slice-bytes", "1"], "--slice-bytes: expected `int` >="),
        (["run", "audit", "--path", "x", "--dry-run", "--check-only"], "choose one"),
        (["run", "audit", "--path", "x", "--conf", "oops"], "KEY=VALUE is wanted"),
        (["run", "archive", "--to", "x", "--compression", "rar"], "--compression"),
        (["nonsense"], "there is no command 'nonsense'"),
    ],
)
def test_bad_usage_is_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["pipeline", *arguments])
    printed = capsys.readouterr().err
    assert left.value.code == 2
    assert said in printed
    assert printed.count("\n") == 1


def test_a_spec_file_and_a_dry_run_without_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "store"
    written_store(root)
    spec = tmp_path / "audit.toml"
    spec.write_text(f'path = "{root}"\nslice-bytes = 4096\n')
    report = tmp_path / "report.json"
    arguments = ["--spec", str(spec), "--dry-run", "--report", str(report)]
    assert main(["pipeline", "run", "audit", *arguments]) == 0
    assert "Nothing is written" in capsys.readouterr().out
    assert b'"state": "planned"' in report.read_bytes()
    spec.write_text('pfad = "x"\n')
    with pytest.raises(SystemExit):
        main(["pipeline", "run", "audit", "--spec", str(spec)])
    assert "no option 'pfad'" in capsys.readouterr().err


def test_the_command_line_does_not_load_spark() -> None:
    code = """import sys, gantrymq.cli.main as m
m.main(["pipeline", "list"])
print({"pyspark", "pyarrow", "pandas"} & set(sys.modules))"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.endswith("set()\n")


# -- lakes ---------------------------------------------------------------------------------------


def test_a_batch_has_its_number_once(tmp_path: Path) -> None:
    first, second = Lake.open(str(tmp_path)), Lake.open(str(tmp_path))
    commit(first, batch(0, lake_range(0, 10)))
    with pytest.raises(LakeConflict, match="another job"):
        commit(second, batch(0, lake_range(0, 20)))
    assert Lake.open(str(tmp_path)).ends() == {ORDERS: 10}


def test_a_lake_has_one_writer(tmp_path: Path) -> None:
    code = f"""from gantrymq.spark.jobs.lake import Lake
with Lake.open({str(tmp_path)!r}).writing(): print("in")"""
    program = [sys.executable, "-c", code]
    with Lake.open(str(tmp_path)).writing():
        refused = subprocess.run(program, capture_output=True, text=True, check=False)
    assert "another job writes to this lake" in refused.stderr
    assert subprocess.run(program, capture_output=True, text=True, check=True).stdout == "in\n"


def test_a_file_that_is_gone_is_not_committed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Lake.open(str(tmp_path)).commit(batch(0, lake_range(0, 10)))
    assert Lake.open(str(tmp_path)).ends() == {}


def test_ranges_that_do_not_touch_are_named() -> None:
    (whole,) = joined_ranges([lake_range(0, 10), lake_range(12, 20), lake_range(19, 30)])
    assert whole.seams == [
        "Orders@broker-a:0: messages 10 to 12 are missing",
        "Orders@broker-a:0: messages 19 to 20 are there twice",
    ]
    (good,) = joined_ranges([lake_range(5, 10), lake_range(10, 20)])
    assert (good.begin, good.end, good.rows, good.seams) == (5, 20, 15, [])


def test_a_manifest_that_is_missing_is_named(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    commit(lake, batch(0, lake_range(0, 10)))
    commit(lake, batch(1, lake_range(10, 20)))
    (tmp_path / "manifest" / "00000000.json").unlink()
    with pytest.raises(InvalidValue, match=r"00000000\.json is missing"):
        Lake.open(str(tmp_path))


def test_what_was_replaced_does_not_count(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    commit(lake, batch(0, lake_range(0, 10, "a"), lake_range(10, 20, "b")))
    commit(lake, batch(1, lake_range(0, 20, "c"), replaced=("a", "b")))
    assert [one.path for one in Lake.open(str(tmp_path)).files()] == ["c"]


def test_names_of_files_are_safe() -> None:
    path = file_path(3, Queue("%DLQ%a/b", "x/y", 2), 0, 9, "2026-11-16")
    assert path == "data/topic=%25DLQ%25a%2Fb/day=2026-11-16/b00000003-x%2Fy-2-0-9.parquet"


def test_a_batch_is_shared_among_queues() -> None:
    other = Queue("Orders", "broker-a", 1)
    ends = shared_ends({ORDERS: 10, other: 0}, {ORDERS: 10_010, other: 100}, 1010)
    assert ends == {ORDERS: 1010, other: 10}
    assert shared_ends({ORDERS: 5}, {ORDERS: 5}, 1) == {ORDERS: 5}


def test_what_tasks_did_not_write_is_not_committed() -> None:
    """As when the JVM dies while results are collected: the list is short, and nothing says so."""
    slices = [Slice("Orders", "broker-a", 0, 20, 60), Slice("Orders", "broker-a", 0, 60, 100)]
    planned = Planned({ORDERS: 0}, {ORDERS: 100}, slices)
    written = [lake_range(20, 60), lake_range(60, 100)]
    found = covered(written, planned)
    assert [(one.begin, one.end, one.rows) for one in found] == [
        (0, 20, 0), (20, 60, 40), (60, 100, 40),
    ]  # fmt: skip
    for short in ([], written[:1], written[1:]):
        with pytest.raises(InvalidValue, match="was planned"):
            covered(short, planned)


def test_a_key_filter_never_says_no_to_a_key_it_has() -> None:
    keys = {f"key-{number}" for number in range(2000)}
    raw = key_filter(keys)
    assert all(may_have(raw, key) for key in keys)
    assert sum(may_have(raw, f"other-{number}") for number in range(2000)) < 80
    with pytest.raises(InvalidValue):
        may_have(raw[:-1], "key-1")


# -- slices of a log -----------------------------------------------------------------------------


@pytest.mark.parametrize("slice_bytes", [300, 1000, 4096, 10**6])
def test_slices_of_any_size_see_every_record_once(slice_bytes: int, tmp_path: Path) -> None:
    from gantrymq.spark.jobs.log_slices import open_store, plan_slices  # noqa: PLC0415

    written_store(tmp_path / "store")
    store = open_store(str(tmp_path / "store"))
    slices = plan_slices(store, slice_bytes=slice_bytes)
    walks = [SliceWalk(piece, auditing(())) for piece in slices]
    records = sum(part.records for walk in walks for part in walk.parts())
    joined = join_edges(slices, [walk.edge for walk in walks])
    whole = [SliceWalk(piece, dispatching(())) for piece in plan_slices(store, slice_bytes=10**9)]
    assert records == sum(part.records for walk in whole for part in walk.parts())
    assert joined.damages == []
    assert joined.tail is None
    assert not joined.misaligned


@pytest.mark.parametrize(("count", "tasks"), [(0, 4), (1, 4), (3, 4), (77, 4), (77, 16)])
def test_tasks_get_neighbouring_slices_and_the_same_share(count: int, tasks: int) -> None:
    size = 64 << 20
    last = size // 3  # a log ends within a slice
    slices = [
        piece(number, number * size, number * size + (last if number == count - 1 else size))
        for number in range(count)
    ]
    packs = packed(slices, tasks)
    assert [one for some in packs for one in some] == slices
    assert len(packs) == min(count, tasks)
    shares = [sum(one.end - one.begin for one in some) for some in packs]
    assert count < 2 or max(shares) - min(shares) <= 2 * size


def test_of_a_long_log_no_task_gets_more_than_it_can_lose() -> None:
    slices = [piece(number, number << 26, (number + 1) << 26) for number in range(1000)]
    packs = packed(slices, 2)
    assert max(map(len, packs)) << 26 <= PACK_BYTES_MAX + (2 << 26)


def piece(number: int, begin: int, end: int, *, exact: bool = False) -> LogSlice:
    return LogSlice(number, "f", 0, begin, end, 1000, exact)


def test_a_record_within_a_body_is_seen_by_the_join() -> None:
    slices = [piece(0, 0, 500, exact=True), piece(1, 500, 1000)]
    # The first slice's last record ends at 700; the second believed in one at 600.
    joined = join_edges(slices, [Edge(0, 0, 700), Edge(1, 600, 1000)])
    assert joined.misaligned == {1: 700}
    again = realigned(slices, joined.misaligned)
    assert (again[1].begin, again[1].is_exact) == (700, True)
    good = join_edges(again, [Edge(0, 0, 700), Edge(1, 700, 1000)])
    assert (good.end, good.damages, good.misaligned) == (1000, [], {})


def test_bytes_between_two_slices_are_damage() -> None:
    slices = [piece(0, 0, 500, exact=True), piece(1, 500, 1000)]
    joined = join_edges(slices, [Edge(0, 0, 520), Edge(1, 800, 1000)])
    assert [(one.log_offset, one.size) for one in joined.damages] == [(520, 280)]


# -- reports -------------------------------------------------------------------------------------


def test_a_page_needs_nothing_else_and_escapes_what_it_shows() -> None:
    report = Report("audit", {}, state="done", started_ms=1_794_000_000_000)
    report.figures["records"] = 1_234_567
    report.add_table("queues", [{"topic": "<script>alert(1)</script>", "messages": 3}])
    report.add_problem("something & something")
    report.add_check("sums", False, "1 is not 2")
    plot = Plot(
        "bytes", "bars", ["a", "b"], [Series("x", [1.0, 2.5]), Series("y", [0.0, 9.0])], "B"
    )
    report.plots = [plot, Plot("times", "lines", ["1"], [Series("x", [3.0])])]
    page = report_html(report)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "1,234,567" in page
    assert page.count("<svg") == 2
    assert page.count("<rect") == 4
    assert "src=" not in page
    assert "FAILED" in page
    assert "sums: 1 is not 2" in report_text(report)


def test_axes_end_at_round_numbers() -> None:
    assert [nice_ceiling(value) for value in (0, 0.7, 1, 3, 11, 260)] == [1, 1, 1, 5, 20, 500]
    assert [short_number(value) for value in (0, 950, 1500, 2.5e9)] == [
        "0",
        "950",
        "1.5 k",
        "2.5 G",
    ]


def test_a_plot_of_many_points_keeps_its_peak() -> None:
    values = [0.0] * 5000
    values[4321] = 7.0
    labels = [str(number) for number in range(5000)]
    drawn = plot_svg(Plot("p", "lines", labels, [Series("x", values)]))
    assert len(drawn) < 40_000
    heights = {point.split(",")[1] for point in drawn.split('points="')[1].split('"')[0].split()}
    assert len(heights) == 2  # nothing, and the peak
