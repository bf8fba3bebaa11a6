"""Search: messages by key, id, text, JSON path and time, in a lake and in what came since.

A broker's own query stops at 64 hits, knows keys only, and nothing that has expired. Here the lake
is asked first: only files whose time, topic and key filter allow a hit are opened. Then the live
tail, from where the lake ends.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from gantrymq.errors import GantryError, InvalidValue
from gantrymq.spark.backend import open_backend
from gantrymq.spark.jobs.job import Context, Job
from gantrymq.spark.jobs.lake import LAKE_COLUMNS, Lake, LakeFile
from gantrymq.spark.jobs.lake_read import chosen_files, lake_frame, time_ms
from gantrymq.spark.jobs.sources import ReadOptions
from gantrymq.spark.offsets import encode
from gantrymq.spark.reading import read_slice
from gantrymq.spark.schema import WantedColumn, ddl
from gantrymq.spark.slices import Queue, Span

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from gantrymq.spark.report.values import Row

BODY_CHARACTERS_MAX: Final = 400
SAMPLED_FILES_MAX: Final = 3
"""Files that were passed over and are read in full, to see whether that was right."""
_COLUMNS: Final = ("topic", *LAKE_COLUMNS)


class SearchOptions(ReadOptions, kw_only=True, frozen=True):
    """What `search` wants to know."""

    lake: Annotated[str | None, Meta(description="a lake that `archive` has made")] = None
    key: Annotated[str | None, Meta(description="a key, or the unique key of a message")] = None
    id: Annotated[str | None, Meta(description="the message id that brokers give")] = None
    text: Annotated[str | None, Meta(description="text within the body")] = None
    json_path: Annotated[
        tuple[str, ...], Meta(description="PATH=VALUE in a JSON body, as $.order.id=42")
    ] = ()
    since: Annotated[str | None, Meta(description="stored at this time or later")] = None
    until: Annotated[str | None, Meta(description="stored before this time")] = None
    limit: Annotated[int, Meta(ge=1, le=1_000_000, description="hits that are shown")] = 1000
    out: Annotated[str | None, Meta(description="write all hits, whole, as Parquet here")] = None


def plan(options: SearchOptions, context: Context) -> None:
    """Say where would be looked."""
    if not options.lake and not options.has_source:
        raise InvalidValue("nowhere to look: give --lake, or --name-server or --path, or both")
    if not any(
        (options.key, options.id, options.text, options.json_path, options.since, options.until)
    ):
        raise InvalidValue(
            "nothing to look for: --key, --id, --text, --json-path, --since or --until"
        )
    for one in options.json_path:
        if not one.startswith("$") or "=" not in one:
            raise InvalidValue(f"--json-path {one!r}: PATH=VALUE is wanted, as $.order.id=42")
    for option in ("since", "until"):
        time_ms(getattr(options, option), option)
    if options.lake:
        lake = Lake.open(options.lake, must_exist=True)
        files = _files(options, lake)
        known = [one for one in lake.files() if one.path]
        context.report.plan.append(
            f"read {len(files)} of {len(known)} files of {lake.root}, "
            f"{sum(one.size for one in files)} of {sum(one.size for one in known)} bytes"
        )
    if options.has_source:
        context.report.plan.append(
            f"then the live messages{' behind the end of the lake' if options.lake else ''}"
        )


def _files(options: SearchOptions, lake: Lake) -> list[LakeFile]:
    return chosen_files(
        lake,
        topics=options.topic,
        from_ms=time_ms(options.since, "since"),
        to_ms=time_ms(options.until, "until"),
        key=options.key,
    )


def matching(frame: DataFrame, options: SearchOptions) -> DataFrame:
    """Return the rows of a frame that are looked for."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    wanted: list[Column] = []
    body = f.col("body").cast("string")
    if options.key is not None:
        words = f.split(f.coalesce(f.col("keys"), f.lit("")), "\\s+")
        wanted.append(f.array_contains(words, options.key) | (f.col("uniqKey") == options.key))
    if options.id is not None:
        wanted.append(f.col("msgId") == options.id.upper())
    if options.text is not None:
        wanted.append(f.contains(body, f.lit(options.text)))
    for one in options.json_path:
        path, _equals, value = one.partition("=")
        wanted.append(f.get_json_object(body, path) == value)
    since, until = time_ms(options.since, "since"), time_ms(options.until, "until")
    if since is not None:
        wanted.append(f.col("storeTimestamp") >= f.timestamp_millis(f.lit(since)))
    if until is not None:
        wanted.append(f.col("storeTimestamp") < f.timestamp_millis(f.lit(until)))
    for condition in wanted:
        frame = frame.where(condition)
    return frame


def run(options: SearchOptions, context: Context) -> None:
    """Look, and report the hits."""
    frames, lake = list[Any](), None
    figures = context.report.figures
    if options.lake:
        lake = Lake.open(options.lake, must_exist=True)
        files = _files(options, lake)
        figures["lake files read"] = len(files)
        figures["lake files passed over"] = sum(bool(one.path) for one in lake.files()) - len(files)
        frames.append(lake_frame(context.spark, lake, files).select(*_COLUMNS))
    if options.has_source:
        frames += live_frames(options, context, lake)
    found: Any = None
    for frame in frames:
        hits = matching(frame, options)
        found = hits if found is None else found.unionByName(hits)
    with context.progress("search"):
        _collect(options, context, found)


