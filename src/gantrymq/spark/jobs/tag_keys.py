"""Index keys of tags, which Apache RocketMQ 5.x writes behind the keys of a message."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.kernel import kernel
from gantrymq.store.columns import integers, texts

if TYPE_CHECKING:
    from gantrymq.kernel import Dispatch
    from gantrymq.spark.jobs.log_slices import LogSlice

_KEY: Final = struct.Struct(">iqq")
_NAMES: Final = ("topic", "properties", "log_offset", "store_timestamp", "sys_flag")
_BYTES_MAX: Final = 1 << 29
_ROLLED_BACK: Final = 0xC
_INT32_MIN: Final = -(2**31)


def with_tag_keys(piece: LogSlice, part: Dispatch, begin: int) -> bytes:
    """Return the keys of a part with those of tags among them, in log order.

    A record's tag stands behind its own keys; a message that was rolled back has neither. The part
    begins at `begin` within the file.
    """
    keys = [(_KEY.unpack_from(part.keys, at)) for at in range(0, len(part.keys), _KEY.size)]
    with (
        Path(piece.path).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log,
    ):
        keys += _tag_keys(log, piece, part, begin)
    keys.sort(key=lambda key: key[1])  # stable: a tag stays behind
    return b"".join(_KEY.pack(*key) for key in keys)


def _tag_keys(
    log: mmap.mmap, piece: LogSlice, part: Dispatch, position: int
) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    left = part.records
    while left > 0 and position < part.end:
        rows = kernel.scan_columns(
            log, position, part.end, piece.log_base, False, _NAMES, (), left, _BYTES_MAX
        )
        columns = zip(
            texts(rows, "topic"), texts(rows, "properties"), integers(rows, "log_offset"),
            integers(rows, "store_timestamp"), integers(rows, "sys_flag"), strict=True,
        )  # fmt: skip
        for topic, properties, offset, store_ms, flag in columns:
            tags = [one[5:] for one in properties.split("\x02") if one.startswith("TAGS\x01")]
            if tags and tags[-1] and flag & _ROLLED_BACK != _ROLLED_BACK:
                value = kernel.string_hash(f"{topic}#T#{tags[-1]}".encode())
                found.append((0 if value == _INT32_MIN else abs(value), offset, store_ms))
        position, left = rows.end, left - rows.scanned
    return found
