"""Keeps a little of what a long run found its way to, for the ordinary tests.

    python -m fuzz.keep accounts config           out of fuzz/corpus/ into fuzz/kept/

Of the inputs with one kind of outcome the smallest stays, as a line of Base64. The tests try all of
them (a second for everything), and every later run begins with them.
"""

from __future__ import annotations

import base64
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER: Final = Path(__file__).parent
KEPT: Final = FOLDER / "kept"
INPUT_BYTES_MAX: Final = 1024
INPUTS_MAX: Final = 60


def kept(name: str) -> list[bytes]:
    """Return the inputs that are kept of a target."""
    path = KEPT / f"{name}.txt"
    return [base64.b64decode(line) for line in path.read_bytes().split()] if path.exists() else []


def keep(name: str) -> int:
    """Choose what is kept of a target, and write it; return how many inputs that are."""
    from fuzz import builtin, targets  # noqa: PLC0415  (whoever reads what is kept needs none)

    found: dict[str, bytes] = {}
    paths = sorted((FOLDER / "corpus" / name).glob("*"), key=lambda path: path.stat().st_size)
    inputs = [*kept(name), *(path.read_bytes() for path in paths)]
    with builtin.alarm_handler():
        for data in inputs:
            if len(data) <= INPUT_BYTES_MAX and len(found) < INPUTS_MAX:
                kind, finding = builtin.attempt(targets.TARGETS[name], data)
                if finding is None:
                    found.setdefault(kind, data)
    KEPT.mkdir(exist_ok=True)
    lines = sorted(base64.b64encode(data) for data in found.values())
    (KEPT / f"{name}.txt").write_bytes(b"".join(line + b"\n" for line in lines))
    return len(lines)


def main(names: Sequence[str]) -> int:
    """Run the command line."""
    logging.disable(logging.CRITICAL)
    for name in names:
        print(f"{name}: {keep(name)} inputs")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
