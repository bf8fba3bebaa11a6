"""What can be wrong with a filter: its text, or a message's value when it is compared."""

from __future__ import annotations

from gantrymq.errors import GantryError, InvalidValue, shown
from gantrymq.limits import ERROR_TEXT_CHARACTERS_MAX


class FilterError(InvalidValue):
    """A text that is no SQL92 filter; a broker answers SUBSCRIPTION_PARSE_FAILED (23).

    `position` is the index of the character at fault, `problem` a sentence about it.
    """

    def __init__(self, position: int, problem: str) -> None:
        problem = shown(problem, ERROR_TEXT_CHARACTERS_MAX)
        super().__init__(f"SQL92 filter, character {position + 1}: {problem}")
        self.position = position
        self.problem = problem

    def __reduce__(self) -> tuple[type[FilterError], tuple[int, str]]:
        """Let the error cross a process border."""
        return type(self), (self.position, self.problem)


class NotComparable(GantryError):
    """A message's value that cannot be compared as the expression asks; it does not match then."""
