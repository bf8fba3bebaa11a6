"""The settings that a store on the disk was written with, from its configuration or from itself.

A store opens only with the file sizes that it was made with. Whoever looks at one from outside
may not have its configuration, so the sizes are taken from the files:

    commit log, queue, extension   the length of the first file that has any
    index                          40 + 4 slots + 20 entries: one length, many pairs

A pair of slots and entries is tried against the chains in a file: a wrong one breaks them at once.
The usual proportion, one slot for four entries, comes first, then all others of that length.
Settings that leave no trace (delay levels) keep their defaults.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.store.errors import StoreDamaged
from gantrymq.store.index import INDEX_DIRECTORY
from gantrymq.store.index_file import IndexFile, index_file_bytes
from gantrymq.store.log_directories import log_directories
from gantrymq.store.queue_table import EXT_DIRECTORY, QUEUES_DIRECTORY
from gantrymq.store.settings import (
    ROOT_NAME,
    FileSettings,
    StoreSettings,
    read_settings,
)
from gantrymq.wire.bodies.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gantrymq.store.files import Files, Region

CANDIDATES_MAX: Final = 1_000_000
"""Pairs of slots and entries that are tried; beyond, the configuration has to tell."""
PROBED_FILES: Final = 3
PROBED_ENTRIES: Final = 200
_SLOT: Final = struct.Struct(">i")
_HEADER_BYTES: Final = index_file_bytes(0, 0)


class IndexShape(NamedTuple):
    """How an index file is divided."""

    slots: int
    entries: int


def settings_of(directory: Path, files: Files, configuration: Path | None = None) -> StoreSettings:
    """Return the settings to open a directory with.

    Raises:
        InvalidSettings: the configuration says something that cannot be.
        StoreDamaged: there is no store in the directory.
        OSError: the configuration cannot be read.
    """
    if configuration is None:
        settings = _from_files(directory, files)
    else:
        properties = dict(SETTINGS.decode(files.read(configuration)))
        settings = read_settings(properties | {ROOT_NAME: str(directory)})
    for path in log_directories(settings.paths).all:
        if not files.is_directory(path):
            raise StoreDamaged(
                f"{directory} holds no store: there is no directory {path}; give the directory "
                "that storePathRootDir names, and the configuration if the log lies elsewhere"
            )
    return settings


def log_range(settings: StoreSettings, files: Files) -> tuple[int, int]:
    """Return where the files of a log begin and end, going by their names: for a progress line."""
    directories = log_directories(settings.paths).all
    names = [name for path in directories for name in files.names(path) if name.isdecimal()]
    if not names:
        return 0, 0
    return int(min(names)), int(max(names)) + settings.files.commit_log_bytes


def unknown_sizes(settings: StoreSettings, files: Files) -> list[str]:
    """Return the names of sizes that no file shows, where the default may be wrong.

    Whoever reads has no need of them. Whoever writes must know: a broker refuses files of another
    length than its configuration says. Beside log files of the usual length the rest is usual too.
    """
    root, unknown = settings.paths.root, list[str]()
    is_usual = settings.files.commit_log_bytes == FileSettings().commit_log_bytes
    if not is_usual and not _first_length(
        files, _queue_directories(files, root / QUEUES_DIRECTORY)
    ):
        unknown.append("mappedFileSizeConsumeQueue")
    has_index = _first_length(files, [root / INDEX_DIRECTORY]) is not None
    if not settings.index.enabled or not (is_usual or has_index):
        unknown += ["maxHashSlotNum", "maxIndexNum"]
    return unknown


def _from_files(directory: Path, files: Files) -> StoreSettings:
    settings = read_settings({ROOT_NAME: str(directory)})
    sizes = settings.files
    log_bytes = _first_length(files, [settings.paths.commit_log[0]])
    queue_bytes = _first_length(files, _queue_directories(files, directory / QUEUES_DIRECTORY))
    ext_bytes = _first_length(files, _queue_directories(files, directory / EXT_DIRECTORY))
    sizes = replace(
        sizes,
        commit_log_bytes=log_bytes or sizes.commit_log_bytes,
        consume_queue_bytes=queue_bytes or sizes.consume_queue_bytes,
        consume_queue_ext_enabled=bool(ext_bytes),
        consume_queue_ext_bytes=ext_bytes or sizes.consume_queue_ext_bytes,
    )
    index = settings.index
    shape = index_shape(files, directory / INDEX_DIRECTORY, IndexShape(index.slots, index.entries))
    if shape is None:
        index = replace(index, enabled=False)
    else:
        index = replace(index, slots=shape.slots, entries=shape.entries)
    return replace(settings, files=sizes, index=index)


def _queue_directories(files: Files, directory: Path) -> Iterator[Path]:
    for topic in _directories(files, directory):
        yield from _directories(files, topic)


def _directories(files: Files, directory: Path) -> Iterator[Path]:
    paths = (directory / name for name in files.names(directory))
    return filter(files.is_directory, paths)


def _first_length(files: Files, directories: Iterator[Path] | list[Path]) -> int | None:
    """Return the length of the first file that has any."""
    for directory in directories:
        for name in files.names(directory):
            if name.isdecimal() and (length := files.size(directory / name)):
                return length
    return None


def index_shape(files: Files, directory: Path, usual: IndexShape) -> IndexShape | None:
    """Return how the index files are divided: `usual` without any, None if it cannot be told.

    The newest files are asked last: it is their tails that a crash may have damaged.
    """
    paths = [directory / name for name in files.names(directory) if name.isdecimal()]
    sized = [path for path in paths if not files.is_directory(path) and files.size(path)]
    for path in sized[:PROBED_FILES]:
        region = files.open(path, writable=False)
        try:
            for shape in _pairs(region.size):
                if _fits(region, shape):
                    return shape
        finally:
            region.close()
    return None if sized else usual


def _pairs(length: int) -> Iterator[IndexShape]:
    """Yield the pairs of slots and entries that give a length, the usual proportion first."""
    words, rest = divmod(length - _HEADER_BYTES, 4)
    if rest or words < 1:
        return
    if words % 21 == 0:
        yield IndexShape(words // 21, words // 21 * 4)
    first = words % 5 or 5
    for slots in range(first, min(words - 10, first + 5 * CANDIDATES_MAX) + 1, 5):
        yield IndexShape(slots, (words - slots) // 5)


def _fits(region: Region, shape: IndexShape) -> bool:
    """Tell whether the entries of a file form the chains that its slots begin."""
    file = IndexFile(region, *shape)
    header = file.header
    if header.next_number > shape.entries:
        return False
    newest: dict[int, int] = {}
    for number, entry in enumerate(islice(file.entries(), PROBED_ENTRIES), 1):
        slot = entry.key_hash % shape.slots
        if entry.previous != newest.get(slot, 0) or entry.key_hash < 0:
            return False
        if number == 1 and entry.log_offset != header.begin_log_offset:
            return False
        newest[slot] = number
    last = min(PROBED_ENTRIES, header.next_number - 1)
    for slot, number in newest.items():
        (points_at,) = _SLOT.unpack_from(region.buffer, _HEADER_BYTES + _SLOT.size * slot)
        if points_at != number and points_at <= last:
            return False
    return True
