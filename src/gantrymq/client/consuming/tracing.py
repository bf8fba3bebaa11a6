"""Traces of what consumers do: a record before a handler is called and one after it.

They go the same way as a producer's (`client.tracing`): many in a message, bounded, dropped rather
than waited for. A message whose broker says TRACE_ON=false is left out.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gantrymq.client.consuming.handling import ConsumeStatus, Later
from gantrymq.client.sending import Sending
from gantrymq.client.tracing import DEFAULT_REGION, Traced, TraceQueue
from gantrymq.wire import properties as names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gantrymq.client.consuming.handling import Run
    from gantrymq.client.core import ClientCore
    from gantrymq.client.received import ReceivedMessage

TRACE_GROUP: Final = "_INNER_TRACE_PRODUCER"
_IN_FLIGHT: Final = 16
_RETRIES: Final = 2


class Outcome(IntEnum):
    """How a handler ended; the numbers are the wire's."""

    SUCCESS = 0
    EXCEPTION = 2
    FAILED = 4


class Begun(NamedTuple):
    """What a handler was given, and when."""

    request_id: str
    at: float
    messages: Sequence[ReceivedMessage]


class ConsumeTracer:
    """Traces the messages of one consumer."""

    def __init__(self, core: ClientCore, group: str, topic: str) -> None:
        self._core = core
        self._group = core.namespace.unwrap(group)
        sending = Sending(
            core,
            TRACE_GROUP,
            in_flight_max=_IN_FLIGHT,
            retries=_RETRIES,
            retry_not_stored=False,
            faults=None,
        )
        self._queue = TraceQueue(core, sending, topic)

    async def close(self, timeout_s: float) -> None:
        """Send what waits, for so long at most."""
        await self._queue.close(timeout_s)

    def before(self, messages: Sequence[ReceivedMessage]) -> Begun:
        """Note that a handler gets these."""
        clock = self._core.clock
        traced = [one for one in messages if one.properties.get(names.TRACE_ON) != "false"]
        begun = Begun(self._core.identity.keys.next(), clock.monotonic(), traced)
        now_ms = clock.now_ms()
        for message in traced:
            region = message.properties.get(names.MSG_REGION, DEFAULT_REGION)
            fields = (
                "SubBefore", now_ms, region, self._group, begun.request_id, message.message_id,
                message.reconsume_times, " ".join(message.keys),
            )  # fmt: skip
            self._queue.add(Traced(fields, (message.message_id, *message.keys)))
        return begun

    def after(self, begun: Begun, outcome: Outcome) -> None:
        """Note how it went."""
        if not begun.messages:
            return
        clock = self._core.clock
        cost_ms = int((clock.monotonic() - begun.at) * 1000 / len(begun.messages))
        now_ms = clock.now_ms()
        for message in begun.messages:
            fields = (
                "SubAfter", begun.request_id, message.message_id, cost_ms,
                outcome is Outcome.SUCCESS, " ".join(message.keys), int(outcome), now_ms,
                self._group,
            )  # fmt: skip
            self._queue.add(Traced(fields, (message.message_id, *message.keys)))


async def run_traced(tracer: ConsumeTracer, run: Run, argument: Any) -> Any:  # noqa: ANN401
    """Call a handler with a record before and one after it."""
    begun = tracer.before(argument if isinstance(argument, list) else [argument])
    outcome = Outcome.EXCEPTION
    try:
        result = await run(argument)
        outcome = Outcome.FAILED if result is ConsumeStatus.LATER else Outcome.SUCCESS
    except Later:
        outcome = Outcome.FAILED
        raise
    finally:
        tracer.after(begun, outcome)
    return result
