"""Pages of mapped files, brought into memory before anybody needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.errors import InvalidValue
from gantrymq.kernel.reference.bounds import check_room

if TYPE_CHECKING:
    from gantrymq.kernel.interface import WritableBuffer


def touch_pages(target: WritableBuffer, position: int, limit: int, step: int) -> None:
    """Write the byte at `position` and every `step` bytes on, before `limit`, as it is."""
    check_room(target, position, limit)
    if step < 1:
        raise InvalidValue("touch: the step must be positive")
    for at in range(position, limit, step):
        target[at] = target[at]
