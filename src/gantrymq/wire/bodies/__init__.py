"""The bodies of requests and answers as typed values, one module for each family.

`BODIES` says which body belongs to which request code, `CONFIG_FILES` which file holds which. The
table of them needs every family, so it is loaded when it is asked for.
"""

from typing import TYPE_CHECKING

from gantrymq.wire.bodies.codec import RAW, RECORDS, TEXT, Codec, JsonBody

if TYPE_CHECKING:
    from gantrymq.wire.bodies.table import BODIES, CONFIG_FILES, Bodies

__all__ = ["BODIES", "CONFIG_FILES", "RAW", "RECORDS", "TEXT", "Bodies", "Codec", "JsonBody"]


def __getattr__(name: str) -> object:
    """Load the table for whoever wants a part of it."""
    if name in {"BODIES", "CONFIG_FILES", "Bodies"}:
        from gantrymq.wire.bodies import table  # noqa: PLC0415

        return getattr(table, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
