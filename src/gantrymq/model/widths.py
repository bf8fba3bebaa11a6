"""Numbers with the width that records and headers give them; a plain `int` has 64 bits there."""

from typing import Annotated

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""A signed number of 32 bits."""
