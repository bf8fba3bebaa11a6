"""How long to wait before something is tried again: longer each time, up to a bound."""

from __future__ import annotations

import random
from typing import Final

FIRST_S: Final = 0.1
MOST_S: Final = 3.0


class Waits:
    """The waits of one loop. Random parts keep many clients from coming back at once."""

    __slots__ = ("_failures", "first_s", "most_s")

    def __init__(self, first_s: float = FIRST_S, most_s: float = MOST_S) -> None:
        self.first_s = first_s
        self.most_s = most_s
        self._failures = 0

    def __bool__(self) -> bool:
        """Tell whether the last attempt failed."""
        return self._failures > 0

    def next(self) -> float:
        """Return the wait after one more failure, in seconds."""
        whole = min(self.first_s * 2.0**self._failures, self.most_s)
        self._failures = min(self._failures + 1, 30)
        return whole * random.uniform(0.75, 1.0)  # noqa: S311 - spreads load, keeps no secret

    def reset(self) -> None:
        """Begin anew: it went well."""
        self._failures = 0
