"""The file of a job, and a loop that has others to serve."""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from gantrymq.admin import redrive_files
from gantrymq.admin.journal import JobInUse, Journal
from gantrymq.admin.redrive import read_state, shorten
from gantrymq.admin.redrive_files import WHOLE_MAX, make_room
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOB = {"job": "redrive"}


def test_reading_and_forcing_are_not_done_on_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on: list[str] = []
    _watch(monkeypatch, "lines", lambda: on.append(_thread()))
    _watch(monkeypatch, "force", lambda: on.append(_thread()))

    async def main() -> None:
        async with Journal(tmp_path / "job", JOB) as journal:
            journal.add([{"window": "b:0", "from": 0, "to": 2, "ends": {}}])
            journal.add([{"q": "b:0", "o": 0, "r": "sent"}])
            state = await journal.read(read_state)
            assert (state.outcomes, state.noted) == ({"sent": 1}, {0})
            await journal.forced()

    asyncio.run(main())
    assert len(on) == 4
    assert threading.main_thread().name not in on


def _thread() -> str:
    return threading.current_thread().name


def _watch(monkeypatch: pytest.MonkeyPatch, name: str, before: Callable[[], None]) -> None:
    """Do something before each call of a method."""
    real = getattr(Journal, name)

    def watched(self: Journal) -> object:
        before()
        return real(self)

    monkeypatch.setattr(Journal, name, watched)


def test_one_that_is_cancelled_while_it_opens_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _watch(monkeypatch, "force", lambda: time.sleep(0.2))

    async def opened() -> None:
        async with Journal(tmp_path / "job", JOB):
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.ensure_future(opened())
        await asyncio.sleep(0.05)
        with pytest.raises(JobInUse):
            await Journal(tmp_path / "job", JOB).__aenter__()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        async with Journal(tmp_path / "job", JOB) as journal:
            assert journal.was_there

    asyncio.run(main())


WINDOW = {"window": "b:0", "from": 0, "to": 2, "ends": {}}
OUTCOMES = [{"q": "b:0", "o": 0, "r": "sent", "t": "id0"}, {"q": "b:0", "o": 1, "r": "filtered"}]


def test_a_journal_that_was_shortened_knows_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "job"
    with Journal(path, JOB) as journal:
        journal.add([WINDOW, *OUTCOMES, {"closed": "b:0"}])
        before, name, long = read_state(journal), journal.id, journal.size
        assert shorten(journal, keep=True)
        assert read_state(journal) == before
        assert journal.size < long
        journal.add([{**WINDOW, "from": 2, "to": 3}, {"q": "b:0", "o": 2, "r": "sent"}])
        assert shorten(journal, keep=True) is False, "an open window needs its outcomes"
    with Journal(path, JOB) as journal:
        state = read_state(journal)
        assert journal.id == name, "the marks on what it has sent are the job's"
    assert state.done == {"b:0": 2}
    assert state.outcomes == {"sent": 2, "filtered": 1}
    assert state.noted == {2}
    assert '"id0"' in (tmp_path / "job.1").read_text()
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_a_journal_that_is_begun_anew_stays_locked(tmp_path: Path) -> None:
    path = tmp_path / "job"
    with Journal(path, JOB) as journal:
        late = path.open("a+b")  # opened the old one, and comes to lock it when it has no name
        shorten(journal, keep=False)
        with late, pytest.raises(JobInUse), Journal(path, JOB):
            pass
    with Journal(path, JOB) as journal:
        assert journal.was_there


def test_whoever_opened_the_old_file_gets_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "job"
    with Journal(path, JOB):
        pass
    real = fcntl.flock
    tries: list[int] = []

    def swap_first(file: object, how: int) -> None:
        if not tries:
            tries.append(1)
            other = tmp_path / "other"
            other.write_bytes(path.read_bytes())
            other.replace(path)
        real(file, how)  # type: ignore[arg-type]

    monkeypatch.setattr(fcntl, "flock", swap_first)
    with Journal(path, JOB) as journal:
        journal.add(OUTCOMES)
    assert '"id0"' in path.read_text(), "outcomes went to a file without a name"


def test_no_room_for_a_short_one_leaves_the_long_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "job"
    with Journal(path, JOB) as journal:
        journal.add([WINDOW, *OUTCOMES, {"closed": "b:0"}])

        def full(_self: Journal) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Journal, "force", full)
            with pytest.raises(OSError, match="No space"):
                shorten(journal, keep=False)
        journal.add([{**WINDOW, "from": 2, "to": 3}])
    with Journal(path, JOB) as journal:
        assert read_state(journal).outcomes == {"sent": 1, "filtered": 1}
        assert read_state(journal).open_window is not None
    assert [each.name for each in tmp_path.iterdir()] == ["job"]


def a_journal(path: Path, outcomes: int, at: int) -> None:
    with Journal(path, {"job": "redrive", "group": path.stem}) as journal:
        lines = [{"q": "b:0", "o": each, "r": "sent"} for each in range(outcomes)]
        journal.add([{**WINDOW, "to": outcomes}, *lines, {"closed": "b:0"}])
    os.utime(path, (at, at))


def test_a_folder_keeps_the_outcomes_of_the_newest(tmp_path: Path) -> None:
    count = WHOLE_MAX + 5
    for number in range(count):
        a_journal(tmp_path / f"g{number}.jsonl", 200, 1_000 + number)
    for _ in range(2):  # what is short now does not push out what is whole
        make_room(tmp_path / "new.jsonl")
    sizes = [(tmp_path / f"g{number}.jsonl").stat().st_size for number in range(count)]
    assert max(sizes[:5]) < 500 < min(sizes[5:])
    with Journal(tmp_path / "g0.jsonl", {"job": "redrive", "group": "g0"}) as journal:
        assert read_state(journal).done == {"b:0": 200}, "it would all go again"


def test_a_folder_has_no_end_of_journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redrive_files, "FILES_MAX", 2)
    for number in range(2):
        a_journal(tmp_path / f"g{number}.jsonl", 1, 1_000)
    make_room(tmp_path / "g1.jsonl")
    with pytest.raises(InvalidValue, match="journals of 2 redrives"):
        make_room(tmp_path / "g2.jsonl")
