"""A process that dies while it writes a record leaves none, rather than one that lacks its end.

The child maps a file of two pages and cuts the second off: writing to it ends the process, as a
kill would, in the middle of a record that begins in the first page.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from gantrymq.kernel.interface import Kernel

PAGE = 4096
CHILD = """
import mmap, sys
from gantrymq.kernel import available
from support.samples import BORN_HOST, GOLDEN_RECORD, json_request, make_lane, send_fields

path, name, way, position = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
kernel = next(each for each in available() if each.KERNEL_NAME == name)
record = GOLDEN_RECORD._replace(body=b"b" * 3000)
sends = json_request(310, send_fields(), b"b" * 3000)
lane = make_lane(kernel, body_bytes_max=1 << 20)
lane.open_topic(b"TopicTest", [0, 0])
with open(path, "r+b") as file:
    log = mmap.mmap(file.fileno(), 8192)
    file.truncate(4096)
    if way == "record":
        kernel.encode_record(log, position, 8192, record)
    else:
        lane.append(sends, 0, len(sends), log, position, 8192, 0, BORN_HOST, 1)
"""


@pytest.mark.parametrize("way", ["record", "lane"])
@pytest.mark.parametrize("position", [PAGE - 3100, PAGE - 200, PAGE - 100, PAGE - 40])
def test_no_magic_without_its_record(
    kernel: Kernel, tmp_path: Path, way: str, position: int
) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(2 * PAGE))
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), kernel.KERNEL_NAME, way, str(position)],
        env={"PYTHONPATH": ":".join(sys.path)},
        check=False,
        timeout=60,
    )
    assert child.returncode == -signal.SIGBUS, "it was to die on the way"
    left = path.read_bytes()
    assert len(left) == PAGE
    assert left[position + 4 : position + 8] == bytes(4)
    if kernel.KERNEL_NAME == "compiled":
        assert any(left[position:]), "it had begun"
