"""Which name server is asked: one chosen at random, kept while it answers, then the next.

Name servers know nothing of each other and all say the same sooner or later, so any will do. A
random choice spreads clients over them.
"""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING

from gantrymq.errors import GantryError
from gantrymq.wire.peer import PeerGone, PeerLate

if TYPE_CHECKING:
    from gantrymq.client.remote import Remote
    from gantrymq.wire.command import Command

logger = logging.getLogger(__name__)


class NoNameServer(GantryError):
    """None of the name servers answered; the text has what happened with each of them."""

    retriable = True

    def __init__(self, problems: dict[str, str]) -> None:
        listed = "; ".join(f"{address}: {why}" for address, why in problems.items())
        super().__init__(f"no name server answered ({listed})")
        self.problems = problems

    def __reduce__(self) -> tuple[type[NoNameServer], tuple[dict[str, str]]]:
        """Let the error cross a process border."""
        return type(self), (self.problems,)


class NameServers:
    """The name servers of one client."""

    __slots__ = ("_addresses", "_at", "_remote")

    def __init__(self, addresses: tuple[str, ...], remote: Remote) -> None:
        self._addresses = addresses
        self._remote = remote
        self._at = random.randrange(len(addresses))  # noqa: S311  (spreads load, hides nothing)

    @property
    def current(self) -> str:
        """Return the one that is asked next."""
        return self._addresses[self._at]

    async def ask(self, request: Command, timeout_s: float | None = None) -> Command:
        """Return the answer of the first name server that gives one, from the current one on.

        `timeout_s` is for each of them.

        Raises:
            NoNameServer: none did.
        """
        problems: dict[str, str] = {}
        for _ in self._addresses:
            at = self._at
            address = self._addresses[at]
            try:
                return await self._remote.ask(address, request, timeout_s)
            except (PeerGone, PeerLate) as error:
                problems[address] = str(error)
                if self._at == at:  # unless somebody else moved on already
                    self._at = (at + 1) % len(self._addresses)
                    if len(self._addresses) > 1:
                        logger.warning(
                            "name server %s does not answer, the next is %s: %s",
                            address, self.current, error,
                        )  # fmt: skip
        raise NoNameServer(problems)
