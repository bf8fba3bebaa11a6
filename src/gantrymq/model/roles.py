"""What somebody may do with a server as a whole: roles of users and of the dashboard's accounts.

Users' rights for single topics and groups come from rules beside their role (`security.users`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from gantrymq.errors import InvalidValue


class Role(IntEnum):
    """Each may what the ones below it may."""

    NONE = 0
    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3

    @property
    def text(self) -> str:
        """Return it as people write it."""
        return self.name.lower()

    @classmethod
    def parse(cls, text: str) -> Role:
        """Read what people write.

        Raises:
            InvalidValue: it is none that can be given.
        """
        found = GIVEN.get(text.lower())
        if found is None:
            raise InvalidValue(f"{text!r} is no role: give viewer, operator or admin")
        return found


GIVEN: Final = {role.text: role for role in Role if role is not Role.NONE}
"""Those that somebody can be given, by name."""
