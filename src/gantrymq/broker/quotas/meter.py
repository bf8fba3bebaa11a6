"""What somebody has used of a quota: bytes and requests, each in a bucket of its own.

A quota is four numbers, each for a second: `send.bytes`, `send.requests`, `read.bytes` and
`read.requests`; 0 is none. What a topic, a group or a user says itself holds; what it does not say
is the broker's default for its kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.store.token_bucket import TokenBucket
from gantrymq.wire.response_errors import SystemBusy

if TYPE_CHECKING:
    from collections.abc import Mapping

SEND: Final = "send"
READ: Final = "read"
USER: Final = "user"
TOPIC: Final = "topic"
GROUP: Final = "group"
CAUSES: Final = {USER: "QUOTA_USER", TOPIC: "QUOTA_TOPIC", GROUP: "QUOTA_GROUP"}
"""The word that a remark begins with."""
ATTRIBUTE: Final = "quota."
"""What the names of attributes begin with: `quota.send.bytes`."""


class Rates(NamedTuple):
    """Of one direction, for a second; 0 is as many as one likes."""

    bytes: int = 0
    requests: int = 0

    @property
    def are_set(self) -> bool:
        """Tell whether there is any limit."""
        return self.bytes > 0 or self.requests > 0


def own_rates(own: Mapping[str, str], way: str, default: Rates) -> Rates:
    """Return the rates that attributes say, or else the default ones."""
    if not own:
        return default
    return Rates(
        _number(own.get(f"{ATTRIBUTE}{way}.bytes"), default.bytes),
        _number(own.get(f"{ATTRIBUTE}{way}.requests"), default.requests),
    )


def _number(text: str | None, default: int) -> int:
    # A file may hold anything: what is no number is no quota of its own.
    return int(text) if text is not None and text.isascii() and text.isdigit() else default


class QuotaExceeded(SystemBusy):
    """Somebody has used up what they may; nothing was done."""

    def __init__(self, cause: str, what: str, wait_s: float) -> None:
        self.cause = cause
        self.wait_s = wait_s
        wait_ms = max(1, round(wait_s * 1000))
        super().__init__(f"[{cause}]{what}; nothing was done: wait {wait_ms} ms, then try again")


class Meter:
    """What one user, topic or group has used in one direction. Owned by the event loop's task."""

    __slots__ = ("_bytes", "_requests", "kind", "name", "rates", "way")

    def __init__(self, kind: str, name: str, way: str, rates: Rates, now: float) -> None:
        self.kind = kind
        self.name = name
        self.way = way
        self.rates = rates
        self._bytes = TokenBucket(rates.bytes, now) if rates.bytes else None
        self._requests = TokenBucket(rates.requests, now) if rates.requests else None

    def at_rates(self, rates: Rates, now: float) -> Meter:
        """Return the meter after a change of the quota; a debt stays one."""
        fresh = Meter(self.kind, self.name, self.way, rates, now)
        if self._bytes is not None and rates.bytes:
            fresh._bytes = self._bytes.at_rate(rates.bytes, now)
        if self._requests is not None and rates.requests:
            fresh._requests = self._requests.at_rate(rates.requests, now)
        return fresh

    def exceeded(self, now: float, requests: int = 1) -> QuotaExceeded | None:
        """Return why so many more requests have to wait; None if they have not."""
        wait_s, unit, rate = 0.0, "", 0
        if self._bytes is not None and (wait := self._bytes.wait_s(now)):
            wait_s, unit, rate = wait, "bytes", self.rates.bytes
        counted = None if requests == 0 else self._requests
        if counted is not None and (wait := counted.wait_s(now)) > wait_s:
            wait_s, unit, rate = wait, "requests", self.rates.requests
        if not wait_s:
            return None
        return QuotaExceeded(
            CAUSES[self.kind],
            f"the {self.kind} {self.name} has used up its quota of {rate} {unit} a second "
            f"(quota.{self.way}.{unit})",
            wait_s,
        )

    def take(self, size: int, requests: int) -> None:
        """Note what was done."""
        if self._bytes is not None:
            self._bytes.take(size)
        if self._requests is not None:
            self._requests.take(requests)

    def is_unused(self, now: float) -> bool:
        """Tell whether a new one would be the same."""
        return all(one is None or one.is_full(now) for one in (self._bytes, self._requests))
