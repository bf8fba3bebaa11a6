"""The JSON files under `config/`: topics, groups, offsets, replaced whole and never half.

RocketMQ reads NAME and, if that is missing, empty or not to be understood, NAME.bak
(ConfigManager.java). It writes NAME.tmp, copies NAME to NAME.bak, deletes NAME, renames NAME.tmp,
and forces nothing, so that a power cut may leave both empty. Here:

    write NAME.tmp, force it     NAME is the old one
    rename NAME -> NAME.bak      NAME is missing, NAME.bak is the old one
    rename NAME.tmp -> NAME      NAME is the new one, NAME.bak the old one
    force the directory          and it stays so

The first time, when there is no old one, the new one is its own backup: a file that is damaged
before it is ever saved again has another beside it.

Whichever of the renames a power cut keeps, in whichever order, one of the two names holds a whole
file, the old or the new one, for our reader and for RocketMQ's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from gantrymq.errors import GantryError
from gantrymq.store.errors import StoreDamaged
from gantrymq.wire import fastjson

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gantrymq.store.files import Files

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Loaded(Generic[T]):
    """What was read, from which file, and why it was not the first choice."""

    value: T
    path: Path
    trouble: str | None = None


def save(files: Files, path: Path, content: bytes) -> None:
    """Put content in the place of a file; the one before it becomes its backup."""
    fresh, backup = _beside(path, ".tmp"), _beside(path, ".bak")
    _write(files, fresh, content)
    if files.exists(path):
        files.rename(path, backup)
    files.rename(fresh, path)
    files.sync_directory(path.parent)
    if not files.exists(backup):
        _write(files, fresh, content)
        files.rename(fresh, backup)
        files.sync_directory(path.parent)


def _write(files: Files, path: Path, content: bytes) -> None:
    """Write a file and force it."""
    files.truncate(path, 0)
    files.write_at(path, 0, content, len(content))
    files.sync(path)


def load(files: Files, path: Path, parse: Callable[[bytes], T]) -> Loaded[T] | None:
    """Read a file by RocketMQ's rule; None if neither it nor its backup has anything in it.

    Raises:
        StoreDamaged: there is something, and nothing that can be understood. RocketMQ goes on
            with nothing if there is no backup; topics and offsets are worth a question.
    """
    trouble: str | None = None
    passed_over: str | None = None
    for candidate in (path, _beside(path, ".bak")):
        if not files.exists(candidate):
            passed_over = f"{candidate} is missing"
            continue
        content = files.read(candidate)
        if not content.strip(b"\0 \t\r\n"):
            # Zeros are what a power cut makes of a file whose length was kept and content was not.
            passed_over = f"{candidate} is empty"
            continue
        try:
            return Loaded(parse(content), candidate, trouble or passed_over)
        except GantryError as error:
            trouble = f"{candidate}: {error}"
    if trouble is not None:
        raise StoreDamaged(
            f"{trouble}; there is no backup that can be read: mend the file, or remove it "
            "to begin with nothing"
        )
    return None


def load_json(files: Files, path: Path) -> Loaded[object] | None:
    """Read a file as the JSON that RocketMQ writes, bare numbers as keys and all."""
    return load(files, path, lambda content: fastjson.parse(content, path.name))


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
