"""Which settings are secrets, and what is shown in their place.

Settings are answered to whoever asks (26, 319), printed (`-p`) and drawn by a dashboard. A secret
among them is masked by the look of its name, so that a setting that is added later is covered
before anybody thinks of it; so is a password inside of an address.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MASK: Final = "******"

_SECRET: Final = re.compile(
    r"password|passwd|passphrase|secret|credential|token|private.?key|access.?key|signature",
    re.IGNORECASE,
)
_IN_ADDRESS: Final = re.compile(r"(?<=//)[^/@\s]+(?=@)")


def is_secret(name: str) -> bool:
    """Tell whether a setting of this name is not for others to see."""
    return _SECRET.search(name) is not None


def masked(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings as they may be shown; one that is not set may be seen to be so."""
    return {
        name: MASK if text and is_secret(name) else _IN_ADDRESS.sub(MASK, text)
        for name, text in settings.items()
    }
