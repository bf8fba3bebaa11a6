"""Offsets, slices and limits without a Spark: what is cut is whole, and nothing comes twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.errors import InvalidValue
from gantrymq.spark import limits, offsets
from gantrymq.spark.backend import Bounds
from gantrymq.spark.losses import DataLoss, Losses
from gantrymq.spark.options import Positions, read_source_options
from gantrymq.spark.planning import checked_begin, slices_of
from gantrymq.spark.positions import milliseconds, offset_at, resolve
from gantrymq.spark.slices import SLICES_MAX, Pack, Queue, Slice, Span, cut, pack

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from gantrymq.spark.offsets import Offsets

QUEUES = [Queue("T", "broker-a", number) for number in range(5)]
SPANS = st.dictionaries(
    st.sampled_from(QUEUES),
    st.tuples(st.integers(0, 10**12), st.integers(0, 150_000) | st.just(2_000_000)).map(
        lambda pair: Span(pair[0], pair[0] + pair[1])
    ),
)


class Times:
    """A backend whose messages were stored at given times."""

    def __init__(self, times: list[int]) -> None:
        self.times = times

    def bounds(self, *, missing_ok: bool = False) -> dict[Queue, Bounds]:
        return {QUEUES[0]: Bounds(0, len(self.times))} if not missing_ok else {}

    def stored_at(self, _queue: Queue, offset: int) -> int | None:
        return self.times[offset] if offset < len(self.times) else None

    def rows_within(self, _queue: Queue, span: Span, bytes_max: int) -> int:
        return min(bytes_max // 100, span.end - span.begin)

    def record_bytes(self, _queue: Queue, _span: Span) -> int:
        return 100

    def committed(self, _group: str, queues: Collection[Queue]) -> Offsets:
        return dict.fromkeys(list(queues)[:1], 7)

    def slices(self, parts: Iterable[tuple[Queue, Span]]) -> list[Slice]:
        return [Slice(*queue, *span) for queue, span in parts]

    def close(self) -> None:
        pass


@given(SPANS, st.integers(2000, 300_000) | st.none(), st.integers(1, 40) | st.none())
def test_slices_cover_their_ranges_exactly(
    spans: dict[Queue, Span], rows_max: int | None, slices_min: int | None
) -> None:
    parts = cut(spans, record_bytes={}, rows_max=rows_max, slices_min=slices_min)
    for queue, span in spans.items():
        mine = sorted(part for owner, part in parts if owner == queue)
        assert all(part.begin < part.end for part in mine)
        edges = [span.begin, *(part.end for part in mine)] if mine else [span.begin]
        assert [part.begin for part in mine] == edges[:-1]
        assert edges[-1] == span.end
    if rows_max:
        # So many slices at the most, however few rows each is to have.
        least = (
            max([(span.end - span.begin) // SLICES_MAX for span in spans.values()], default=0) + 1
        )
        assert all(part.end - part.begin <= max(rows_max, least) for _queue, part in parts)
    rows = sum(span.end - span.begin for span in spans.values())
    if slices_min and rows >= slices_min * 5:
        assert len(parts) >= slices_min


def test_there_is_a_bound_to_slices() -> None:
    spans = {QUEUES[0]: Span(0, SLICES_MAX * 2)}
    parts = cut(spans, record_bytes={}, rows_max=1, slices_min=None)
    assert len(parts) == SLICES_MAX
    assert {part.end - part.begin for _queue, part in parts} == {2}


def test_a_stream_is_cut_the_same_way_whatever_samples_say() -> None:
    """Sinks name rows by partition and number: a replay must find the same ones there."""
    options = read_source_options({"nameServer": "127.0.0.1:1", "topic": "T"})
    spans = {queue: Span(0, 300_000) for queue in QUEUES}

    class Sampled(Times):
        def record_bytes(self, _queue: Queue, _span: Span) -> int:
            return len(self.times)

    cuts = [
        [
            (part.queue, part.begin, part.end)
            for part in slices_of(options, Sampled([0] * size), spans, is_replayable=is_stream)
        ]
        for size in (100, 5000)
        for is_stream in (True, False)
    ]
    assert cuts[0] == cuts[2]
    assert cuts[1] != cuts[3]  # a batch goes by what messages take


@given(SPANS, st.booleans())
def test_packs_hold_every_slice_once(spans: dict[Queue, Span], asks: bool) -> None:
    parts = Times([]).slices(cut(spans, record_bytes={}, rows_max=None, slices_min=None))
    packs = pack(parts, slices_min=1 if asks else None)
    held = [one for each in packs if isinstance(each, Pack) for one in each.slices]
    assert sorted(held, key=repr) == sorted(parts, key=repr)
    assert not asks or len(packs) == len(parts)


@given(SPANS, st.integers(1, 10_000_000))
def test_a_limit_of_rows_is_kept_and_used(spans: dict[Queue, Span], rows_max: int) -> None:
    found = limits.share_rows(spans, rows_max)
    total = sum(span.end - span.begin for span in spans.values())
    taken = sum(span.end - span.begin for span in found.values())
    assert taken == min(total, rows_max)
    for queue, span in found.items():
        assert span.begin == spans[queue].begin
        assert span.end <= spans[queue].end


@given(SPANS, st.integers(1, 10_000_000))
def test_a_limit_of_bytes_always_gets_on(spans: dict[Queue, Span], bytes_max: int) -> None:
    found = limits.share_bytes(spans, bytes_max, Times([]))
    taken = sum(span.end - span.begin for span in found.values())
    waiting = sum(span.end - span.begin for span in spans.values())
    assert bool(taken) == bool(waiting)
    assert taken * 100 <= max(bytes_max, 100)


@given(st.dictionaries(st.sampled_from(QUEUES), st.integers(0, 2**62)))
def test_offsets_are_what_they_were(known: dict[Queue, int]) -> None:
    text = json.dumps(offsets.encode(known))
    assert offsets.decode(json.loads(text)) == known
    again = dict(sorted(known.items(), reverse=True))
    assert json.dumps(offsets.encode(again)) == text  # Spark compares texts


@pytest.mark.parametrize("told", [{"v": 2, "q": {}}, {"T": {}}, [], None])
def test_offsets_of_another_kind_are_refused(told: object) -> None:
    with pytest.raises(InvalidValue, match="version"):
        offsets.decode(told)


@given(st.lists(st.integers(0, 50), max_size=60).map(sorted), st.integers(-1, 51))
def test_a_time_is_the_first_message_stored_then(times: list[int], time_ms: int) -> None:
    found = offset_at(Times(times), QUEUES[0], Bounds(0, len(times)), time_ms)
    assert all(stored < time_ms for stored in times[:found])
    assert all(stored >= time_ms for stored in times[found:])


def test_words_groups_and_json_become_offsets() -> None:
    backend, bounds = Times([]), {queue: Bounds(5, 50) for queue in QUEUES[:2]}
    assert resolve(Positions("earliest"), bounds, backend, "x") == dict.fromkeys(bounds, 5)
    assert resolve(Positions("latest"), bounds, backend, "x") == dict.fromkeys(bounds, 50)
    by_group = resolve(Positions("group", "g"), bounds, backend, "x")
    assert by_group == {QUEUES[0]: 7, QUEUES[1]: 5}
    text = json.dumps({"T": {"broker-a": {"0": -1}}})
    given_offsets = resolve(Positions("offsets", text), bounds, backend, "startingOffsets")
    assert given_offsets == {QUEUES[0]: 50, QUEUES[1]: 5}
    ends = resolve(Positions("offsets", text), bounds, backend, "endingOffsets")
    assert ends == {QUEUES[0]: 50, QUEUES[1]: 50}
    wrong = Positions("offsets", json.dumps({"T": {"broker-a": {"4": 1}}}))
    with pytest.raises(InvalidValue, match="T@broker-a:4"):
        resolve(wrong, bounds, backend, "startingOffsets")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1794800000000", 1_794_800_000_000),
        ("2026-11-16T12:00:00Z", 1_794_830_400_000),
        ("2026-11-16T13:00:00+01:00", 1_794_830_400_000),
        ("2026-11-16 12:00:00", 1_794_830_400_000),
    ],
)
def test_times_are_read_in_both_forms(text: str, expected: int) -> None:
    assert milliseconds(text, "startingTimestamp") == expected


def test_what_is_gone_is_an_error_or_written_down_once(tmp_path: Path) -> None:
    queue = QUEUES[0]
    with pytest.raises(DataLoss, match="messages 3 to 10"):
        checked_begin(queue, 3, 40, Bounds(10, 50), Losses())
    losses = Losses("skip", str(tmp_path))
    assert checked_begin(queue, 3, 40, Bounds(10, 50), losses) == 10
    assert checked_begin(queue, 3, 40, Bounds(10, 50), losses) == 10
    assert checked_begin(queue, 3, 8, Bounds(10, 50), losses) == 8
    assert checked_begin(queue, 20, 40, Bounds(10, 50), losses) == 20
    (first, second) = sorted(tmp_path.glob("*.json"))
    row = json.loads(first.read_text())
    assert (row["topic"], row["begin"], row["end"]) == ("T", 3, 10)
    assert json.loads(second.read_text())["end"] == 8
