"""The environment of a process of ours that is timed: as if the package had been installed.

pip compiles what it installs; a checkout has no bytecode before its first start, and none ever
where `PYTHONDONTWRITEBYTECODE` is set. Compiling the sources is not what a start is about.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
BYTECODE: Final = ROOT / "build" / "bytecode"


def installed_environment(*places: Path) -> dict[str, str]:
    """Return the environment for a child that imports from these places and from `src`."""
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(str(one) for one in (*places, ROOT / "src"))
    return inherited | {"PYTHONPATH": path, "PYTHONPYCACHEPREFIX": str(BYTECODE)}
