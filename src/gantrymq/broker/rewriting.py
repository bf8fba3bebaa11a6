"""What is stored in place of a message that nobody may see yet; `send` knows no more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.broker.half import as_half

if TYPE_CHECKING:
    from gantrymq.broker.timer.rules import Timing
    from gantrymq.store.put import NewMessage


class Rewriting:
    """Turns messages that are not to be seen yet into those that are stored instead."""

    def __init__(self, timing: Timing) -> None:
        self.as_timer = timing.as_timer

    def as_half(self, message: NewMessage) -> NewMessage:
        """Return the half message."""
        return as_half(message)
