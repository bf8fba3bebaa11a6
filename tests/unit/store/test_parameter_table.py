"""The table of store parameters: one value of each that is seen to be other than its default.

Every row is run twice, with the parameter and without. What is seen must differ, so that no row can
pass with a parameter that nobody reads.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from gantrymq.store.settings import known_settings
from support import parameter_effects as seen
from support.parameter_effects import EVERY_HOUR, EXT, HOUR, NEVER, PAGE

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE_OF_ROWS = Path(__file__).parents[3] / "docs" / "requirements.md"
STEP_S = 0.051
"""Time passes in steps of 0.05 s."""


class Effect(NamedTuple):
    """A parameter, a value, and what is seen without it and with it."""

    name: str
    value: str
    see: Callable[[dict[str, str]], Any]
    default: object
    changed: object
    around: dict[str, str] = {}  # noqa: RUF012  (never written)


TABLE = (
    Effect("storePathRootDir", "/elsewhere", seen.places,
           ["/store/commitlog", "/store"], ["/elsewhere/commitlog", "/elsewhere"]),
    Effect("storePathCommitLog", "/log", seen.places,
           ["/store/commitlog", "/store"], ["/log", "/store"]),
    Effect("mappedFileSizeCommitLog", "12288", seen.log_length, 4096, 12288),
    Effect("mappedFileSizeConsumeQueue", "390", seen.queue_length, 200, 400),
    Effect("enableConsumeQueueExt", "true", seen.extension_lengths, [], [48 << 20]),
    Effect("mappedFileSizeConsumeQueueExt", "2048", seen.extension_lengths,
           [48 << 20], [2048], EXT),
    Effect("flushIntervalCommitLog", "2000", seen.seconds_to_force(bytes(4 * PAGE)), 0.5, 2.0),
    Effect("flushCommitLogLeastPages", "2", seen.seconds_to_force(bytes(2 * PAGE)), 10.0, 0.5),
    Effect("flushCommitLogThoroughInterval", "3000", seen.seconds_to_force(b"x"), 10.0, 3.0),
    Effect("flushCommitLogTimed", "false", seen.seconds_to_force(bytes(8 * PAGE)), 0.5, 0.0),
    Effect("commitIntervalCommitLog", "1000", seen.seconds_to_commit(b"x"), 0.2, 1.0),
    Effect("commitCommitLogLeastPages", "0", seen.seconds_to_commit(b"x"), 0.2, 0.0),
    Effect("commitCommitLogThoroughInterval", "700", seen.seconds_to_commit(b"x"), 0.2, 0.85),
    Effect("flushIntervalConsumeQueue", "3000", seen.seconds_to_queue_file, 1.0, 3.0),
    Effect("flushConsumeQueueLeastPages", "0", seen.seconds_to_queue_file_among_many, 60.0, 1.0),
    Effect("flushConsumeQueueThoroughInterval", "5000", seen.seconds_to_queue_force, 60.0, 5.0),
    Effect("cleanResourceInterval", "20000", seen.seconds_to_see_a_full_disk, 10.0, 20.0),
    Effect("deleteCommitLogFilesInterval", "3000", seen.seconds_between_log_files, 0.1, 3.0),
    Effect("deleteConsumeQueueFilesInterval", "7000", seen.seconds_between_queues, 0.1, 7.0),
    Effect("redeleteHangedFileInterval", "30000", seen.seconds_to_the_next_try, 120.0, 30.0),
    Effect("deleteWhen", f"{HOUR:02d}", seen.deletes(), False, True, NEVER),
    Effect("fileReservedTime", "97", seen.deletes(), True, False, EVERY_HOUR),
    Effect("diskMaxUsedSpaceRatio", "50", seen.deletes(60), False, True, NEVER),
    Effect("maxMessageSize", "1000", seen.largest_body, 4 << 20, 1000),
    Effect("checkCRCOnRecover", "false", seen.messages_behind_a_damaged_body, 1, 3),
    Effect("flushLeastPagesWhenWarmMapedFile", "1", seen.forces_while_warming, 1, 8),
)  # fmt: skip
LIKE_APACHE = {"putMsgIndexHightWater", "bitMapLengthConsumeQueueExt"}
"""RocketMQ reads the first nowhere and sets the second itself; so does this store."""
NO_EFFECT = {
    "useReentrantLockWhenPutMessage",
    "destroyMapedFileIntervalForcibly",
}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_a_parameter_is_seen(row: Effect) -> None:
    found = [row.see(row.around | change) for change in ({}, {row.name: row.value})]
    wanted = [row.default, row.changed]
    if isinstance(row.default, float):
        assert found == [pytest.approx(one, abs=STEP_S) for one in wanted]
    else:
        assert found == wanted
    assert found[0] != found[1], "it could be ignored and nobody would notice"


def test_the_table_is_whole() -> None:
    text = PAGE_OF_ROWS.read_text(encoding="utf-8").partition("## Store parameters")[2]
    rows = dict(re.findall(r"^\| ([a-z]\w+[A-Z]\w+) \| ([a-z ]+) \|", text, re.MULTILINE))
    newer = {name.replace("mapedFileSizeCo", "mappedFileSizeCo"): rows[name] for name in rows}
    assert len(newer) == 30
    assert newer.keys() == {row.name for row in TABLE} | LIKE_APACHE | NO_EFFECT
    assert {name for name, state in newer.items() if state == "no effect"} == NO_EFFECT
    meanings = {row.names[0]: row.meaning for row in known_settings()}
    said = {name for name, meaning in meanings.items() if "no effect" in meaning}
    assert said >= LIKE_APACHE | NO_EFFECT, "getBrokerConfig's page says so too"
    assert not said & {row.name for row in TABLE}
