"""Questions by key, place and time about what is not in memory: a worker reads, nobody waits."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from gantrymq.store import presence, questions
from gantrymq.store.errors import StoreOverloaded
from gantrymq.store.index_file import IndexEntry, IndexFile
from gantrymq.store.questions import Questions
from gantrymq.store.search import Boundary
from gantrymq.testing.clock import START_MS
from gantrymq.testing.disk import Operation
from support.store_rig import Rig

COUNT = 60
Question = Callable[[Questions], object]


def by_key(store: Questions) -> object:
    return [bytes(raw) for raw in store.query_by_key("T", "all", 64, 0, 1 << 60).records]


QUESTIONS: dict[str, Question] = {
    "by key": by_key,
    "by place": lambda store: bytes(store.record_at(0) or b""),
    "first of the log": lambda store: store.earliest_timestamp(),
    "by time": lambda store: store.offset_at("T", 0, START_MS + 30_000, Boundary.LOWER),
    "by time, nearer": lambda store: store.offset_at("T", 0, START_MS + 30_001),
    "first of a queue": lambda store: store.earliest_stored("T", 0),
    "one of a queue": lambda store: store.stored_at("T", 0, 5),
    "unit of a queue": lambda store: store.unit("T", 0, 5),
}


def filled() -> Rig:
    """Return a store with a message each second in queue 0 of T, over several files."""
    rig = Rig()
    for number in range(COUNT):
        rig.put(b"%02d" % number + bytes(200), properties={"KEYS": f"all k{number}"})
        rig.clock.jump(1)
    rig.store.flush_queues(thorough=True)
    rig.settle()
    return rig


def evict(rig: Rig) -> None:
    """Take everything out of memory."""
    assert rig.store.index is not None
    regions = [file.region for file in rig.store.log.files]
    for region in [*regions, *(file.region for file in rig.store.index.files)]:
        rig.disk.evict(region.path)
    queue = rig.store.queues.find("T", 0)
    assert queue is not None
    for name in rig.disk.names(queue.directory):
        rig.disk.evict(queue.directory / name)


def step(rig: Rig) -> None:
    """Let the worker do one job, and its owner hear of it."""
    assert rig.cold_read.run_one()
    assert rig.cold_read.report_one()


class Asked:
    """A question and what became of it."""

    def __init__(self, rig: Rig, question: Question) -> None:
        self.answers: list[object] = []
        self.errors: list[Exception] = []
        rig.store.reads.questions.begin(question, self.answers.append, self.errors.append)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_what_is_in_memory_is_answered_at_once(question: Question) -> None:
    rig = filled()
    asked = Asked(rig, question)
    assert asked.answers == [question(rig.store.reads)]
    assert rig.cold_read.waiting_jobs == 0


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_what_is_not_is_read_by_the_worker(question: Question) -> None:
    rig = filled()
    expected = question(rig.store.reads)
    evict(rig)
    asked = Asked(rig, question)
    assert asked.answers == []
    assert rig.store.reads.questions.waiting == rig.cold_read.waiting_jobs == 1
    assert rig.put(b"meanwhile", queue_id=1).messages == 1
    rig.cold_read.drain()
    assert asked.answers == [expected]
    assert rig.store.reads.questions.waiting == 0


def test_a_search_brings_one_place_after_the_other() -> None:
    rig = filled()
    evict(rig)
    asked = Asked(rig, QUESTIONS["by time"])
    steps = 0
    while not asked.answers:
        assert rig.cold_read.waiting_jobs == 1
        step(rig)
        steps += 1
    assert steps >= 3, "units and records"


def test_pages_that_are_gone_again_at_once_do_not_keep_it_from_ending() -> None:
    rig = filled()
    expected = QUESTIONS["by key"](rig.store.reads)
    evict(rig)
    asked = Asked(rig, QUESTIONS["by key"])
    for _ in range(500):
        if asked.answers:
            break
        step(rig)
        evict(rig)
    assert asked.answers == [expected]


def test_a_bound_on_how_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "QUESTIONS_MAX", 2)
    rig = filled()
    evict(rig)
    asked = [Asked(rig, QUESTIONS["one of a queue"]) for _ in range(3)]
    assert [type(error) for error in asked[2].errors] == [StoreOverloaded]
    assert "2 questions wait" in str(asked[2].errors[0])
    rig.cold_read.drain()
    assert [len(one.answers) for one in asked] == [1, 1, 0]


def test_a_disk_that_cannot_be_read() -> None:
    rig = filled()
    evict(rig)
    rig.disk.fail(Operation.READ, errno.EIO)
    asked = Asked(rig, QUESTIONS["by place"])
    rig.cold_read.drain()
    assert asked.answers == []
    assert [error.errno for error in asked.errors if isinstance(error, OSError)] == [errno.EIO]


def test_a_file_that_goes_meanwhile_is_one_that_went_before() -> None:
    rig = filled()
    evict(rig)
    asked = Asked(rig, lambda store: store.record_at(0))
    first = rig.store.log.drop_first()
    rig.disk.remove(first.region.path)
    rig.cold_read.drain()
    assert asked.answers == [None]
    assert asked.errors == []


def test_a_stop_leaves_nobody_without_a_word() -> None:
    rig = filled()
    evict(rig)
    asked = Asked(rig, QUESTIONS["by key"])
    rig.store.close()
    late = Asked(rig, QUESTIONS["by place"])
    for one in (asked, late):
        assert len(one.answers) + len(one.errors) == 1
    assert [type(error) for error in asked.errors] in ([], [StoreOverloaded])


def test_a_question_that_fails_is_told() -> None:
    def question(_store: Questions) -> object:
        raise ValueError("what?")

    asked = Asked(filled(), question)
    assert [str(error) for error in asked.errors] == ["what?"]


def test_a_key_of_many_messages_is_followed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = filled()
    expected = by_key(rig.store.reads)
    monkeypatch.setattr(presence, "ENTRIES_A_TURN", 4)
    looked: list[tuple[str, int]] = []
    entry = IndexFile._entry

    def look(file: IndexFile, number: int) -> IndexEntry:
        looked.append((file.path.name, number))
        return entry(file, number)

    monkeypatch.setattr(IndexFile, "_entry", look)
    asked = Asked(rig, by_key)
    turns, before = 0, 0
    while not asked.answers:
        assert len(looked) - before <= 4, "others have their turn"
        before = len(looked)
        assert rig.put(b"meanwhile", queue_id=1).messages == 1
        step(rig)
        turns += 1
    assert asked.answers == [expected]
    assert turns >= COUNT // 4
    assert len(looked) == len(set(looked)), "a question that goes on does not begin anew"


def test_a_cold_chain_is_longer_than_what_one_question_may_bring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = filled()
    expected = by_key(rig.store.reads)
    monkeypatch.setattr(questions, "STEPS_MAX", COUNT + 10)
    evict(rig)
    asked = Asked(rig, by_key)
    with monkeypatch.context() as patch:
        patch.setattr(questions, "Waiting", lambda: pytest.fail("the owner would wait"))
        for _ in range(1000):
            if asked.answers:
                break
            step(rig)
            evict(rig)
    assert asked.answers == [expected]


def test_whether_a_cold_queue_is_young_is_read_by_the_worker() -> None:
    rig = filled()
    evict(rig)
    asked = Asked(rig, lambda store: rig.store.reads.is_young(store, "T", 0))
    assert asked.answers == []
    assert rig.put(b"meanwhile", queue_id=1).messages == 1
    rig.cold_read.drain()
    assert asked.answers == [True]
