"""The whole store against its model: a list of messages for each queue.

`support.store_world` says what must be true, and holds the model; here hypothesis decides what
happens, and finds the shortest story that breaks it.
"""

from __future__ import annotations

import errno

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from gantrymq.store.worker import Workers
from gantrymq.testing.disk import Names, Operation
from support.store_world import QUEUES, ROOT, TOPICS, Shape, World

SIZE = st.one_of(st.integers(8, 60), st.sampled_from([200, 512, 1500, 3000]))
QUEUE = st.integers(0, QUEUES - 1)
WORKER = st.integers(0, len(Workers._fields) - 1)
SHAPE = st.builds(
    Shape,
    sync=st.booleans(),
    pool=st.booleans(),
    names=st.sampled_from(Names),
    log_bytes=st.sampled_from([4096, 5000, 8192, 16384]),
    queue_bytes=st.sampled_from([200, 400, 1000]),
)
KEEP = st.sampled_from([None, 0.0, 0.5, 1.0])


class StoreMachine(RuleBasedStateMachine):
    """A broker's store, and everything that may happen to it."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(Shape())

    @initialize(shape=SHAPE, seed=st.integers(0, 1 << 16))
    def begin(self, shape: Shape, seed: int) -> None:
        self.world = World(shape, seed)

    @rule(sizes=st.lists(st.tuples(QUEUE, SIZE), min_size=1, max_size=6))
    def send(self, sizes: list[tuple[int, int]]) -> None:
        self.world.send(sizes)

    @rule(
        topic=st.sampled_from(TOPICS),
        queue_id=QUEUE,
        sizes=st.lists(SIZE, min_size=1, max_size=3),
        waits=st.booleans(),
    )
    def put(self, topic: str, queue_id: int, sizes: list[int], waits: bool) -> None:
        self.world.put(topic, queue_id, sizes, waits=waits)

    @rule(sys_flag=st.sampled_from([4, 12]))
    def put_half_or_rollback(self, sys_flag: int) -> None:
        self.world.put_uncounted(sys_flag)

    @rule(worker=WORKER)
    def run_a_job(self, worker: int) -> None:
        self.world.run(worker)

    @rule(worker=WORKER)
    def report_a_job(self, worker: int) -> None:
        self.world.report_back(worker)

    @rule()
    def finish_all_jobs(self) -> None:
        self.world.drain()

    @rule()
    def read_everything(self) -> None:
        self.world.look()

    @rule(topic=st.sampled_from(TOPICS), queue_id=QUEUE, offset=st.integers(0, 20))
    def get_later(self, topic: str, queue_id: int, offset: int) -> None:
        self.world.get_later(topic, queue_id, offset)

    @rule(file=st.integers(0, 3))
    def take_a_file_out_of_memory(self, file: int) -> None:
        self.world.evict(file)

    @rule(seconds=st.sampled_from([0.01, 0.2, 0.5, 1.0, 6.0, 10.0, 60.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.world.wait(seconds)

    @rule(by_ms=st.sampled_from([-86_400_000, -1, 1, 3_000, 86_400_000]))
    def set_the_clock(self, by_ms: int) -> None:
        self.world.clock.set_now_ms(self.world.clock.now_ms() + by_ms)

    @rule()
    def kill(self) -> None:
        self.world.kill()

    @rule(keep=KEEP)
    def cut_power(self, keep: float | None) -> None:
        self.world.keep = keep
        self.world.crash()

    @rule(then_cut_power=st.booleans())
    def stop(self, then_cut_power: bool) -> None:
        self.world.stop(then_cut_power=then_cut_power)

    @rule(steps=st.integers(0, 15), keep=KEEP)
    def cut_power_soon(self, steps: int, keep: float | None) -> None:
        self.world.keep = keep
        self.world.disk.halt_after(steps)

    @rule(
        operation=st.sampled_from(
            [Operation.SYNC, Operation.SYNC_DIRECTORY, Operation.WRITE, Operation.CREATE]
        ),
        after=st.integers(0, 3),
    )
    def fail_once(self, operation: Operation, after: int) -> None:
        self.world.disk.fail(operation, errno.EIO, after=after)

    @rule(free=st.integers(0, 20_000))
    def fill_the_disk(self, free: int) -> None:
        disk = self.world.disk
        disk.other_bytes = 0
        disk.other_bytes = max(0, disk.usage(ROOT).available - free)

    @rule()
    def make_room(self) -> None:
        self.world.disk.other_bytes = 0

    @rule(keep=st.floats(0, 1))
    def write_back(self, keep: float) -> None:
        self.world.disk.write_back(keep)

    def teardown(self) -> None:
        world = self.world
        world.disk.heal()
        world.disk.other_bytes = 0
        world.crash()


TestStore = StoreMachine.TestCase
TestStore.settings = settings(stateful_step_count=40)
