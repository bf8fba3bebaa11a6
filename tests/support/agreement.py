"""The same call to every kernel: all must give the same, or the same error in the same words.

Results are compared by `repr`, so that `True` for `1`, a tuple for a `Frame` or an `int` for a
`Stop` does not pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from gantrymq.errors import GantryError, ProtocolError
from support.kernels import KERNELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.kernel.interface import Kernel

Outcome: TypeAlias = tuple[str, ...]


def outcome(call: Callable[[], object]) -> Outcome:
    """Return what a call gave: its result, or its error with all that it carries."""
    try:
        return "result", repr(call())
    except GantryError as error:
        place = (error.field, error.problem) if isinstance(error, ProtocolError) else ()
        return "error", type(error).__name__, str(error), *place


def check_agreement(act: Callable[[Kernel], object]) -> None:
    """Do the same with every kernel; all must give the same."""
    outcomes = {name: outcome(lambda k=each: act(k)) for name, each in KERNELS.items()}  # type: ignore[misc]
    expected = outcomes["readable"]
    for name, found in outcomes.items():
        assert found == expected, name
