"""Reading arguments: what every command of `gantrymq` has in common."""

from __future__ import annotations

import argparse
from typing import Final, NoReturn

PROGRAM: Final = "gantrymq"
SUCCESS: Final = 0
FAILED: Final = 1
BAD_USAGE: Final = 2


class CommandParser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line and say what to do."""

    def error(self, message: str) -> NoReturn:
        """Print the complaint and leave with status 2."""
        self.exit(BAD_USAGE, f"{self.prog}: {message}; try `{self.prog} --help`\n")
