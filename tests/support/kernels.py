"""Both twins of the kernel for every kernel test, and no silence about a missing one.

A run without the compiled kernel fails (`tests/unit/kernel/test_choice.py`), for it would test half
of what it says. So does one for which GANTRYMQ_KERNEL chose the readable kernel: everything above
the kernel would be tested on that one alone. `GANTRYMQ_ALLOW_READABLE=1` allows both, and the head
of the run then says so.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gantrymq.kernel import KERNEL_VARIABLE, available
from gantrymq.kernel import kernel as chosen

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

KERNELS: dict[str, Kernel] = {each.KERNEL_NAME: each for each in available()}
"""By name, the readable one first."""


@pytest.fixture(params=KERNELS.values(), ids=list(KERNELS))
def kernel(request: pytest.FixtureRequest) -> Kernel:
    """Give a test each kernel in turn."""
    each: Kernel = request.param
    return each


def readable_allowed() -> bool:
    """Say whether a run on the readable kernel alone is wanted."""
    return os.environ.get("GANTRYMQ_ALLOW_READABLE") == "1"


def kernel_problem() -> str | None:
    """Return why this run does not test both kernels, or not what it seems to, or None."""
    if "compiled" not in KERNELS:
        return (
            "the compiled kernel is missing: `make setup` builds it"
            " (GANTRYMQ_ALLOW_READABLE=1 goes without)"
        )
    if chosen.KERNEL_NAME != "compiled":
        return (
            f"{KERNEL_VARIABLE}={os.environ.get(KERNEL_VARIABLE, '')} chose the"
            f" {chosen.KERNEL_NAME} kernel for everything above it: unset it"
            " (GANTRYMQ_ALLOW_READABLE=1 goes on all the same)"
        )
    return None


def header_line() -> str:
    """Return what the head of a run says of the kernels."""
    line = f"kernels: {', '.join(KERNELS)}; chosen: {chosen.KERNEL_NAME}"
    problem = kernel_problem()
    return f"{line} -- {problem}" if problem else line
