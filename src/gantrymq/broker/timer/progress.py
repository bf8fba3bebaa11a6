"""How far timers are, as it is saved."""

from __future__ import annotations

import msgspec

from gantrymq.errors import ContentError


class Progress(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What counts, as of the last save."""

    read_offset: int
    """Queue offset in the timer's topic of the first record that has no entry."""
    next_second: int
    """Everything due before it has been delivered."""
    slots: dict[str, tuple[int, int]] = {}
    """Minute to the bytes of its file that count, and the lowest queue offset in it."""
    counts: dict[str, int] = {}
    """Messages that wait, by topic."""
    apache: str = ""
    """What we wrote into Apache's own file; another content means that Apache was here."""


def parse_progress(content: bytes) -> Progress:
    """Read the file.

    Raises:
        ContentError: it is not ours.
    """
    try:
        return msgspec.json.decode(content, type=Progress)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ContentError("timerslots/progress", str(error)) from None
