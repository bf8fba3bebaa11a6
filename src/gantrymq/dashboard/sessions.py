"""Who is logged in: tokens in cookies, bounded in number and in time.

Only a hash of a token is kept, so that a look into this process gives nobody a way in. Owned by the
event loop; a restart logs everyone out.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gantrymq.clock import Clock
    from gantrymq.dashboard.accounts import Account

IDLE_S_MAX: Final = 30 * 60.0
AGE_S_MAX: Final = 12 * 3600.0
SESSIONS_MAX: Final = 1_000
SESSIONS_OF_ONE_MAX: Final = 16


@dataclass(slots=True)
class Login:
    """Somebody who is logged in."""

    name: str
    mark: str
    csrf: str
    begun_s: float
    used_s: float


class Sessions:
    """All logins by the hash of their token, oldest first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logins: dict[bytes, Login] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._logins)

    def begin(self, account: Account) -> tuple[str, Login]:
        """Log somebody in; return the token for the cookie, and the login."""
        now = self._clock.monotonic()
        self._forget_old(now)
        own = [key for key, each in self._logins.items() if each.name == account.name]
        for key in own[: max(len(own) - SESSIONS_OF_ONE_MAX + 1, 0)]:
            del self._logins[key]
        while len(self._logins) >= SESSIONS_MAX:
            del self._logins[next(iter(self._logins))]
        token = secrets.token_urlsafe(32)
        login = Login(account.name, account.mark, secrets.token_urlsafe(32), now, now)
        self._logins[_key(token)] = login
        return token, login

    def find(self, token: str) -> Login | None:
        """Return the login of a token, if it is still good; it has been used now."""
        login = self._logins.get(_key(token))
        if login is None:
            return None
        now = self._clock.monotonic()
        if self._is_over(login, now):
            del self._logins[_key(token)]
            return None
        login.used_s = now
        return login

    def end(self, token: str) -> None:
        """Log out."""
        self._logins.pop(_key(token), None)

    def _forget_old(self, now: float) -> None:
        for key in [key for key, each in self._logins.items() if self._is_over(each, now)]:
            del self._logins[key]

    @staticmethod
    def _is_over(login: Login, now: float) -> bool:
        return now - login.used_s > IDLE_S_MAX or now - login.begun_s > AGE_S_MAX


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def is_same(one: str, other: str) -> bool:
    """Compare secrets in a time that tells nothing."""
    return hmac.compare_digest(one.encode(), other.encode())
