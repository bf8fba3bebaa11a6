"""What a broker and its endpoints share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from faststream._internal.configs import BrokerConfig
from faststream.exceptions import IncorrectState

if TYPE_CHECKING:
    from gantrymq.client.producer import Producer


@dataclass(kw_only=True)
class GantryBrokerConfig(BrokerConfig):
    """The broker's settings, and its client once it is connected."""

    namesrv: str = ""
    group: str = ""
    connecting: dict[str, Any] = field(default_factory=dict)
    """Arguments that all clients are given: `ssl`, `access_key` and the like."""
    client: Producer | None = field(default=None, repr=False)

    @property
    def sender(self) -> Producer:
        """Return the producer.

        Raises:
            IncorrectState: the broker is not connected.
        """
        if self.client is None:
            raise IncorrectState("the broker is not connected: start it, or use `async with`")
        return self.client
