"""How far timers are, as it is saved; a check sum at its end tells damage from what was written.

What it says is believed: entries that it does not name are not looked for, and records before its
offset are not read again. One changed digit would be messages that never come.
"""

from __future__ import annotations

import re
import zlib
from typing import Annotated, Final

import msgspec

from gantrymq.errors import ContentError

NAME: Final = "timerslots/progress"
_CHECK: Final = re.compile(rb',"check":"([0-9a-f]{8})"\}\s*$')
_Long = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Minute = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,12}$")]


class Progress(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What counts, as of the last save."""

    read_offset: _Long
    """Queue offset in the timer's topic of the first record that has no entry."""
    next_second: _Long
    """Everything due before it has been delivered."""
    slots: dict[_Minute, tuple[_Long, _Long]] = {}
    """Minute to the bytes of its file that count, and the lowest queue offset in it."""
    sums: dict[_Minute, int] = {}
    """Minute to the CRC-32 of those bytes; older releases wrote none."""
    counts: dict[str, int] = {}
    """Messages that wait, by topic."""
    apache: str = ""
    """What we wrote into Apache's own file; another content means that Apache was here."""


def encode_progress(progress: Progress) -> bytes:
    """Return the file."""
    content = msgspec.json.encode(progress)[:-1]
    return content + b',"check":"%08x"}' % zlib.crc32(content)


def parse_progress(content: bytes) -> Progress:
    """Read the file.

    Raises:
        ContentError: it is not ours, or not as it was written.
    """
    check = _CHECK.search(content)
    if check is not None and int(check[1], 16) != zlib.crc32(content[: check.start()]):
        raise ContentError(NAME, "its check sum is that of something else")
    try:
        return msgspec.json.decode(content, type=Progress)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ContentError(NAME, str(error)) from None
