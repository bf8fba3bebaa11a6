"""Which name server is asked: one chosen at random, kept while it answers, then the next.

Name servers know nothing of each other and all say the same sooner or later, so any will do. A
random choice spreads clients over them.
"""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Final

from gantrymq.errors import GantryError
from gantrymq.wire.peer import PeerGone, PeerLate

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.client.remote import Remote
    from gantrymq.wire.command import Command

logger = logging.getLogger(__name__)

FIRST_S: Final = 1.0
"""How long a name server may take while there is another to ask."""


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

    @property
    def listed(self) -> str:
        """Return all of them, for a text."""
        return ", ".join(self._addresses)

    async def ask(
        self,
        request: Command,
        timeout_s: float | None = None,
        *,
        takes: Callable[[Command], bool] | None = None,
    ) -> Command:
        """Return the answer of the first name server that gives one, from the current one on.

        With `takes`, an answer that it does not take is not the last word: one name server may
        have been started a moment ago, or be broken. The others are asked too, and the first of
        those answers is returned when none is better. `timeout_s` is for the last of them; those
        before it get a second, so that a machine that is gone without a word does not use up the
        time of a send.

        Raises:
            NoNameServer: none answered.
        """
        problems: dict[str, str] = {}
        kept: Command | None = None
        first, count = self._at, len(self._addresses)
        last_s = self._remote.timeout_s if timeout_s is None else timeout_s
        for step in range(count):
            at = (first + step) % count
            address = self._addresses[at]
            wait_s = last_s if step == count - 1 else min(last_s, FIRST_S)
            try:
                reply = await self._remote.ask(address, request, wait_s)
            except (PeerGone, PeerLate) as error:
                problems[address] = str(error)
                self._leave(at, error)
                continue
            if takes is None or takes(reply):
                self._at = at
                return reply
            kept = kept or reply
        if kept is not None:
            return kept
        raise NoNameServer(problems)

    def _leave(self, at: int, error: GantryError) -> None:
        """Ask the next one from now on, unless somebody has moved on already."""
        count = len(self._addresses)
        if self._at == at:
            self._at = (at + 1) % count
            if count > 1:
                logger.warning(
                    "name server %s does not answer, the next is %s: %s",
                    self._addresses[at], self.current, error,
                )  # fmt: skip
