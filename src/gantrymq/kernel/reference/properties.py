"""The property string: `name 0x01 value 0x02 name 0x01 value ...`."""

from __future__ import annotations


def entries(text: bytes) -> list[tuple[bytes, bytes]]:
    """Return the entries that count, in their order: those with a name and a value."""
    found: list[tuple[bytes, bytes]] = []
    for entry in text.split(b"\x02"):
        name, _separator, value = entry.partition(b"\x01")
        if name and value:
            found.append((name, value))
    return found


def named(text: bytes) -> dict[bytes, bytes]:
    """Return the properties by name; of a repeated name the last one wins."""
    return dict(entries(text))


def joined(pairs: list[tuple[bytes, bytes]]) -> bytes:
    """Return entries as a property string, with no separator at its end."""
    return b"\x02".join(name + b"\x01" + value for name, value in pairs)