def live_frames(options: SearchOptions, context: Context, lake: Lake | None) -> list[DataFrame]:
    """Return what is live and not in the lake."""
    starting = options.starting_offsets
    if lake is not None:
        backend = open_backend(options.parsed())
        try:
            bounds = backend.bounds()
        finally:
            backend.close()
        ends = {queue: max(end, bounds[queue].least) for queue, end in lake.ends().items()
                if queue in bounds}  # fmt: skip
        starting = json.dumps(encode(ends)) if ends else starting
    return [options.frame(context, ddl(_COLUMNS), startingOffsets=starting)]


def _collect(options: SearchOptions, context: Context, found: Any) -> None:  # noqa: ANN401
    report = context.report
    if found is None:
        report.add_table("hits", [])
        return
    if options.out is not None:
        found.write.mode("overwrite").parquet(options.out)
        found = context.spark.read.parquet(options.out)
        report.figures["written to"] = options.out
    ordered = found.orderBy("storeTimestamp", "brokerName", "physicalOffset")
    rows = ordered.limit(options.limit + 1).collect()
    report.figures["hits"] = min(len(rows), options.limit)
    report.figures["there are more"] = len(rows) > options.limit
    report.add_table("hits", [_hit(row) for row in rows[: options.limit]])


def _hit(row: Any) -> Row:  # noqa: ANN401
    body = bytes(row.body or b"")
    return {
        "topic": row.topic, "broker": row.brokerName, "queue": row.queueId,
        "offset": row.queueOffset, "stored": row.storeTimestamp.isoformat(),
        "keys": row.keys, "tags": row.tags, "id": row.msgId, "log offset": row.physicalOffset,
        "crc": row.bodyCrc,
        "body": body.decode(errors="replace")[:BODY_CHARACTERS_MAX],
    }  # fmt: skip


def check(options: SearchOptions, context: Context) -> None:
    """Read each hit again from the log, and look into files that were passed over."""
    report = context.report
    if "hits" not in report.tables:
        plan(options, context)
        run(options, context)
    if options.has_source:
        same, gone, wrong = _read_again(options, report.tables["hits"])
        report.add_check(
            "hits are in the log", not wrong,
            f"{same} the same, {gone} not in the log any more, {len(wrong)} differ"
            + "".join(f"; {one}" for one in wrong[:3]),
        )  # fmt: skip
    if options.lake:
        lake = Lake.open(options.lake, must_exist=True)
        chosen = {one.path for one in _files(options, lake)}
        passed = [
            one
            for one in lake.files()
            if one.path
            and one.path not in chosen
            and (not options.topic or one.topic in options.topic)
        ][:SAMPLED_FILES_MAX]
        missed = matching(lake_frame(context.spark, lake, passed), options).count() if passed else 0
        report.add_check(
            "files passed over have no hit", missed == 0,
            f"{len(passed)} of them read in full, {missed} hits",
        )  # fmt: skip


def _read_again(options: SearchOptions, hits: list[Row]) -> tuple[int, int, list[str]]:
    """Return how many hits the log has as well, how many not any more, and which differ."""
    source = options.parsed(startingOffsets=None, endingOffsets=None)
    same = gone = 0
    wrong: list[str] = []
    backend = open_backend(source)
    try:
        bounds = backend.bounds()
        wanted = (WantedColumn("bodyCrc", nullable=True), WantedColumn("msgId", nullable=True))
        for hit in hits:
            queue = Queue(str(hit["topic"]), str(hit["broker"]), int(hit["queue"] or 0))
            offset = int(hit["offset"] or 0)
            if queue not in bounds or not bounds[queue].least <= offset < bounds[queue].most:
                gone += 1
                continue
            (part,) = backend.slices([(queue, Span(offset, offset + 1))])
            try:
                rows = [
                    row for batch in read_slice(source, wanted, part) for row in batch.to_pylist()
                ]
            except GantryError as error:
                wrong.append(f"{queue} {offset}: {error}")
                continue
            if rows == [{"bodyCrc": hit["crc"], "msgId": hit["id"]}]:
                same += 1
            else:
                wrong.append(f"{queue} {offset}: the log has {rows}")
    finally:
        backend.close()
    return same, gone, wrong


JOB: Final = Job(
    name="search",
    summary="messages by key, text, JSON path or time, in a lake and live",
    text="""\
Find messages by key, message id, text in the body, a value in a JSON body, and time; in a lake, in
topics (brokers or store directories), or in both: the lake first, then what came since. Hits are
shown, and written whole with --out.""",
    options=SearchOptions,
    plan=plan,
    run=run,
    check=check,
)

if __name__ == "__main__":
    from gantrymq.spark.jobs.command import main
    from gantrymq.spark.jobs.search import JOB as SELF

    main(SELF)
