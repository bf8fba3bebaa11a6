"""The kernel: the hot path on raw buffers, and the one place that chooses which twin runs.

`GANTRYMQ_KERNEL=compiled` demands the compiled kernel, `=readable` the readable one. Without it
the compiled one is taken where it can be had. This is the only setting read from the environment
outside `node`: it must be known before anything else can be imported.
"""

from __future__ import annotations

import logging
import os
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from gantrymq.kernel.values import (
    BINARY_HEADER,
    BLANK_BYTES_MIN,
    BLANK_MAGIC,
    COLUMN_NAMES,
    EXT_ADDRESS_MAX,
    JSON_HEADER,
    PRE_BLANK_SIZE,
    RECORD_MAGIC_V1,
    RECORD_MAGIC_V2,
    SCHEDULE_TOPIC,
    UNIT_BYTES,
    Audit,
    AuditRun,
    Column,
    Columns,
    Dispatch,
    FileWrite,
    Frame,
    Gathered,
    KnownPull,
    LaneStop,
    PullRequest,
    QueueRun,
    QueueUnit,
    Record,
    Refused,
    Scan,
    SendAnswer,
    SendRequest,
    SendRun,
    SendTurn,
    Stop,
)

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel

KERNEL_VARIABLE: Final = "GANTRYMQ_KERNEL"


def _load_readable() -> Kernel:
    """Return the readable kernel. Whoever has the compiled one need not wait for its modules."""
    from gantrymq.kernel import reference  # noqa: PLC0415

    readable: Kernel = reference
    return readable


def _load_compiled() -> Kernel:
    """Return the compiled kernel, or raise ImportError.

    It is imported by name and its type is asserted: whether it is there is known at run time only.
    That it keeps the interface is what the twin tests show.
    """
    return cast("Kernel", import_module("gantrymq.kernel._native"))


def _choose(wanted: str | None) -> Kernel:
    if wanted == "readable":
        return _load_readable()
    if wanted not in {None, "", "compiled"}:
        raise ImportError(f"{KERNEL_VARIABLE} is {wanted!r}: say 'compiled' or 'readable'")
    try:
        return _load_compiled()
    except ImportError as error:
        if wanted == "compiled":
            raise ImportError(
                f"{KERNEL_VARIABLE} asks for the compiled kernel, which is not here ({error});"
                " build it with `pip install .` or `python setup.py build_ext --inplace`"
            ) from error
        logging.getLogger(__name__).warning(
            "the compiled kernel is not here (%s): the readable one is far slower", error
        )
        return _load_readable()


def available() -> tuple[Kernel, ...]:
    """Return every kernel that can be had here, the readable one first."""
    try:
        return _load_readable(), _load_compiled()
    except ImportError:
        return (_load_readable(),)


kernel: Final[Kernel] = _choose(os.environ.get(KERNEL_VARIABLE))
"""The kernel of this process."""

__all__ = [
    "BINARY_HEADER",
    "BLANK_BYTES_MIN",
    "BLANK_MAGIC",
    "COLUMN_NAMES",
    "EXT_ADDRESS_MAX",
    "JSON_HEADER",
    "KERNEL_VARIABLE",
    "PRE_BLANK_SIZE",
    "RECORD_MAGIC_V1",
    "RECORD_MAGIC_V2",
    "SCHEDULE_TOPIC",
    "UNIT_BYTES",
    "Audit",
    "AuditRun",
    "Column",
    "Columns",
    "Dispatch",
    "FileWrite",
    "Frame",
    "Gathered",
    "KnownPull",
    "LaneStop",
    "PullRequest",
    "QueueRun",
    "QueueUnit",
    "Record",
    "Refused",
    "Scan",
    "SendAnswer",
    "SendRequest",
    "SendRun",
    "SendTurn",
    "Stop",
    "available",
    "kernel",
]
