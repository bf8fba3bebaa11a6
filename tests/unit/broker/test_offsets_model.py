"""Offsets under any sequence of commits, saves and deletions, against a plain dictionary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gantrymq.broker.consumer_offsets import ConsumerOffsets
from gantrymq.testing.clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable

GROUP = st.sampled_from(["g1", "g2", "g3"])
TOPIC = st.sampled_from(["A", "%RETRY%g1", "C"])
QUEUE = st.integers(0, 3)
OFFSET = st.integers(0, 1 << 40)

Table = dict[tuple[str, str, int], int]


class OffsetsMachine(RuleBasedStateMachine):
    """A table of offsets, pictures of it, and what both should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets = ConsumerOffsets(VirtualClock())
        self.model: Table = {}
        self.pictures: list[tuple[Callable[[], bytes], Table]] = []

    @rule(group=GROUP, topic=TOPIC, queue_id=QUEUE, offset=OFFSET)
    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        self.offsets.commit(group, topic, queue_id, offset)
        self.model[group, topic, queue_id] = offset

    @rule(group=GROUP, topic=TOPIC, queue_id=QUEUE, offset=OFFSET)
    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        self.offsets.reset(group, topic, queue_id, offset)
        assert self.offsets.pending_reset(group, topic, queue_id) == offset
        self.model[group, topic, queue_id] = offset

    @rule(group=GROUP)
    def remove_group(self, group: str) -> None:
        assert self.offsets.remove_group(group) == any(key[0] == group for key in self.model)
        self.model = {key: value for key, value in self.model.items() if key[0] != group}

    @rule(topic=TOPIC)
    def remove_topic(self, topic: str) -> None:
        assert self.offsets.remove_topic(topic) == any(key[1] == topic for key in self.model)
        self.model = {key: value for key, value in self.model.items() if key[1] != topic}

    @rule(src=GROUP, dest=GROUP, topic=TOPIC)
    def clone(self, src: str, dest: str, topic: str) -> None:
        has = {key[2]: value for key, value in self.model.items() if key[:2] == (src, topic)}
        assert self.offsets.clone(src, dest, topic) == bool(has)
        if has:
            kept = {key: value for key, value in self.model.items() if key[:2] != (dest, topic)}
            self.model = {**kept, **{(dest, topic, queue): has[queue] for queue in has}}

    @rule()
    def take_picture(self) -> None:
        self.pictures.append((self.offsets.snapshot(), dict(self.model)))

    @rule()
    def restart(self) -> None:
        again = ConsumerOffsets(VirtualClock())
        again.load(self.offsets.encode())
        self.offsets = again

    @invariant()
    def what_was_committed_is_found(self) -> None:
        check(self.offsets, self.model)

    def teardown(self) -> None:
        for encode, model in self.pictures:
            again = ConsumerOffsets(VirtualClock())
            again.load(encode())
            check(again, model)


def check(offsets: ConsumerOffsets, model: Table) -> None:
    """Compare a table with what it should hold, every way it can be asked."""
    assert len(offsets) == len(model)
    for group in ("g1", "g2", "g3"):
        assert offsets.topics_of(group) == {key[1] for key in model if key[0] == group}
        for topic in ("A", "%RETRY%g1", "C"):
            expected = {key[2]: model[key] for key in model if key[:2] == (group, topic)}
            assert (offsets.all_of(group, topic) or {}) == expected
            for queue_id in range(4):
                assert offsets.find(group, topic, queue_id) == expected.get(queue_id, -1)
            assert (group in offsets.groups_of(topic)) == bool(expected)


TestOffsets = OffsetsMachine.TestCase
