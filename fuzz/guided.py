"""The child of the atheris engine: coverage of `gantrymq` guides what is tried next.

Compiled code is not measured, and need not be: each target runs the readable twin beside it, whose
branches are the same. Arguments are the target, then libFuzzer's own.
"""

from __future__ import annotations

import logging
import sys

import atheris


def main() -> None:
    """Fuzz until libFuzzer ends the process."""
    program, name, *options = sys.argv
    with atheris.instrument_imports(include=["gantrymq"]):
        from fuzz import limits, targets  # noqa: PLC0415  (imported here to be instrumented)

    logging.disable(logging.CRITICAL)  # what services say of bad input is not what is looked for
    atheris.Setup([program, *options], limits.bounded(targets.TARGETS[name]))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
