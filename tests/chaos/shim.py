"""Faults of disk and clock for servers that know nothing of it: `shim.c`, compiled and steered."""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCE: Final = Path(__file__).with_name("shim.c")
FIELDS: Final = (
    "clock_ahead_ns", "sync_delay_us", "sync_error", "write_delay_us", "write_error", "name_error",
    "hits",
)  # fmt: skip
"""As in `struct page`."""
COMPILE_S_MAX: Final = 60
PAGE_BYTES: Final = 4096


def compiler() -> str | None:
    """Return a C compiler, or None."""
    return shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")


def compiled(folder: Path) -> Path:
    """Make the library in a folder; return it."""
    found = compiler()
    if found is None:
        raise FileNotFoundError("a C compiler")
    library = folder / "shim.so"
    subprocess.run(
        [found, "-O1", "-Wall", "-fPIC", "-shared", "-o", str(library), str(SOURCE), "-ldl"],
        check=True, capture_output=True, timeout=COMPILE_S_MAX,
    )  # fmt: skip
    return library


class FaultPage:
    """The faults of one server: `page.set(sync_error=errno.EIO)` holds from its next call on."""

    def __init__(self, path: Path, library: Path, below: Path) -> None:
        """Make the page; `below` is the folder on the faulty disk."""
        path.write_bytes(bytes(PAGE_BYTES))
        handle = os.open(path, os.O_RDWR)
        self._map = mmap.mmap(handle, PAGE_BYTES)
        os.close(handle)
        self.environment: Mapping[str, str] = {
            "LD_PRELOAD": str(library),
            "GANTRYMQ_FAULT_PAGE": str(path),
            "GANTRYMQ_FAULT_BELOW": str(below),
        }

    def set(self, **values: int) -> None:
        """Change fields by name."""
        for name, value in values.items():
            struct.pack_into("<q", self._map, 8 * FIELDS.index(name), value)

    def get(self, name: str) -> int:
        """Return a field."""
        (value,) = struct.unpack_from("<q", self._map, 8 * FIELDS.index(name))
        return int(value)

    def heal_disk(self) -> None:
        """Have a good disk again; the clock stays."""
        self.set(sync_delay_us=0, sync_error=0, write_delay_us=0, write_error=0, name_error=0)
