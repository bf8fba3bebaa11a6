"""The same call to every kernel: the same result, or the same error, word for word."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from gantrymq.errors import InvalidValue, ProtocolError
from gantrymq.kernel import available

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.kernel.interface import Kernel

T = TypeVar("T")

KERNELS = available()
if len(KERNELS) < 2 and os.environ.get("GANTRYMQ_ALLOW_READABLE") != "1":
    raise RuntimeError("no compiled kernel to compare with: `make setup` builds it")


class DisagreementError(Exception):
    """Two ways to understand the same bytes came to different results."""


class Outcome(NamedTuple, Generic[T]):
    """What a call came to: a value, or one of the errors that bad input may raise."""

    value: T | None
    error: str

    @property
    def kind(self) -> str:
        """Return the error without its numbers and quoted values: what sort of thing happened."""
        return re.sub(r"'[^']*'|\"[^\"]*\"|[0-9]+", "#", self.error)[:120] or "ok"


def outcome(call: Callable[[], T]) -> Outcome[T]:
    """Call; let through what bad input must never raise."""
    try:
        return Outcome(call(), "")
    except (ProtocolError, InvalidValue) as error:
        return Outcome(None, f"{type(error).__name__}: {error}")


def agree(what: str, results: list[Outcome[T]]) -> Outcome[T]:
    """Return the one result that all of them are."""
    first = results[0]
    for other in results[1:]:
        if other != first:
            raise DisagreementError(f"{what}: {first!r:.2000} and {other!r:.2000}")
    return first


def twins(what: str, call: Callable[[Kernel], T]) -> Outcome[T]:
    """Make the call with every kernel that there is."""
    return agree(what, [outcome(lambda each=each: call(each)) for each in KERNELS])  # type: ignore[misc]
