"""Starting offsets that are fixed before the first batch, in a file beside the checkpoint.

Spark asks for the initial offset more than once, and again after a crash before the first batch was
committed; a Python source cannot write to the checkpoint. `latest`, a time or a group would then
mean something else each time, and messages in between would be lost. So the offsets that such a
word means are written to `pinPath` the first time, whole or not at all, and read from there ever
after. `gantrymq.spark.streams.read_stream` chooses the path.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from pyarrow import fs

from gantrymq.errors import InvalidValue
from gantrymq.spark.offsets import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.spark.offsets import Offsets


def pinned(place: str, resolve: Callable[[], Offsets]) -> Offsets:
    """Return the offsets that are pinned at a place; those of `resolve` are, if none are.

    Raises:
        InvalidValue: the file there holds something else.
    """
    system, path = _file_system(place)
    if system.get_file_info(path).type == fs.FileType.NotFound:
        _write(system, path, json.dumps(encode(resolve())))
    with system.open_input_stream(path) as file:
        text = file.read()
    try:
        told = json.loads(text)
    except ValueError as error:
        raise InvalidValue(f"pinPath {place} holds no offsets ({error}): remove it") from None
    return decode(told)


def _file_system(place: str) -> tuple[fs.FileSystem, str]:
    if "://" in place or place.startswith("file:"):
        system, path = fs.FileSystem.from_uri(
            place.replace("file:/", "file:///", 1)
            if place.startswith("file:/") and not place.startswith("file://")
            else place
        )
        return system, path
    return fs.LocalFileSystem(), os.path.abspath(place)  # noqa: PTH100 - not a Path elsewhere


def _write(system: fs.FileSystem, path: str, text: str) -> None:
    parent = path.rpartition("/")[0]
    if parent:
        system.create_dir(parent, recursive=True)
    unfinished = f"{path}.{os.getpid()}.unfinished"
    with system.open_output_stream(unfinished) as file:
        file.write(text.encode())
    system.move(unfinished, path)
