"""How often somebody may try something: so many times in a while.

A login counts for its address, before anything of it is read; for its address and name together;
and for its name alone, with a higher bound, so that a guesser elsewhere keeps nobody out easily.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gantrymq.clock import Clock

TRIES_MAX: Final = 10
WHILE_S: Final = 60.0
ADDRESS_TRIES_MAX: Final = 60
NAME_TRIES_MAX: Final = 100
KEYS_MAX: Final = 10_000


class Throttle:
    """Counts tries by key; when there are too many keys, the ones unused longest are forgotten."""

    def __init__(self, clock: Clock, tries_max: int = TRIES_MAX, while_s: float = WHILE_S) -> None:
        self._clock = clock
        self._tries_max = tries_max
        self._while_s = while_s
        self._tries: dict[str, deque[float]] = {}

    def wait_s(self, *keys: str) -> float:
        """Count a try; return 0 if it may be made, else how long to wait, and count nothing."""
        now = self._clock.monotonic()
        wait = max(self._wait_of(key, now) for key in keys)
        if wait <= 0:
            for key in keys:
                self._note(key, now)
        return wait

    def forget(self, *keys: str) -> None:
        """Take a key's tries back: the password was right."""
        for key in keys:
            self._tries.pop(key, None)

    def _wait_of(self, key: str, now: float) -> float:
        tries = self._tries.get(key)
        if tries is None:
            return 0.0
        while tries and now - tries[0] >= self._while_s:
            tries.popleft()
        if len(tries) < self._tries_max:
            return 0.0
        return tries[0] + self._while_s - now

    def _note(self, key: str, now: float) -> None:
        tries = self._tries.pop(key, None) or deque(maxlen=self._tries_max)
        tries.append(now)
        self._tries[key] = tries
        while len(self._tries) > KEYS_MAX:
            del self._tries[next(iter(self._tries))]


class LoginThrottle:
    """All that bounds guessing."""

    def __init__(self, clock: Clock) -> None:
        self._addresses = Throttle(clock, ADDRESS_TRIES_MAX)
        self._pairs = Throttle(clock)
        self._names = Throttle(clock, NAME_TRIES_MAX)
        self._owners = Throttle(clock)

    def wait_of_address_s(self, address: str) -> float:
        """Count a request to log in; return 0, or how long its sender has to wait."""
        return self._addresses.wait_s(address)

    def wait_of_name_s(self, address: str, name: str) -> float:
        """Count a password for a name; return 0, or how long to wait."""
        return self._pairs.wait_s(f"{address} {name}") or self._names.wait_s(name)

    def was_right(self, address: str, name: str) -> None:
        """Forget what this address tried for this name, and nothing else.

        Whoever has an account must not win tries for other names by logging in between.
        """
        self._pairs.forget(f"{address} {name}")

    def wait_of_owner_s(self, name: str) -> float:
        """Count a try to change one's own password; return 0, or how long to wait."""
        return self._owners.wait_s(name)

    def owner_was_right(self, name: str) -> None:
        """Forget the tries to change one's own password."""
        self._owners.forget(name)
