"""The version of gantrymq, in one place: the build, the command line and replies read it here."""

from typing import Final

VERSION: Final = "0.1.0"
