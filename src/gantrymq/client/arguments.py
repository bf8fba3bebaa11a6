"""Checks of what users give: each returns the argument, or says which one is wrong and why.

A type checker finds most of these mistakes; at run time they are to be errors with a text, not an
AttributeError from somewhere inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue, shown
from gantrymq.model.queue import MessageQueue

if TYPE_CHECKING:
    from pathlib import Path

SECONDS_MAX: Final = 86_400


def seconds(name: str, value: float, *, least: float | None = None) -> float:
    """Return an argument that is a time to wait: above 0, or from `least` on, up to a day.

    Raises:
        InvalidValue: it is none.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and (value > 0 if least is None else least <= value) and value <= SECONDS_MAX:
        return float(value)
    bound = "above 0" if least is None else f"from {least:g} on"
    raise InvalidValue(f"{name} is {shown(repr(value))}: give seconds {bound}, up to a day")


def at_least(name: str, value: int, least: int, most: int | None = None) -> int:
    """Return an argument that is a whole number with a lower bound.

    Raises:
        InvalidValue: it is less, more than `most`, or none.
    """
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number and least <= value and (most is None or value <= most):
        return value
    bound = f"a number of at least {least}" if most is None else f"a number from {least} to {most}"
    raise InvalidValue(f"{name} is {shown(repr(value))}: give {bound}")


def text(name: str, value: str) -> str:
    """Return an argument that is text.

    Raises:
        InvalidValue: it is something else.
    """
    if not isinstance(value, str):
        raise InvalidValue(f"{name} is {shown(repr(value))}: give text")
    return value


def function(name: str, value: object) -> None:
    """Refuse an argument that cannot be called.

    Raises:
        InvalidValue: it cannot.
    """
    if not callable(value):
        raise InvalidValue(f"{name} is {shown(repr(value))}: give a function")


def folder(name: str, value: Path | str | None) -> Path | None:
    """Return an argument that is a directory.

    Raises:
        InvalidValue: it is something else.
    """
    from pathlib import Path  # noqa: PLC0415  (only broadcasting consumers give one)

    if value is None or isinstance(value, Path):
        return value
    return Path(text(name, value))


def check_queue(queue: MessageQueue) -> MessageQueue:
    """Return an argument that is a queue.

    Raises:
        InvalidValue: it is something else.
    """
    if not isinstance(queue, MessageQueue):
        raise InvalidValue(
            f"queue is {shown(repr(queue))}: give a MessageQueue, such as `queues(topic)` returns"
        )
    return queue
