"""The choices of a push consumer, checked once and together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gantrymq.client.arguments import at_least, seconds
from gantrymq.client.consuming.process_queue import MIB, HoldLimits
from gantrymq.client.consuming.start_position import Start, StartPosition
from gantrymq.client.consuming.strategies import Strategy, average
from gantrymq.errors import InvalidValue, shown
from gantrymq.model.group import MessageModel

if TYPE_CHECKING:
    from pathlib import Path

WORKERS_MAX: Final = 10_000
BATCH_MAX: Final = 1024
_MODELS: Final = {
    "clustering": MessageModel.CLUSTERING,
    "broadcasting": MessageModel.BROADCASTING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeOptions:
    """How a push consumer reads; the meaning of each is said at `PushConsumer`."""

    mode: str = "clustering"
    orderly: bool = False
    start: Start = "last"
    strategy: Strategy = average
    workers: int = 20
    batch: int = 1
    pull_batch: int = 32
    reconsume_max: int = -1
    consume_timeout_s: float = 15 * 60.0
    hold_messages: int = 1000
    hold_bytes: int = 100 * MIB
    hold_span: int = 2000
    pop: bool = False
    pop_invisible_s: float = 60.0
    close_timeout_s: float = 10.0
    offsets_directory: Path | None = None
    model: MessageModel = field(init=False)
    start_position: StartPosition = field(init=False)

    def __post_init__(self) -> None:
        """Refuse what cannot be; each text says what to give instead."""
        if self.mode not in _MODELS:
            raise InvalidValue(
                f'mode is {shown(repr(self.mode))}: give "clustering" or "broadcasting"'
            )
        object.__setattr__(self, "model", _MODELS[self.mode])
        object.__setattr__(self, "start_position", StartPosition(self.start))
        if not isinstance(self.strategy, Strategy):
            raise InvalidValue(
                f"strategy is {shown(repr(self.strategy))}: give one of gantrymq.client"
                ".consuming.strategies, or a Strategy of your own"
            )
        self._check_range("workers", 1, WORKERS_MAX)
        self._check_range("batch", 1, BATCH_MAX)
        self._check_range("pull_batch", 1, BATCH_MAX)
        self._check_range("reconsume_max", -1, 2**31 - 1)
        seconds("consume_timeout_s", self.consume_timeout_s)
        seconds("close_timeout_s", self.close_timeout_s, least=0)
        seconds("pop_invisible_s", self.pop_invisible_s, least=1)
        if self.pop and (self.orderly or self.model is MessageModel.BROADCASTING):
            raise InvalidValue(
                "pop is for messages in any order, shared by a group: leave out orderly and"
                " broadcasting, or leave out pop"
            )
        self.limits()

    def _check_range(self, name: str, least: int, most: int) -> None:
        at_least(name, getattr(self, name), least, most)

    @property
    def broadcasting(self) -> bool:
        """Tell whether every member reads everything."""
        return self.model is MessageModel.BROADCASTING

    def limits(self) -> HoldLimits:
        """Return how much of a queue may be in hand."""
        span = None if self.orderly else self.hold_span
        return HoldLimits(self.hold_messages, self.hold_bytes, span)
