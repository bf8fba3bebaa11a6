"""One byte of a store changed, or a file cut short: what a broker serves was stored, all the same.

A sample of what `every_byte.py` does with every byte (`make flips`). Which fields of a message can
be damaged without anybody noticing is in `support.flips.UNCHECKED`; a body is never among them.
"""

from __future__ import annotations

from random import Random

import pytest

from support.flips import CHECK_SUM, NO_RECORD, ROOT, Sample, cut, flip

BYTES_A_KIND = 40
CUTS_A_KIND = 6


@pytest.fixture(scope="module", params=["clean", "crash"])
def sample(request: pytest.FixtureRequest) -> Sample:
    return Sample(clean=request.param == "clean")


def kinds(sample: Sample) -> set[str]:
    return {path.relative_to(ROOT).parts[0] for path in sample.files}


def test_the_sample_has_a_file_of_every_kind(sample: Sample) -> None:
    found = {"checkpoint", "commitlog", "config", "consumequeue", "index", "lock", "timerslots"}
    assert kinds(sample) >= found | (set() if sample.clean else {"abort"})
    assert len(sample.stored) == 21
    names = {path.name for path in sample.files}
    assert {"live.properties", "timercheck", "progress", "delayOffset.json"} <= names
    assert [name for name in names if name.isdecimal() and len(name) < 20], "no minute of timers"
    backups = [path.name for path in sample.files if path.suffix == ".bak"]
    assert {"topics.json.bak", "consumerOffset.json.bak", "subscriptionGroup.json.bak"} <= set(
        backups
    )
    assert len([path for path in sample.files if "commitlog" in path.parts]) >= 2


def test_a_changed_byte_is_noticed_or_harmless(sample: Sample) -> None:
    dice = Random(f"flips {sample.clean}")
    served_less = 0
    for kind in sorted(kinds(sample)):
        places = [
            (path, position)
            for path, data in sample.files.items()
            if path.relative_to(ROOT).parts[0] == kind
            for position in range(len(data))
        ]
        for path, position in dice.sample(places, min(BYTES_A_KIND, len(places))):
            found = sample.outcome(path, flip(position), waits=True)
            assert sample.problem(path, position, found) is None, (path, position)
            served_less += bool(found.missing or found.refused)
    assert served_less > 3, "nothing was ever noticed: the changes do not reach the broker"


def test_a_body_that_was_changed_is_never_served(sample: Sample) -> None:
    for record in sample.records[:6]:
        path = next(
            one
            for one in sample.files
            if one.name == f"{record.log_offset // 2048 * 2048:020d}" and "commitlog" in one.parts
        )
        at = sample.files[path].index(record.body)
        found = sample.outcome(path, flip(at + len(record.body) // 2))
        assert not {"body", CHECK_SUM, NO_RECORD} & {*found.wrong, *found.viewed_wrong}
        assert found.refused or len(found.missing) == 1


def test_a_file_that_was_cut_short_is_noticed_or_made_good(sample: Sample) -> None:
    dice = Random(f"cuts {sample.clean}")
    for path, data in sample.files.items():
        for length in {0, *(dice.randrange(len(data)) for _ in range(CUTS_A_KIND))}:
            found = sample.outcome(path, cut(length))
            assert not {"body", CHECK_SUM, NO_RECORD} & {*found.wrong, *found.viewed_wrong}, path
            kind = path.relative_to(ROOT).parts[0]
            if kind in {"index", "checkpoint", "abort", "lock", "timerslots", "config"}:
                # An index of another length may be one of other settings: that is said.
                is_told = kind == "index" and "maxHashSlotNum" in found.refused
                assert is_told or not found.refused, (path, length)
                assert path.name.startswith("topics.json") or not found.missing, (path, length)
