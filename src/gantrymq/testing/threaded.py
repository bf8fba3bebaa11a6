"""A `TestBroker` on a thread of its own, for tests that have no event loop, or several.

    with ThreadedBroker() as broker:
        asyncio.run(program(broker.namesrv))
        assert len(broker.messages("Orders")) == 1

Every method is that of `TestBroker`, made blocking. The broker goes on while the test computes,
blocks, or runs loops of its own with whatever library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from gantrymq.blocking.loop_thread import LoopThread
from gantrymq.testing.broker import TestBroker
from gantrymq.testing.faults import SENDS
from gantrymq.wire.codes import ResponseCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from types import TracebackType

    from gantrymq.client.received import ReceivedMessage
    from gantrymq.testing.broker import JumpClock


class ThreadedBroker:
    """A broker with its name server. Used from any thread."""

    def __init__(
        self,
        *,
        clock: JumpClock | None = None,
        directory: Path | str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare; the arguments are those of `TestBroker`."""
        self._broker = TestBroker(clock=clock, directory=directory, settings=settings)
        self._thread = LoopThread("test-broker")

    def __enter__(self) -> Self:
        """Start, and return itself."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def start(self) -> None:
        """Start what does not run."""
        self._thread.start()
        self._thread.call(self._broker.start())

    def stop(self) -> None:
        """Stop the broker; its data stays for `start`."""
        self._thread.call(self._broker.stop())

    def start_namesrv(self) -> None:
        """Start the name server at the address that it had."""
        self._thread.call(self._broker.start_namesrv())

    def stop_namesrv(self) -> None:
        """Lose the name server."""
        self._thread.call(self._broker.stop_namesrv())

    def close(self) -> None:
        """Stop everything and remove the temporary directory."""
        if self._thread.is_running:
            self._thread.call(self._broker.close())
        self._thread.stop()

    @property
    def clock(self) -> JumpClock:
        """Return the broker's clock; `jump` moves it and does what is due."""
        return self._broker.clock

    @property
    def namesrv(self) -> str:
        """Return `host:port` of the name server, which clients are given."""
        return self._broker.namesrv

    @property
    def address(self) -> str:
        """Return `host:port` of the broker."""
        return self._broker.address

    @property
    def connections(self) -> int:
        """Return how many connections the broker has."""
        return self._broker.faults.connections

    @property
    def faults_happened(self) -> int:
        """Return how many requests met with a fault."""
        return self._broker.faults.happened

    def jump(self, seconds: float) -> None:
        """Let time pass at once for the broker, and do what is due by then."""
        self._thread.call(self._broker.jump(seconds))

    def create_topic(self, name: str, queues: int = 4) -> str:
        """Make a topic, wait until the name server knows it, return its name."""
        return self._thread.call(self._broker.create_topic(name, queues))

    def wait_route(self, topic: str) -> None:
        """Wait until the name server knows a topic that the broker made by itself."""
        self._thread.call(self._broker.wait_route(topic))

    def messages(self, topic: str) -> list[ReceivedMessage]:
        """Return all messages of a topic as they are stored, queue by queue."""
        return self._thread.do(lambda: self._broker.messages(topic))

    def refuse(
        self,
        code: int = ResponseCode.SYSTEM_BUSY,
        remark: str = "refused by a test",
        *,
        requests: Iterable[int] | None = SENDS,
        times: int | None = None,
    ) -> None:
        """Answer requests with a code, and do nothing of what they ask."""
        self._thread.do(lambda: self._broker.refuse(code, remark, requests=requests, times=times))

    def delay_answers(
        self, seconds: float, *, requests: Iterable[int] | None = None, times: int | None = None
    ) -> None:
        """Do what is asked at once, and answer after so many seconds by the machine's clock."""
        self._thread.do(lambda: self._broker.delay_answers(seconds, requests=requests, times=times))

    def lose_answers(
        self, *, requests: Iterable[int] | None = SENDS, times: int | None = 1
    ) -> None:
        """Do what is asked, then cut the connection: the client cannot know."""
        self._thread.do(lambda: self._broker.lose_answers(requests=requests, times=times))

    def drop_connections(self) -> int:
        """Cut every connection to the broker; return how many there were."""
        return self._thread.do(self._broker.drop_connections)

    def heal(self) -> None:
        """Switch off what `refuse`, `delay_answers` and `lose_answers` switched on."""
        self._thread.do(self._broker.heal)
