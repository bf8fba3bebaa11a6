"""Which FastStream this broker is made for.

FastStream has no public way to add a broker: its base classes are in `faststream._internal`, which
changes from one minor release to the next. So the release is asked for by the extra, and looked at
before anything of it is imported: a text that says what to install is better than an ImportError
from the middle of somebody's internals.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

RELEASE: Final = "0.7"
"""Major and minor; any of its bug fixes will do."""
_HINT: Final = "pip install 'gantrymq[faststream]'"


def check_release(installed: str | None) -> None:
    """Refuse a FastStream that this broker does not know.

    Raises:
        ImportError: it is another release, or is not there.
    """
    if installed is None:
        raise ImportError(f"gantrymq.faststream needs FastStream {RELEASE}: {_HINT}")
    if installed.split(".")[:2] != RELEASE.split("."):
        raise ImportError(
            f"gantrymq.faststream is made for FastStream {RELEASE}, and {installed} is installed:"
            f" {_HINT}"
        )


def installed_release() -> str | None:
    """Return the version of FastStream that is installed; None if none is."""
    try:
        return version("faststream")
    except PackageNotFoundError:
        return None
