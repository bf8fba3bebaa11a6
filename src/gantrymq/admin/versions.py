"""Releases of Apache RocketMQ by the ordinal that clients and brokers say."""

from __future__ import annotations

from typing import Final

FIRST: Final = 212
"""V4_0_0_SNAPSHOT: from here on every patch level has a snapshot and a release, ten to a minor."""
LAST: Final = 612
"""HIGHER_VERSION: what Apache's tools say to any ordinal that is not below it."""
_OLDER: Final = {121: "V3_4_9"}
"""What ali-ons says it is; of the others before 4.0, none is left to be told apart."""


def version_name(ordinal: int) -> str:
    """Return the name that Apache's tools print for an ordinal: `V4_9_7`."""
    if ordinal >= LAST:
        return "HIGHER_VERSION"
    if ordinal < FIRST:
        return _OLDER.get(ordinal, f"ordinal {ordinal}")
    release, is_release = divmod(ordinal - FIRST, 2)
    name = f"V{4 + release // 100}_{release // 10 % 10}_{release % 10}"
    return name if is_release else f"{name}_SNAPSHOT"
