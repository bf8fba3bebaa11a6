"""Disk and clock of another process are as its fault page says."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from chaos import shim

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import errno, mmap, os, sys, time
folder, other, kept = sys.argv[1], sys.argv[2], int(sys.argv[3])

def said(step, *arguments):
    try:
        step(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "ok"

def forced(handle):
    region = mmap.mmap(handle, 4096)
    region[0] = 1
    region.flush()

print(said(os.fsync, kept), said(forced, kept), said(os.pwrite, kept, b"x", 0),
      said(os.posix_fallocate, kept, 0, 8192), said(os.mkdir, f"{folder}/{time.monotonic_ns()}"),
      said(os.open, f"{folder}/new", os.O_CREAT | os.O_WRONLY), said(os.mkdir, other + "/made"),
      time.time())
"""


def answers(page: shim.FaultPage, folder: Path, other: Path) -> tuple[list[str], float]:
    """Return what a process of its own is told by its system, and what time it is there."""
    with (folder / "kept").open("r+b") as kept:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(folder), str(other), str(kept.fileno())],
            env={**os.environ, **page.environment}, capture_output=True, text=True, check=True,
            timeout=60, pass_fds=(kept.fileno(),),
        )  # fmt: skip
    (other / "made").rmdir()
    *said, now = done.stdout.split()
    return said, float(now)


def test_a_process_has_the_disk_and_the_clock_that_its_page_says(tmp_path: Path) -> None:
    if shim.compiler() is None:
        pytest.skip("no C compiler for the faults of disk and clock")
    folder, other = tmp_path / "disk", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (folder / "kept").write_bytes(bytes(4096))
    page = shim.FaultPage(tmp_path / "page", shim.compiled(tmp_path), folder)
    said, now = answers(page, folder, other)
    assert said == ["ok"] * 7
    assert abs(now - time.time()) < 30
    assert page.get("hits") == 0

    page.set(sync_error=errno.EIO, write_error=errno.ENOSPC, clock_ahead_ns=3600 * 10**9)
    said, now = answers(page, folder, other)
    assert said == ["EIO", "EIO", "ENOSPC", "ENOSPC", "ok", "ok", "ok"]
    assert abs(now - time.time() - 3600) < 30
    assert page.get("hits") == 4

    page.set(sync_error=0, write_error=0, name_error=errno.EROFS, sync_delay_us=300_000)
    page.set(clock_ahead_ns=-60 * 10**9)
    begun = time.monotonic()
    said, now = answers(page, folder, other)
    assert said == ["ok"] * 4 + ["EROFS"] * 2 + ["ok"]
    assert time.monotonic() - begun > 0.6, "each of two forces was slow"
    assert abs(now - time.time() + 60) < 30

    page.heal_disk()
    said, _now = answers(page, folder, other)
    assert said == ["ok"] * 7
