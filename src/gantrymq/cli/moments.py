"""Times on the command line: milliseconds, mqadmin's forms, and what people write."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue, shown

if TYPE_CHECKING:
    from gantrymq.clock import Clock

_MILLISECONDS: Final = re.compile(r"-?[0-9]{1,18}")
_AGO: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*(ms|s|m|min|h|d)(?:\s+ago)?")
_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_FORMS: Final = (
    "%Y-%m-%d#%H:%M:%S:%f",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d",
)


def time_ms(text: str, clock: Clock) -> int:
    """Return a time in milliseconds since 1970.

    It may be `now`, milliseconds, mqadmin's `2026-11-15#21:00:00:000`, `2026-11-15 21:00:00` in
    the zone of this machine, ISO 8601 with a zone, or how long ago: `30m`, `2h ago`.

    Raises:
        InvalidValue: it is none of them.
    """
    text = text.strip()
    if text.lower() == "now":
        return clock.now_ms()
    if _MILLISECONDS.fullmatch(text) is not None:
        return int(text)
    try:
        if (ago := _AGO.fullmatch(text)) is not None:
            return clock.now_ms() - int(float(ago[1]) * _UNITS[ago[2]])
        return _ms(_written(text).astimezone())
    except (ValueError, OverflowError):  # the second is a year that no calendar has
        raise InvalidValue(
            f"{shown(text)!r} is no time: give now, milliseconds since 1970,"
            ' 2026-11-15#21:00:00:000, "2026-11-15 21:00:00", or how long ago, such as 30m'
        ) from None


def _written(text: str) -> datetime:
    """Return the moment that a text names, in the zone of this machine if it names none.

    Raises:
        ValueError: it names none.
    """
    for form in _FORMS:
        with suppress(ValueError):
            return datetime.strptime(text, form)  # noqa: DTZ007  (the machine's zone is meant)
    if text.isdecimal():
        raise ValueError(text)  # ISO 8601 would make a year of the first four digits
    return datetime.fromisoformat(text)


def _ms(moment: datetime) -> int:
    return (moment - datetime.fromtimestamp(0, moment.tzinfo)) // timedelta(milliseconds=1)
