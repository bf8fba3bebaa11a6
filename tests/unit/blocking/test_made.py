"""The blocking clients in the tree are those that the tool makes of the asyncio ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_files_are_what_the_tool_makes() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_blocking.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
